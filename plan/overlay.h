// The log pieces of a block: its newest bytes that are still in some rank's log.
//
// Kept sorted by `begin`, disjoint, none empty; a later insert wins over earlier ones. Pieces that
// continue each other in the file and in the log are one piece, so that a run of small sequential
// writes stays one. Positions are relative to the block, ranges half-open. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/piece.h"
#include "plan/block.h"

namespace dedup::plan {

class LogOverlay {
 public:
  bool empty() const { return pieces_.empty(); }
  std::span<const LogPiece> pieces() const { return pieces_; }

  // Binary search and one move of the pieces behind; continuing the last piece is constant time.
  void insert(const LogPiece& piece);
  void erase(std::uint32_t begin, std::uint32_t end);
  // Nothing is left at and beyond `end`.
  void truncate(std::uint32_t end);

  // Removes those parts of piece.[begin, end) whose newest bytes are where `piece` says: in that
  // log of that node, at that position. Returns them: sorted, disjoint, not adjacent.
  std::vector<Extent> convert(const LogPiece& piece);

  // The pieces within [begin, end), cut to it.
  std::vector<LogPiece> slice(std::uint32_t begin, std::uint32_t end) const;

 private:
  using Position = std::vector<LogPiece>::iterator;

  // Empties [begin, end), cutting the pieces at its borders; returns where it would be inserted.
  Position make_room(std::uint32_t begin, std::uint32_t end);

  std::vector<LogPiece> pieces_;
};

}  // namespace dedup::plan
