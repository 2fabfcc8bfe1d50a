// How well the stores hold a generation, by what is really there.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/status.h"
#include "plan/odds.h"
#include "plan/tally.h"
#include "tools/dedupctl/generation.h"
#include "tools/dedupctl/stripes.h"

namespace dedup::ctl {

// Different chunks, and their bytes.
struct ChunkCount {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
};

// How well a generation is held, and how its chunks are spread.
struct Holding {
  plan::Tally tally;
  Stripes stripes{};
  // Of the chunks that are not lost: those of which copies are kept, by how many there are, and
  // those in stripes, by the number of copies that would do as well.
  std::vector<ChunkCount> of_copies{};
  std::vector<ChunkCount> in_stripes{};
  // What losses are fatal for chunks that are not lost, of positions of stores in the record;
  // copies on stores that the recipe does not name, or names behind 64 others, left out.
  std::set<plan::FatalSet> fatal_sets{};

  ChunkCount unique() const;
};

// The odds that stores which are here, and will be lost, take data of the generation with them:
// chunks, or all copies of a recipe's shard.
plan::LossOdds loss_odds(const Generation& generation, const Holding& holding);

// Collective. Goes through the recipe and looks for every chunk in every store's index, and for all
// parts of its stripe; where too little of that is whole, it is tried whether the chunk can be made
// nevertheless. What is kept less well than is wanted is short. Memory, beside that of stripes: a
// bit for each chunk in an index, and about 60 bytes for each that is in none, spread over the
// ranks.
Result<Holding> measure(Generation& generation, plan::Redundancy wanted);

}  // namespace dedup::ctl
