// Offsets: where in a node's windows each received chunk goes, from counts alone.
//
// A node's incoming chunks are numbered 0, 1, 2 … over all senders: senders in the order of their
// nodes, and within a node in the order of its ranks (after CALC_OFF, Algorithm 3 of the 2015
// paper, but from the actual numbers for each pair of nodes). They go round the node's ranks in
// blocks, so that these receive alike, and that chunks which stand together in their sender's
// memory travel together; a rank's window has room for `per_round` of them at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dedup::plan {

struct SlotGrid {
  static constexpr std::uint64_t kLargestBlock = 128;

  std::uint64_t ranks = 1;      // of the receiving node
  std::uint64_t per_round = 1;  // slots in one rank's window; see round_down()

  // As many of `slots` as there are to be in a window, at least seven eighths: a multiple of as
  // large a block as that allows. `slots`: more than 0.
  static std::uint64_t round_down(std::uint64_t slots) {
    std::uint64_t block = 1;
    while (block < kLargestBlock && block * 16 <= slots) block *= 2;
    return slots / block * block;
  }

  // Slots that follow each other in number and in one rank's window: the largest power of two that
  // divides per_round, within limits.
  std::uint64_t block() const { return std::min(kLargestBlock, per_round & (~per_round + 1)); }
  std::uint64_t rank_of(std::uint64_t slot) const { return slot / block() % ranks; }
  // Among all that its rank receives, in all rounds.
  std::uint64_t place_of(std::uint64_t slot) const {
    return slot / (block() * ranks) * block() + slot % block();
  }
  std::uint64_t slot_at(std::uint64_t rank, std::uint64_t place) const {
    return (place / block() * ranks + rank) * block() + place % block();
  }
  std::uint64_t position_of(std::uint64_t slot) const { return place_of(slot) % per_round; }

  // A round's slots are consecutive numbers: the first one of a round.
  std::uint64_t first_of(std::uint64_t round) const { return round * ranks * per_round; }
  // Rounds that `count` incoming chunks take.
  std::uint64_t rounds(std::uint64_t count) const {
    return (count + ranks * per_round - 1) / (ranks * per_round);
  }
  // How many of `count` incoming chunks a rank receives in all rounds, at places 0, 1, 2 …
  std::uint64_t expected(std::uint64_t count, std::uint64_t rank) const {
    const std::uint64_t begin = rank * block();
    const std::uint64_t rest = std::max(count % (block() * ranks), begin) - begin;
    return count / (block() * ranks) * block() + std::min(rest, block());
  }
  // … and in one round, at positions 0, 1, 2 …
  std::uint64_t expected(std::uint64_t count, std::uint64_t rank, std::uint64_t round) const {
    const std::uint64_t first = first_of(round);
    return expected(std::min(std::max(count, first) - first, ranks * per_round), rank);
  }
};

}  // namespace dedup::plan
