#include "engine/dump/reduction.h"

#include "engine/mpi/agreement.h"
#include "engine/mpi/pace.h"
#include "engine/protocol/failpoint.h"

namespace dedup::engine {
namespace {

constexpr int kTag = 1;

std::uint64_t send_set(MPI_Comm comm, bool far, int to, const plan::FrequentSet& set) {
  Encoder encoder;
  set.encode(encoder);
  if (far) pace_sending(encoder.size());
  send_checked(comm, to, kTag, encoder.bytes());
  return encoder.size();
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
      cost.bytes += send_set(comm, far, rank - step, set);
      set = {};
      return sound;
    }
    if (rank + step >= size) continue;
    Bytes bytes;
    const bool arrived = receive_checked(comm, rank + step, kTag, bytes);
    if (far) pace_received(bytes.size());
    cost.bytes += bytes.size();
    Decoder decoder(bytes);
    const plan::FrequentSet other = plan::FrequentSet::decode(decoder);
    sound = sound && arrived && decoder.ok();
    if (arrived && decoder.ok()) {
      set = plan::FrequentSet::merge(set, other, limits);
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
      Encoder encoder;
      mine.encode(encoder);
      bytes = encoder.take();
    }
    broadcast(topology.leader_comm(), 0, bytes);
    if (topology.nodes().size() > 1) pace_received(bytes.size());
  }
  broadcast(topology.node_comm(), 0, bytes);
  if (topology.size() > 1) taken.bytes += bytes.size();
  if (cost != nullptr) *cost = taken;
  Decoder decoder(bytes);
  plan::FrequentSet result = plan::FrequentSet::decode(decoder);
  if (!sound || !decoder.ok()) {
    return Status(Code::kInternal, "the reduction received another set than was sent");
  }
  return result;
}

}  // namespace dedup::engine
