// Open files that are read from again and again: a bounded number, the least recently used closed
// first. One thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "base/status.h"
#include "base/types.h"

namespace dedup::store {

struct ReaderKey {
  Id128 identity;
  Id128 attempt;  // of a shard
  std::uint64_t number = 0;
  auto operator<=>(const ReaderKey&) const = default;
};

template <typename Reader>
class ReaderCache {
 public:
  explicit ReaderCache(std::size_t capacity) : capacity_(capacity) {}

  // The reader of `key`, or what open() makes (a Result<std::unique_ptr<Reader>>). A file that is
  // not there is kNotFound.
  template <typename Open>
  Result<std::shared_ptr<const Reader>> get(const ReaderKey& key, Open&& open) {
    if (const auto it = by_key_.find(key); it != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return entries_.front().reader;
    }
    auto opened = open();
    if (!opened.is_ok()) {
      const Status& status = opened.status();
      if (status.code() == Code::kNoSuchFile) return Status(Code::kNotFound, status.message());
      return status;
    }
    if (entries_.size() >= capacity_) {
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
    entries_.push_front({key, std::move(*opened)});
    by_key_.emplace(key, entries_.begin());
    return entries_.front().reader;
  }

  // Closes all files of `identity`.
  void forget_all(const Id128& identity) {
    const auto begin = by_key_.lower_bound(ReaderKey{identity, {}, 0});
    auto end = begin;
    for (; end != by_key_.end() && end->first.identity == identity; ++end) {
      entries_.erase(end->second);
    }
    by_key_.erase(begin, end);
  }

  // Closes one.
  void forget(const ReaderKey& key) {
    const auto it = by_key_.find(key);
    if (it == by_key_.end()) return;
    entries_.erase(it->second);
    by_key_.erase(it);
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    ReaderKey key;
    std::shared_ptr<const Reader> reader;
  };
  using Entries = std::list<Entry>;

  std::size_t capacity_;
  Entries entries_;  // most recently used first
  std::map<ReaderKey, typename Entries::iterator> by_key_;
};

}  // namespace dedup::store
