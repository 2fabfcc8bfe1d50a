// What becomes of a chunk of this rank.
#pragma once

#include <compare>
#include <vector>

#include "base/types.h"
#include "plan/placement.h"

namespace dedup::engine {

// Of the ranks of a node that have a chunk, one is told to keep and send it; the others only learn
// who holds it.
struct Verdict {
  bool keep = false;               // append it to this node's store
  std::vector<NodeIndex> targets;  // send a copy to each
  plan::Placement placement;       // in the end
  auto operator<=>(const Verdict&) const = default;
};

}  // namespace dedup::engine
