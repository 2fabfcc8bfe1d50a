// A checksum of bytes that one process makes and another one checks.
#pragma once

#include <cstdint>
#include <span>

#include "base/xxh3.h"

namespace dedup {

// Finds what a network or a memory changed (XXH3, 64 bits); proves nothing against whoever means
// harm.
inline std::uint64_t message_checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace dedup
