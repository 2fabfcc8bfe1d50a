// Blocks of pieces: cutting, laying one over another, collecting pieces of a file into blocks.
//
// All functions keep what is said of a Block: pieces sorted, disjoint, none empty. A piece that is
// cut keeps to its chunk: what is left of it has `chunk_offset` moved accordingly.
// Positions are relative to the block, ranges half-open. Pure functions, no state, so thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/piece.h"
#include "base/types.h"
#include "plan/placement.h"

namespace dedup {

// Pieces sorted by `begin`, disjoint, none empty. What no piece covers was not written: zeros in a
// whole file, "see below" in a layer that lies over another.
struct Block {
  std::vector<Piece> pieces;
  std::vector<plan::Placement> placements;  // distinct ones of chunks; shared by pieces

  bool empty() const { return pieces.empty(); }

  // In recipes and in messages alike; doc/format.md has it byte by byte. Pieces and placements come
  // back as they were. decode() fails the Decoder on a block that cannot be; if that is since it
  // has a kind of placement that this software does not know, the last placement that it got is of
  // it.
  void encode(Encoder& out) const;
  static Block decode(Decoder& in);
};

}  // namespace dedup

namespace dedup::plan {

// Bytes [begin, end) of a block.
struct Extent {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  auto operator<=>(const Extent&) const = default;
};

// Calls f(block number, first byte within the block, bytes) for each block that file bytes
// [offset, offset + length) touch, in ascending order.
template <typename F>
void for_each_block(std::uint64_t offset, std::uint64_t length, F&& f) {
  while (length > 0) {
    const std::uint64_t within = offset % kBlockSpan;
    const std::uint64_t part = std::min(length, kBlockSpan - within);
    f(offset / kBlockSpan, static_cast<std::uint32_t>(within), static_cast<std::uint32_t>(part));
    offset += part;
    length -= part;
  }
}

// The part of `piece` within [begin, end), which must overlap it.
Piece cut(const Piece& piece, std::uint32_t begin, std::uint32_t end);

// A block of which [0, end) is unknown (Piece::is_unknown).
Block unknown_block(std::uint32_t end);
std::uint64_t unknown_bytes(const Block& block);

// The position of `placement` in the block's placements; added if it is not there. Time linear in
// the number of sets.
std::uint32_t intern(Block& block, const Placement& placement);

// `piece` replaces what was in its range; `placement` in place of piece.placement. Binary search
// and one move of the pieces behind it; appending is constant time.
void insert(Block& block, Piece piece, const Placement& placement);

// `above` replaces what `below` has in the ranges of its pieces. One linear merge, or an insert for
// each piece if `above` is small.
void overlay(Block& below, const Block& above);
// The other way round: `above` gets what `below` has where it has nothing.
void underlay(Block& above, Block below);

// Nothing is left at and beyond `end`; outside of [begin, end); within [begin, end).
void truncate(Block& block, std::uint32_t end);
void restrict(Block& block, std::uint32_t begin, std::uint32_t end);
void erase(Block& block, std::uint32_t begin, std::uint32_t end);
// The same for many extents, sorted and disjoint: one linear pass.
void erase(Block& block, std::span<const Extent> extents);

// What `block` has in [begin, end), with only the placements that this needs.
Block slice(const Block& block, std::uint32_t begin, std::uint32_t end);

// The parts of `extents` (sorted, disjoint) that no piece covers: sorted, disjoint.
std::vector<Extent> uncovered(const Block& block, std::span<const Extent> extents);

// Leaves each placement that a piece refers to once, in order of first use.
void compact_placements(Block& block);

// What a block takes in memory, roughly, and in a message, roughly.
std::size_t memory_of(const Block& block);
std::size_t message_size_of(const Block& block);

// A piece of a file, of any length if it is zeros; may span blocks.
struct FilePiece {
  std::uint64_t file_offset = 0;
  std::uint64_t length = 0;
  std::uint32_t chunk_offset = 0;  // the piece's first byte within the chunk
  std::uint32_t chunk_length = 0;  // the whole chunk's length; 0: zeros, no chunk
  std::uint32_t placement = 0;     // index into the builder's placements; meaningless for zeros
  Fingerprint fingerprint;         // meaningless for zeros
};

// Collects pieces of a file into blocks. Pieces may come in any order, ascending is fastest; later
// ones replace earlier ones.
class BlockBuilder {
 public:
  // `placements` must outlive the builder.
  explicit BlockBuilder(std::span<const Placement> placements) : placements_(placements) {}

  void add(const FilePiece& piece);
  // About how long the message with all blocks would be: when to take() them.
  std::size_t message_size() const { return message_size_; }
  // Calls f(block number, Block&&) for each block, ascending; the builder is empty afterwards.
  template <typename F>
  void take(F&& f) {
    for (auto& [number, building] : blocks_) f(number, std::move(building.block));
    blocks_.clear();
    message_size_ = 0;
  }

 private:
  struct Building {
    Block block;
    std::unordered_map<std::uint32_t, std::uint32_t> numbers;  // ours to the block's
  };

  std::span<const Placement> placements_;
  std::map<std::uint64_t, Building> blocks_;
  std::size_t message_size_ = 0;
};

}  // namespace dedup::plan
