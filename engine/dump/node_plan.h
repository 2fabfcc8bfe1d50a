// The dealing of one round of a dump, as all nodes agree on it and as a node's ranks are told.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/chunks/judge.h"
#include "engine/chunks/sends.h"
#include "engine/mpi/topology.h"
#include "plan/deal.h"
#include "service/client.h"

namespace dedup::engine {

struct DealingRequest {
  unsigned copies = 1;
  unsigned left_alone = 0;  // see plan::DealingInput
  bool ring = false;
  unsigned group = 0;                 // see plan::DealingInput
  std::uint32_t turn = 0;             // of any rank: the same on all
  std::uint32_t longest_chunk = 0;    // of any rank
  std::uint64_t slots_per_round = 1;  // of one rank's window
  Id128 identity;
  const plan::FrequentSet* result = nullptr;
  bool is_counted = false;  // the result is what this rank has of it; else all of it
  ChunkTotals mine;
  Status status;  // of this rank so far
};

struct NodePlan {
  bool proceed = false;  // false on all ranks if a rank has an error
  plan::Dealer dealer;
  std::uint64_t rounds = 0;    // of the exchange; the same on all ranks
  std::uint64_t incoming = 0;  // chunks that this node receives through it
  // Chunks outside the result of this node's lower ranks, and of all its ranks.
  ChunkTotals before;
  ChunkTotals all;
  // Represented nodes that this node sends to, by node.
  std::vector<Target> targets;
};

// Collective over the topology's communicator. Each leader contributes its node's totals and free
// space in one allgather, and computes the dealing; its ranks are told. Where nobody has the whole
// result, each node says in another allgather to whom it sends how much of its part, once the order
// of partners is known, and again if some have to be passed over for want of room. Nodes that the
// communicator does not reach take part as partners: some at first, all if there is not enough room
// otherwise; leaders ask their services. `order`: the order of nodes, kept between dumps (used on
// leaders only). `failure`: this rank's own part in the plan not proceeding; kNoSpace on leaders if
// there is no room.
NodePlan agree_on_dealing(const Topology& topology, service::Client& client,
                          const DealingRequest& request, std::vector<NodeIndex>& order,
                          Status& failure);

}  // namespace dedup::engine
