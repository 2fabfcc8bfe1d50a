#include "tools/dedupctl/duration.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <limits>

namespace dedup::ctl {
namespace {

constexpr std::uint64_t kMinute = 60;
constexpr std::uint64_t kHour = 60 * kMinute;
constexpr std::uint64_t kDay = 24 * kHour;

std::uint64_t seconds_of(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return kMinute;
    case 'h':
      return kHour;
    case 'd':
      return kDay;
    default:
      return 0;
  }
}

// The number before a unit, and how many seconds that is; none if there is anything else.
template <typename Number, typename... Format>
std::optional<std::pair<Number, std::uint64_t>> parse(const std::string& text, Format... format) {
  if (text.size() < 2) return std::nullopt;
  const char* const end = text.data() + text.size() - 1;
  const std::uint64_t unit = seconds_of(*end);
  Number number = 0;
  const auto parsed = std::from_chars(text.data(), end, number, format...);
  if (unit == 0 || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return std::pair(number, unit);
}

}  // namespace

std::optional<std::uint64_t> parse_age(const std::string& text) {
  const auto parsed = parse<std::uint64_t>(text);
  if (!parsed) return std::nullopt;
  const auto [number, unit] = *parsed;
  if (number > std::numeric_limits<std::uint64_t>::max() / unit) return std::nullopt;
  return number * unit;
}

std::optional<double> parse_duration(const std::string& text) {
  const auto parsed = parse<double>(text, std::chars_format::fixed);
  if (!parsed) return std::nullopt;
  const double seconds = parsed->first * static_cast<double>(parsed->second);
  // Neither 0 nor what is no number.
  return seconds > 0 && seconds < std::numeric_limits<double>::infinity() ? std::optional(seconds)
                                                                          : std::nullopt;
}

std::string duration_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 2 * kMinute) return fmt::format("{:.1f} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.1f} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.1f} h", seconds / kHour);
  return fmt::format("{:.1f} d", seconds / kDay);
}

std::string utc(std::uint64_t seconds_since_1970) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(seconds_since_1970)));
}

}  // namespace dedup::ctl
