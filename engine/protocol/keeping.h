// How well a file's chunks are to be kept in a job, as its hints ask for and its nodes allow.
#pragma once

#include <algorithm>

#include "base/types.h"
#include "hints/hints.h"
#include "plan/placement.h"
#include "plan/stripes.h"

namespace dedup::engine {

struct Keeping {
  Keeping(const hints::Hints& hints, NodeIndex nodes)
      : stripes(plan::StripeShape{hints.stripe_data, hints.stripe_parities}.within(nodes)),
        copies(stripes.is_possible() ? hints.replication
                                     : std::min<unsigned>(hints.replication, nodes)),
        wanted(plan::Redundancy::copies(hints.stripe_parities != 0 ? hints.stripe_parities + 1
                                                                   : hints.replication)
                   .within(nodes)) {}

  // With stripes, on how many nodes a chunk stays that K nodes have; 0: copies are made.
  unsigned left_alone() const { return stripes.is_possible() ? wanted.as_copies() : 0; }

  plan::StripeShape stripes;  // of what fewer than K nodes have; not possible: copies are made
  unsigned copies;            // K; if copies are made at most the number of nodes
  plan::Redundancy wanted;    // of each chunk, at least
};

}  // namespace dedup::engine
