// What stands before a chunk in a segment, and what its checksum goes over. For the segments'
// implementations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "store/format.h"
#include "store/segment.h"

namespace dedup::store {

// A chunk's header: salt, length and fingerprint, then the checksum.
inline constexpr std::size_t kSaltSize = 8;
inline constexpr std::size_t kCheckedSize = kSaltSize + 4 + 32;
static_assert(kChunkHeaderSize == kCheckedSize + 8);

using ChunkHeader = std::array<std::byte, kChunkHeaderSize>;

inline void put_number(Bytes& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

inline void put_name(Bytes& out, const SegmentChunk& chunk) {
  put_number(out, chunk.data.size(), 4);
  const auto name = std::as_bytes(std::span(chunk.fingerprint.bytes));
  out.insert(out.end(), name.begin(), name.end());
}

// Over salt, length, fingerprint and data: the hash of what stands before the data, `begin`, is the
// seed of theirs.
inline std::uint64_t chunk_checksum(std::span<const std::byte> begin,
                                    std::span<const std::byte> data) {
  return format::checksum(data, format::checksum(begin));
}

inline std::uint64_t header_size(const Fingerprint& fingerprint) {
  return has_header(fingerprint) ? kChunkHeaderSize : 0;
}

}  // namespace dedup::store
