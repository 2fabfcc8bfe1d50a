// Numbers in as few bytes as they need: seven bits a byte, the lowest first (LEB128). Up to 63
// bits.
#pragma once

#include <cstdint>

#include "base/codec.h"

namespace dedup {

inline void put_varint(Encoder& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.put(static_cast<std::uint8_t>(value | 0x80));
  out.put(static_cast<std::uint8_t>(value));
}

inline std::uint64_t get_varint(Decoder& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 63; shift += 7) {
    const auto byte = in.get<std::uint8_t>();
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  in.fail();
  return 0;
}

// Fails for what is not below `bound`.
inline std::uint32_t get_varint_below(Decoder& in, std::uint64_t bound) {
  const std::uint64_t value = get_varint(in);
  if (value < bound) return static_cast<std::uint32_t>(value);
  in.fail();
  return 0;
}

}  // namespace dedup
