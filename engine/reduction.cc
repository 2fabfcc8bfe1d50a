#include "engine/reduction.h"

#include <algorithm>

#include "engine/agreement.h"
#include "engine/failpoint.h"

namespace dedup::engine {
namespace {

constexpr int kTag = 1;
constexpr std::size_t kLargestCount = std::size_t{1} << 30;

void send_set(MPI_Comm comm, int to, const plan::FrequentSet& set) {
  Encoder encoder;
  set.encode(encoder);
  const std::uint64_t size = encoder.size();
  PMPI_Send(&size, 1, MPI_UINT64_T, to, kTag, comm);
  for (std::size_t at = 0; at < size; at += kLargestCount) {
    PMPI_Send(encoder.bytes().data() + at, static_cast<int>(std::min(kLargestCount, size - at)),
              MPI_BYTE, to, kTag, comm);
  }
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

// A binomial tree; the whole is on rank 0 then. False if what arrived made no sense.
bool merge_to_root(MPI_Comm comm, plan::FrequentSet& set, const plan::ReduceLimits& limits) {
  int rank;
  int size;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  bool sound = true;
  for (int step = 1; step < size; step *= 2) {
    failpoint("dump.reducing");
    if ((rank & step) != 0) {
      send_set(comm, rank - step, set);
      set = {};
      return sound;
    }
    if (rank + step >= size) continue;
    const Bytes bytes = receive_bytes(comm, rank + step);
    Decoder decoder(bytes);
    const plan::FrequentSet other = plan::FrequentSet::decode(decoder);
    sound = sound && decoder.ok();
    if (decoder.ok()) set = plan::FrequentSet::merge(set, other, limits);
  }
  return sound;
}

}  // namespace

Result<plan::FrequentSet> reduce(const Topology& topology, plan::FrequentSet mine,
                                 const plan::ReduceLimits& limits) {
  bool sound = merge_to_root(topology.node_comm(), mine, limits);
  Bytes bytes;
  if (topology.is_leader()) {
    sound = merge_to_root(topology.leader_comm(), mine, limits) && sound;
    int rank;
    PMPI_Comm_rank(topology.leader_comm(), &rank);
    if (rank == 0) {
      mine.drop_singles();
      Encoder encoder;
      mine.encode(encoder);
      bytes = encoder.take();
    }
    broadcast(topology.leader_comm(), 0, bytes);
  }
  broadcast(topology.node_comm(), 0, bytes);
  Decoder decoder(bytes);
  plan::FrequentSet result = plan::FrequentSet::decode(decoder);
  if (!sound || !decoder.ok()) {
    return Status(Code::kInternal, "the reduction received a message that makes no sense");
  }
  return result;
}

}  // namespace dedup::engine
