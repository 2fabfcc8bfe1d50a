// A bounded number of things by key: when there are too many, those that were not asked for the
// longest go first. One thread.
//
// Memory, beside keys and values: about 100 bytes each.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <map>
#include <utility>

namespace dedup {

template <typename Key, typename Value>
class Lru {
 public:
  // In what weights are in.
  explicit Lru(std::size_t capacity) : capacity_(capacity) {}

  // Null if it is not there; valid until the next insert or erase.
  Value* find(const Key& key) {
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, at->second);
    return &at->second->value;
  }
  // In place of what is there of that key. Always keeps this one, even if it alone is too heavy.
  Value& insert(const Key& key, Value value, std::size_t weight = 1) {
    erase(key);
    entries_.push_front({key, std::move(value), weight});
    by_key_.emplace(key, entries_.begin());
    weight_ += weight;
    while (weight_ > capacity_ && entries_.size() > 1) drop(by_key_.find(entries_.back().key));
    return entries_.front().value;
  }
  void erase(const Key& key) {
    if (const auto at = by_key_.find(key); at != by_key_.end()) drop(at);
  }
  // From `first` on, in order of keys, as long as goes(key).
  template <typename Goes>
  void erase_from(const Key& first, Goes&& goes) {
    auto at = by_key_.lower_bound(first);
    while (at != by_key_.end() && goes(at->first)) drop(at++);
  }

  void clear() {
    by_key_.clear();
    entries_.clear();
    weight_ = 0;
  }

  std::size_t size() const { return entries_.size(); }
  std::size_t weight() const { return weight_; }

 private:
  struct Entry {
    Key key;
    Value value;
    std::size_t weight = 0;
  };
  using Entries = std::list<Entry>;
  using ByKey = std::map<Key, typename Entries::iterator>;

  void drop(typename ByKey::iterator at) {
    weight_ -= at->second->weight;
    entries_.erase(at->second);
    by_key_.erase(at);
  }

  std::size_t capacity_;
  std::size_t weight_ = 0;
  Entries entries_;  // most recently used first
  ByKey by_key_;
};

}  // namespace dedup
