#include "engine/dump/reduction.h"

#include "base/fields.h"
#include "engine/mpi/checked_message.h"
#include "engine/mpi/pace.h"
#include "engine/protocol/failpoint.h"

namespace dedup::engine {
namespace {

constexpr int kTag = 1;

std::uint64_t send_set(MPI_Comm comm, bool far, int to, const plan::FrequentSet& set) {
  const Bytes bytes = encoded(set);
  if (far) pace_sending(bytes.size());
  send_checked(comm, to, kTag, bytes);
  return bytes.size();
}

// A binomial tree; the whole is on rank 0 then. False if what arrived made no sense. `far`: between
// nodes.
bool merge_to_root(MPI_Comm comm, bool far, plan::FrequentSet& set,
                   const plan::ReduceLimits& limits, ReductionCost& cost) {
  int rank;
  int size;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  bool sound = true;
  for (int step = 1; step < size; step *= 2) {
    failpoint("dump.reducing");
    if ((rank & step) != 0) {
      cost.add_message(send_set(comm, far, rank - step, set));
      set = {};
      return sound;
    }
    if (rank + step >= size) continue;
    Bytes bytes;
    const bool arrived = receive_checked(comm, rank + step, kTag, bytes);
    if (far) pace_received(bytes.size());
    cost.add_message(bytes.size());
    const auto other = decoded<plan::FrequentSet>(bytes);
    sound = sound && arrived && other;
    if (arrived && other) {
      set = plan::FrequentSet::merge(set, *other, limits);
      ++cost.merges;
    }
  }
  return sound;
}

}  // namespace

Result<plan::FrequentSet> reduce(const Topology& topology, plan::FrequentSet mine,
                                 const plan::ReduceLimits& limits, ReductionCost* cost) {
  ReductionCost taken;
  bool sound = merge_to_root(topology.node_comm(), false, mine, limits, taken);
  Bytes bytes;
  if (topology.is_leader()) {
    sound = merge_to_root(topology.leader_comm(), true, mine, limits, taken) && sound;
    int rank;
    PMPI_Comm_rank(topology.leader_comm(), &rank);
    if (rank == 0) {
      mine.drop_singles();
      bytes = encoded(mine);
    }
    broadcast(topology.leader_comm(), 0, bytes);
    if (topology.nodes().size() > 1) pace_received(bytes.size());
  }
  broadcast(topology.node_comm(), 0, bytes);
  if (topology.size() > 1) taken.add_message(bytes.size());
  if (cost != nullptr) *cost = taken;
  auto result = decoded<plan::FrequentSet>(bytes);
  if (!sound || !result) {
    return Status(Code::kInternal, "the reduction received another set than was sent");
  }
  return *std::move(result);
}

}  // namespace dedup::engine
