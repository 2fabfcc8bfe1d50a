// Open files that are read from again and again: a bounded number, the least recently used closed
// first. One thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/lru.h"
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
  explicit ReaderCache(std::size_t capacity) : readers_(capacity) {}

  // The reader of `key`, or what open() makes (a Result<std::unique_ptr<Reader>>), which is kept if
  // is_to_stay() says so then. A file that is not there is kNotFound.
  template <typename Open, typename IsToStay>
  Result<std::shared_ptr<const Reader>> get(const ReaderKey& key, Open&& open,
                                            IsToStay&& is_to_stay) {
    if (const auto* reader = readers_.find(key)) return *reader;
    auto opened = open();
    if (!opened.is_ok()) {
      const Status& status = opened.status();
      if (status.code() == Code::kNoSuchFile) return Status(Code::kNotFound, status.message());
      return status;
    }
    std::shared_ptr<const Reader> reader = std::move(*opened);
    return is_to_stay() ? readers_.insert(key, std::move(reader)) : reader;
  }
  template <typename Open>
  Result<std::shared_ptr<const Reader>> get(const ReaderKey& key, Open&& open) {
    return get(key, open, [] { return true; });
  }

  // Closes all files of `identity`.
  void forget_all(const Id128& identity) {
    readers_.erase_from({identity, {}, 0},
                        [&](const ReaderKey& key) { return key.identity == identity; });
  }

  // Closes one.
  void forget(const ReaderKey& key) { readers_.erase(key); }
  std::size_t size() const { return readers_.size(); }

 private:
  Lru<ReaderKey, std::shared_ptr<const Reader>> readers_;
};

}  // namespace dedup::store
