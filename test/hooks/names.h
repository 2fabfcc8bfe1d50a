// Names of chunks, as writers make them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "base/chunk_namer.h"
#include "base/hasher.h"

namespace dedup::test {

// Of a key that is the same in all tests.
inline ChunkNamer& keyed_namer() {
  thread_local ChunkNamer namer = *ChunkNamer::create(FingerprintKind::kKeyed, Id128{{1, 2, 3}});
  return namer;
}

inline Fingerprint content_name(std::span<const std::byte> chunk) {
  return *keyed_namer().name(chunk, fast_hash(chunk).low);
}

inline Fingerprint single_name(std::span<const std::byte> chunk, std::uint64_t number) {
  return name_of_single(content_name(chunk), number);
}

// As it was before names were keyed (doc/format.md, "Fingerprints").
inline Fingerprint old_single_name(std::span<const std::byte> chunk, std::uint64_t number) {
  const FastHash hash = fast_hash(chunk);
  Fingerprint name;
  std::memcpy(name.bytes.data(), &hash.low, 8);
  std::memcpy(name.bytes.data() + 8, &hash.high, 8);
  std::memcpy(name.bytes.data() + 16, &number, 8);
  name.bytes[24] = 1;
  return name;
}

}  // namespace dedup::test
