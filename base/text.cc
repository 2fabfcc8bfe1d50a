#include "base/text.h"

#include <array>
#include <cstdio>

namespace dedup {
namespace {

constexpr std::size_t kLongPath = 24;  // bytes; shorter ones tell more than they cost

bool starts_path(std::string_view text, std::size_t at) {
  return text[at] == '/' && (at == 0 || std::string_view(" (\"'=").find(text[at - 1]) != text.npos);
}

}  // namespace

std::string abbreviate(std::string_view text, std::size_t most) {
  std::string out(text);
  for (std::size_t at = 0; at < out.size() && out.size() > most; ++at) {
    if (!starts_path(out, at)) continue;
    std::size_t end = out.find_first_of(" :;,()\"'\n", at);
    if (end == std::string::npos) end = out.size();
    if (end - at < kLongPath) continue;
    const std::size_t last = out.rfind('/', end - 2);  // a slash at the end belongs to it
    out.replace(at, last - at, "...");
  }
  if (out.size() > most) out.resize(most);
  return out;
}

std::string printable(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code != 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kDigits[code >> 4];
      out += kDigits[code & 0xf];
    }
  }
  return out;
}

std::string human(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

}  // namespace dedup
