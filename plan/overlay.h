// The log pieces of a block: its newest bytes that are still in some rank's log.
//
// Kept sorted by `begin`, disjoint, none empty; a later insert wins over earlier ones. Pieces that
// continue each other in the file and in the log are one piece, so that a run of small sequential
// writes stays one. Positions are relative to the block, ranges half-open. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/piece.h"
#include "plan/block.h"

namespace dedup::plan {

// Where pieces stand, in their order.
std::vector<Extent> extents_of(std::span<const LogPiece> pieces);

class LogOverlay {
 public:
  bool empty() const { return pieces_.empty(); }
  std::size_t size() const { return pieces_.size(); }  // pieces

  // Logarithmic in the pieces that are there, and linear in those that it hides or removes.
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
  // By where they begin. A tree: a block may have millions that are written in any order.
  using Pieces = std::map<std::uint32_t, LogPiece>;

  // The first piece that ends after `position`.
  Pieces::const_iterator first_after(std::uint32_t position) const;
  // Empties [begin, end), cutting the pieces at its borders.
  void make_room(std::uint32_t begin, std::uint32_t end);

  Pieces pieces_;
};

}  // namespace dedup::plan
