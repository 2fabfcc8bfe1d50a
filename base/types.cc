#include "base/types.h"

#include <unistd.h>

#include <cstdlib>

namespace dedup {

std::string hex_string(const void* data, std::size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto* p = static_cast<const std::uint8_t*>(data);
  std::string out(size * 2, '0');
  for (std::size_t i = 0; i < size; ++i) {
    out[2 * i] = kDigits[p[i] >> 4];
    out[2 * i + 1] = kDigits[p[i] & 15];
  }
  return out;
}

void fill_randomly(std::span<std::uint8_t> out) {
  if (::getentropy(out.data(), out.size()) != 0) std::abort();
}

Id128 Id128::random() {
  Id128 id;
  fill_randomly(id.bytes);
  return id;
}

std::string Id128::hex() const {
  return hex_string(bytes.data(), bytes.size());
}

bool Id128::parse(const std::string& hex, Id128& out) {
  if (hex.size() != 32) return false;
  Id128 id;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const char c = hex[i];
    int digit;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else {
      return false;
    }
    auto& byte = id.bytes[i / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | digit);
  }
  out = id;
  return true;
}

std::string Fingerprint::hex() const {
  return hex_string(bytes.data(), bytes.size());
}

}  // namespace dedup
