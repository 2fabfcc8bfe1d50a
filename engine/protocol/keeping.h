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
      : copies(std::min<unsigned>(hints.replication, nodes)),
        stripes(plan::StripeShape{hints.stripe_data, hints.stripe_parities}.within(nodes)),
        wanted(plan::Redundancy::copies(hints.stripe_parities != 0 ? hints.stripe_parities + 1
                                                                   : hints.replication)
                   .within(nodes)) {}

  unsigned copies;            // K, at most the number of nodes
  plan::StripeShape stripes;  // of what fewer than K nodes have; not possible: copies are made
  plan::Redundancy wanted;    // of each chunk, at least
};

}  // namespace dedup::engine
