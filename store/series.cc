#include "store/series.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string_view>
#include <utility>

#include "store/fs.h"

namespace dedup::store {
namespace {

constexpr std::size_t kNearest = 8;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A name as its series, with a mark for each number, and the numbers, without leading zeros.
struct NumberedName {
  std::string series;
  std::vector<std::string> numbers;

  explicit NumberedName(const std::string& name) {
    for (std::size_t i = 0; i < name.size();) {
      if (!is_digit(name[i])) {
        series += name[i++];
        continue;
      }
      const std::size_t begin = i;
      while (i < name.size() && is_digit(name[i])) ++i;
      std::string number = name.substr(begin, i - begin);
      number.erase(0, std::min(number.find_first_not_of('0'), number.size() - 1));
      numbers.push_back(std::move(number));
      series += '/';  // which no name has
    }
  }

  // Of names of one series.
  std::strong_ordering operator<=>(const NumberedName& other) const {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::string& a = numbers[i];
      const std::string& b = other.numbers[i];
      if (a.size() != b.size()) return a.size() <=> b.size();
      if (const auto order = a <=> b; order != 0) return order;
    }
    return std::strong_ordering::equal;
  }
  bool operator==(const NumberedName& other) const { return (*this <=> other) == 0; }
};

}  // namespace

std::vector<std::string> nearest_in_series(const std::string& name,
                                           const std::vector<std::string>& names,
                                           std::size_t most) {
  const NumberedName own(name);
  std::vector<std::pair<NumberedName, std::string>> before;
  std::vector<std::pair<NumberedName, std::string>> after;
  for (const std::string& one : names) {
    if (one == name) continue;
    NumberedName other(one);
    if (other.series != own.series || other.numbers.empty()) continue;
    (other < own ? before : after).emplace_back(std::move(other), one);
  }
  std::sort(before.begin(), before.end(), [](const auto& a, const auto& b) { return b < a; });
  std::sort(after.begin(), after.end());
  before.insert(before.end(), after.begin(), after.end());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(most, before.size()); ++i) out.push_back(before[i].second);
  return out;
}

InSeries newest_in_series(const std::string& path) {
  const std::string directory = fs::directory_of(path);
  const std::string name = path.substr(path.rfind('/') + 1);
  if (std::none_of(name.begin(), name.end(), is_digit)) return {};
  const auto names = fs::list(directory);
  if (!names.is_ok()) return {};
  InSeries newest;
  std::uint64_t placed = 0;
  for (const std::string& one : nearest_in_series(name, *names, kNearest)) {
    auto state = look_at(directory + "/" + one);
    if (!state.is_ok() || state->is_copy()) continue;
    const Stamp& stamp = state->stamp;
    if (state->kind == PathState::Kind::kPlaceholder && stamp.modified > placed) {
      placed = stamp.modified;
      newest.placeholder = std::move(state->placeholder);
    } else if (state->kind == PathState::Kind::kPlain && stamp.size > 0 &&
               (!newest.plain || stamp.modified > newest.plain->stamp.modified)) {
      newest.plain = PlainAt{directory + "/" + one, stamp};
    }
  }
  if (newest.plain && newest.plain->stamp.modified < placed) newest.plain.reset();
  return newest;
}

}  // namespace dedup::store
