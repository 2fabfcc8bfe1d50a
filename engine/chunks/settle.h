// The last stage of a round, once all ranks have agreed that it went well: what stands in the
// recipe, and what later rounds need not ask again. Pure.
#pragma once

#include <utility>
#include <vector>

#include "base/numbered.h"
#include "engine/chunks/judge.h"
#include "engine/chunks/name_chunks.h"
#include "plan/deal.h"
#include "plan/placement.h"
#include "plan/reduce.h"

namespace dedup::engine {

// Gives each of the round's pieces its chunk's name and placement, which it numbers in
// `placements`.
void finish_pieces(const NamedChunks& chunks, const Verdicts& verdicts,
                   Numbered<plan::Placement>& placements);

// Of the chunks in `result` those that this rank, the `rank`-th of its node, decides about, and who
// holds them in the end.
std::vector<std::pair<Fingerprint, plan::Placement>> settled_part(const plan::FrequentSet& result,
                                                                  const plan::Dealer& dealer,
                                                                  int rank, const Lanes& lanes);

}  // namespace dedup::engine
