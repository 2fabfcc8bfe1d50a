// What a file consists of: blocks of pieces.
//
// A file's bytes are seen in blocks of kBlockSpan bytes: block b covers [b * kBlockSpan,
// (b + 1) * kBlockSpan). Each block has a home node that knows its uncommitted state while the file
// is open, and belongs to one recipe shard when it is committed.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/types.h"

namespace dedup {

class Decoder;
class Encoder;

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
  std::uint32_t holders = 0;       // index into Block::holder_sets; meaningless for zeros
  Fingerprint fingerprint;         // meaningless for zeros

  bool is_zero() const { return chunk_length == 0; }
  // Nobody knows what these bytes were: their recipe is lost. No store has a chunk of that name.
  bool is_unknown() const { return !is_zero() && fingerprint == Fingerprint{}; }
  std::uint32_t end() const { return begin + length; }
};

// Pieces sorted by `begin`, disjoint, none empty. What no piece covers was not written: zeros in a
// whole file, "see below" in a layer that lies over another.
struct Block {
  std::vector<Piece> pieces;
  std::vector<NodeSet> holder_sets;  // distinct sets of nodes that hold a chunk; shared by pieces

  bool empty() const { return pieces.empty(); }

  // In recipes and in messages alike; doc/format.md has it byte by byte. Pieces and sets come back
  // as they were. decode() fails the Decoder on a block that cannot be.
  void encode(Encoder& out) const;
  static Block decode(Decoder& in);
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
