// The two exchanges among a node's ranks that deduplicate its chunks (engine/chunks/node_chunks.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/chunks/first_error.h"
#include "engine/chunks/node_chunks.h"
#include "engine/mpi/topology.h"

namespace dedup::engine {

// How a node's ranks divide names.
inline Lanes lanes_of(const Topology& topology) {
  return {topology.most_ranks_a_node(), topology.node_size()};
}

// One pair of exchanges: gather(), then, if the round goes on, answer().
class NodeExchange {
 public:
  // `topology` must outlive it.
  explicit NodeExchange(const Topology& topology) : topology_(topology) {}

  // Collective over node_comm. `mine`: this rank's chunks, each once. kIo if something else than
  // was sent arrived here: then nothing may come of it, but it takes part all the same.
  NodeChunks gather(ChunkRecords mine, FirstError& error);

  // Collective over node_comm. For each of this rank's chunks, in the order in which gather() got
  // them, the number of its verdict in `verdicts`. kIo if something else than was sent arrived
  // here.
  Result<std::vector<std::uint32_t>> answer(NodeChunks chunks, const NodeVerdicts& judged,
                                            Numbered<Verdict>& verdicts);

 private:
  const Topology& topology_;
  std::vector<std::uint64_t> sent_;   // records to each rank of the node
  std::vector<std::uint32_t> place_;  // among them of each of this rank's; none: in their order
};

}  // namespace dedup::engine
