#include "tools/dedupctl/expiry.h"

#include <charconv>
#include <limits>

namespace dedup::ctl {
namespace {

std::uint64_t seconds_of(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 60 * 60;
    case 'd':
      return 24 * 60 * 60;
    default:
      return 0;
  }
}

}  // namespace

std::optional<std::uint64_t> parse_age(const std::string& text) {
  if (text.size() < 2) return std::nullopt;
  const char* const end = text.data() + text.size() - 1;
  const std::uint64_t unit = seconds_of(*end);
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), end, number);
  if (unit == 0 || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (number > std::numeric_limits<std::uint64_t>::max() / unit) return std::nullopt;
  return number * unit;
}

Expired expired(const Expiry& expiry, std::uint64_t now, std::uint64_t newest,
                std::span<const std::uint64_t> kept) {
  const auto is_old = [&](std::uint64_t time) {
    return !expiry.older_than || (time <= now && now - time >= *expiry.older_than);
  };
  Expired out;
  if (!expiry.keep && is_old(newest)) {
    out.whole = true;
    return out;
  }
  for (std::size_t i = kept.size(); i-- > expiry.keep.value_or(0);) {
    if (is_old(kept[i])) out.kept.push_back(i);
  }
  return out;
}

}  // namespace dedup::ctl
