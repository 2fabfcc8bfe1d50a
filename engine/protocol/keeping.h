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
        wanted(plan::Redundancy::copies(hints.stripe_parities != 0 ? hints.stripe_parities + 1
                                                                   : hints.replication)
                   .within(nodes)),
        copies(std::min<unsigned>(hints.replication, nodes)),
        left_alone(stripes.is_possible() ? wanted.as_copies() : 0) {
    // As many nodes never have a chunk: one of those that do keeps it.
    if (left_alone != 0 && hints.replication > nodes) copies = left_alone = 1;
  }

  plan::StripeShape stripes;  // of what fewer than K nodes have; not possible: copies are made
  plan::Redundancy wanted;    // of each chunk, at least, when it is committed
  unsigned copies;            // K, at most the number of nodes
  unsigned left_alone;        // with stripes: on how many nodes what K nodes have stays; else 0
};

}  // namespace dedup::engine
