// Content for tests that no two pieces of are the same.
#pragma once

#include <cstdint>
#include <random>

#include "base/types.h"

namespace dedup::test {

inline Bytes noise(std::uint64_t seed, std::size_t size) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

inline void append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace dedup::test
