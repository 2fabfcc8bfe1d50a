// What a file consists of: blocks of pieces (plan/block.h).
//
// A file's bytes are seen in blocks of kBlockSpan bytes: block b covers [b * kBlockSpan,
// (b + 1) * kBlockSpan). Each block has a home node that knows its uncommitted state while the file
// is open, and belongs to one recipe shard when it is committed.
#pragma once

#include <cstdint>
#include <limits>

#include "base/types.h"

namespace dedup {

// File offsets are signed 64-bit numbers to MPI.
inline constexpr std::uint64_t kMaxOffset = std::numeric_limits<std::int64_t>::max();
inline constexpr std::uint64_t kBlockSpan = std::uint64_t{4} << 20;
inline constexpr std::uint64_t kBlocks = kMaxOffset / kBlockSpan + 1;  // that a file can have
inline constexpr std::uint32_t kMaxChunkSize = std::uint32_t{1} << 20;
inline constexpr std::uint32_t kMinChunkSize = 512;

// Part of a block whose bytes are part of one chunk, or zeros. 56 bytes.
struct Piece {
  std::uint32_t begin = 0;         // first byte, relative to the block
  std::uint32_t length = 0;        // bytes; begin + length <= kBlockSpan
  std::uint32_t chunk_offset = 0;  // the piece's first byte within the chunk
  std::uint32_t chunk_length = 0;  // the whole chunk's length; 0: the piece is zeros, no chunk
  std::uint32_t placement = 0;     // index into Block::placements; meaningless for zeros
  Fingerprint fingerprint;         // meaningless for zeros

  bool is_zero() const { return chunk_length == 0; }
  // Nobody knows what these bytes were: their recipe is lost. No store has a chunk of that name.
  bool is_unknown() const { return !is_zero() && fingerprint == Fingerprint{}; }
  std::uint32_t end() const { return begin + length; }
};

// A chunk and its length.
struct NamedChunk {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  bool possible() const { return length != 0 && length <= kMaxChunkSize; }
  bool operator==(const NamedChunk&) const = default;
};

// Part of a block whose newest bytes are still in a rank's log on its node.
struct LogPiece {
  std::uint32_t begin = 0;  // relative to the block
  std::uint32_t length = 0;
  NodeIndex node = kNoNode;      // where the log is
  std::uint64_t log = 0;         // the log's number on that node
  std::uint64_t log_offset = 0;  // the piece's first byte within the log

  std::uint32_t end() const { return begin + length; }
  // Of what came in a message.
  bool possible() const {
    return length > 0 && length <= kBlockSpan && begin <= kBlockSpan - length && node != kNoNode &&
           log_offset <= kMaxOffset;
  }
};

}  // namespace dedup
