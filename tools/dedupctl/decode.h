// Chunks that no store has as a whole, made from what the stores have of their stripes.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <tuple>
#include <vector>

#include "plan/stripe_decoding.h"
#include "tools/dedupctl/generation.h"

namespace dedup::ctl {

struct LostChunk {
  NamedChunk chunk;
  const plan::StripeUnit* stripe = nullptr;  // which outlives this
  auto unit() const { return std::tie(stripe->stripe, stripe->unit); }
};

// Collective, with the same chunks on all ranks: those of one unit are to follow one another, and
// are made together, by one rank. That has `take` called with the number of each that could be
// made, and its bytes: these are what the chunk's name says, as far as it says anything. Says which
// rank that was; −1: it cannot be made. Copies that are found to be bad do not count from then on.
// Memory: about 16 MiB a rank of what chunks are made from, or one stripe's, where they are made
// and where they are read.
std::vector<int> make_chunks(Generation& generation, std::span<const LostChunk> lost,
                             const std::function<void(std::size_t number, Bytes bytes)>& take);

}  // namespace dedup::ctl
