// The last stage of a round, once all ranks have agreed that it went well: what stands in the
// recipe, and what later rounds need not ask again. Pure.
#pragma once

#include <utility>
#include <vector>

#include "base/numbered.h"
#include "engine/chunks/judge.h"
#include "engine/chunks/name_chunks.h"
#include "plan/deal.h"
#include "plan/reduce.h"

namespace dedup::engine {

// Gives each of the round's pieces its chunk's name and holders, which it numbers in `holder_sets`.
void finish_pieces(const NamedChunks& chunks, const Verdicts& verdicts,
                   Numbered<NodeSet>& holder_sets);

// Of the chunks in `result` those that this rank, the `rank`-th of `ranks` of its node, decides
// about, and who holds them in the end.
std::vector<std::pair<Fingerprint, NodeSet>> settled_part(const plan::FrequentSet& result,
                                                          const plan::Dealer& dealer, int rank,
                                                          int ranks);

}  // namespace dedup::engine
