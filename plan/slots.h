// Offsets: where in a node's windows each received chunk goes, from counts alone.
//
// A node's incoming chunks are numbered 0, 1, 2 … over all senders: senders in the order of their
// nodes, and within a node in the order of its ranks (after CALC_OFF, Algorithm 3 of the 2015
// paper, but from the actual numbers for each pair of nodes). Chunk s goes to the node's rank s mod
// ranks, so that its ranks receive alike; a rank's window has room for `per_round` of them at a
// time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dedup::plan {

struct SlotGrid {
  std::uint64_t ranks = 1;      // of the receiving node
  std::uint64_t per_round = 1;  // slots in one rank's window

  std::uint64_t rank_of(std::uint64_t slot) const { return slot % ranks; }
  std::uint64_t round_of(std::uint64_t slot) const { return slot / ranks / per_round; }
  std::uint64_t position_of(std::uint64_t slot) const { return slot / ranks % per_round; }

  // A round's slots are consecutive numbers: the first one of a round.
  std::uint64_t first_of(std::uint64_t round) const { return round * ranks * per_round; }
  // Rounds that `count` incoming chunks take.
  std::uint64_t rounds(std::uint64_t count) const {
    return (count + ranks * per_round - 1) / (ranks * per_round);
  }
  // How many of `count` incoming chunks arrive at a rank in a round, at positions 0, 1, 2 …
  std::uint64_t expected(std::uint64_t count, std::uint64_t rank, std::uint64_t round) const {
    const std::uint64_t first = first_of(round) + rank;
    if (count <= first) return 0;
    return std::min((count - first + ranks - 1) / ranks, per_round);
  }
};

}  // namespace dedup::plan
