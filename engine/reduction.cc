#include "engine/reduction.h"

#include <algorithm>

#include "engine/agreement.h"
#include "engine/failpoint.h"
#include "engine/pace.h"

namespace dedup::engine {
namespace {

constexpr int kTag = 1;
constexpr std::size_t kLargestCount = std::size_t{1} << 30;

std::uint64_t send_set(MPI_Comm comm, bool far, int to, const plan::FrequentSet& set) {
  Encoder encoder;
  set.encode(encoder);
  if (far) pace_sending(encoder.size());
  const std::uint64_t size = encoder.size();
  PMPI_Send(&size, 1, MPI_UINT64_T, to, kTag, comm);
  for (std::size_t at = 0; at < size; at += kLargestCount) {
    PMPI_Send(encoder.bytes().data() + at, static_cast<int>(std::min(kLargestCount, size - at)),
              MPI_BYTE, to, kTag, comm);
  }
  return size;
}

Bytes receive_bytes(MPI_Comm comm, int from) {
  std::uint64_t size = 0;
  PMPI_Recv(&size, 1, MPI_UINT64_T, from, kTag, comm, MPI_STATUS_IGNORE);
  Bytes bytes(size);
  for (std::size_t at = 0; at < size; at += kLargestCount) {
    PMPI_Recv(bytes.data() + at, static_cast<int>(std::min(kLargestCount, size - at)), MPI_BYTE,
              from, kTag, comm, MPI_STATUS_IGNORE);
  }
  return bytes;
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
    const Bytes bytes = receive_bytes(comm, rank + step);
    if (far) pace_received(bytes.size());
    cost.bytes += bytes.size();
    Decoder decoder(bytes);
    const plan::FrequentSet other = plan::FrequentSet::decode(decoder);
    sound = sound && decoder.ok();
    if (decoder.ok()) {
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
    return Status(Code::kInternal, "the reduction received a message that makes no sense");
  }
  return result;
}

}  // namespace dedup::engine
