// Collective helpers: one outcome, and one value, on all ranks of a communicator.
//
// MPI's own failures are not handled here: they end the job (topology.h), since there is nobody
// left to agree with.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/types.h"
#include "engine/mpi/comm_ranks.h"
#include "engine/mpi/topology.h"

namespace dedup::engine {

// Collective. As Ranks has them, of a communicator's ranks.
Status agree(MPI_Comm comm, const Status& mine, Waiting waiting = Waiting::kPolling);
Status agree_max(MPI_Comm comm, const Status& mine, std::uint64_t& value,
                 Waiting waiting = Waiting::kPolling);

// Collective. kNotSame on all ranks unless the ranks' texts are equal, lines of the form
// name=value: the message is `what` and the first name that differs, with two values. On success
// `value` is the largest of all ranks'.
Status agree_same(MPI_Comm comm, const std::string& what, const std::string& text,
                  std::uint64_t* value = nullptr);

// Collective: the largest, or the sum, over all ranks.
std::uint64_t all_max(MPI_Comm comm, std::uint64_t value);
template <std::size_t kCount>
std::array<std::uint64_t, kCount> all_max(MPI_Comm comm,
                                          const std::array<std::uint64_t, kCount>& values) {
  std::array<std::uint64_t, kCount> result{};
  PMPI_Allreduce(values.data(), result.data(), static_cast<int>(kCount), MPI_UINT64_T, MPI_MAX,
                 comm);
  return result;
}
std::uint64_t all_sum(MPI_Comm comm, std::uint64_t value);

// The ranks of a topology, which must outlive it.
class MpiRanks final : public CommRanks {
 public:
  explicit MpiRanks(const Topology& topology) : CommRanks(topology.comm()), topology_(&topology) {}

  int speaker_for(NodeIndex node) const override { return topology_->speaker_for(node); }

 private:
  const Topology* topology_;
};

}  // namespace dedup::engine
