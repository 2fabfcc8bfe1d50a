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

// Of numbered values those that one message after the other has, by numbers of their own in each.
// Not thread-safe. `all` must outlive it, and not grow.
template <typename Value>
class NumberedInMessages {
 public:
  explicit NumberedInMessages(const Numbered<Value>& all)
      : all_(all), number_(all.size(), kUnused) {}

  // Of the value that has the number `one` among all; `values` are those of the message.
  std::uint32_t number(std::uint32_t one, std::vector<Value>& values) {
    if (number_[one] == kUnused) {
      number_[one] = static_cast<std::uint32_t>(values.size());
      used_.push_back(one);
      values.push_back(all_[one]);
    }
    return number_[one];
  }
  void next_message() {
    for (const std::uint32_t one : used_) number_[one] = kUnused;
    used_.clear();
  }

 private:
  static constexpr std::uint32_t kUnused = 0xffffffff;
  const Numbered<Value>& all_;
  std::vector<std::uint32_t> number_;
  std::vector<std::uint32_t> used_;
};

}  // namespace dedup
