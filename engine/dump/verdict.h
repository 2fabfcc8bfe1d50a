// What becomes of a chunk of this rank, and sets of nodes by number.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/types.h"

namespace dedup::engine {

// Distinct values, numbered in the order in which they came.
template <typename Value>
class Numbered {
 public:
  std::uint32_t number(const Value& value) {
    // What follows each other is often the same.
    if (!values_.empty() && *values_[last_] == value) return last_;
    const auto [it, fresh] =
        numbers_.try_emplace(value, static_cast<std::uint32_t>(values_.size()));
    if (fresh) values_.push_back(&it->first);
    last_ = it->second;
    return last_;
  }
  const Value& operator[](std::uint32_t number) const { return *values_[number]; }
  std::size_t size() const { return values_.size(); }
  std::vector<Value> list() const {
    std::vector<Value> out;
    out.reserve(values_.size());
    for (const Value* value : values_) out.push_back(*value);
    return out;
  }

 private:
  std::map<Value, std::uint32_t> numbers_;
  std::vector<const Value*> values_;
  std::uint32_t last_ = 0;
};

// Of the ranks of a node that have a chunk, one is told to keep and send it; the others only learn
// who holds it.
struct Verdict {
  bool keep = false;               // append it to this node's store
  std::vector<NodeIndex> targets;  // send a copy to each
  NodeSet holders;                 // who has it in the end
  auto operator<=>(const Verdict&) const = default;
};

}  // namespace dedup::engine
