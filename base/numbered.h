// Distinct values by number.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace dedup {

// Numbers values in the order in which they came; equal ones have one number. Not thread-safe.
template <typename Value>
class Numbered {
 public:
  Numbered() = default;
  // The list points into the map, whose elements stay where they are when it is moved.
  Numbered(Numbered&&) noexcept = default;
  Numbered& operator=(Numbered&&) noexcept = default;

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

}  // namespace dedup
