// The tree that merges the nodes' frequent chunks (see plan/reduce.h).
#pragma once

#include "engine/mpi/topology.h"
#include "plan/reduce.h"

namespace dedup::engine {

// What a reduction, or counting (counting.h), took of this rank.
struct ReductionCost {
  std::uint64_t bytes = 0;     // that it sent and received, the result counted once
  std::uint64_t messages = 0;  // that it sent and received
  std::uint64_t merges = 0;    // of two sets

  void add_message(std::uint64_t size) {
    bytes += size;
    ++messages;
  }
};

// Collective over the topology's communicator. `mine` is finished; the ranks of a node put in
// disjoint fingerprints. Returns the same on all ranks: the merged set without singles. Two trees,
// over the ranks of each node and over the nodes' leaders, then a broadcast down both:
// 2 (log2 ranks a node + log2 nodes) messages one after the other, each of at most
// F * (46 + 3 K) + 6 * nodes bytes. Fills in `cost`.
Result<plan::FrequentSet> reduce(const Topology& topology, plan::FrequentSet mine,
                                 const plan::ReduceLimits& limits, ReductionCost* cost = nullptr);

}  // namespace dedup::engine
