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
#include "engine/mpi/checked_message.h"
#include "engine/mpi/topology.h"
#include "engine/protocol/ranks.h"

namespace dedup::engine {

// Collective. Ok if all ranks' statuses are; else, on every rank, the error of the lowest rank that
// has one: the same code everywhere, and the same message. Synchronises.
Status agree(MPI_Comm comm, const Status& mine, Waiting waiting = Waiting::kPolling);

// Collective. The same, and on success the largest of all ranks' values in `value`.
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

// The ranks of a communicator. The topology must outlive it.
class MpiRanks : public Ranks {
 public:
  explicit MpiRanks(const Topology& topology) : topology_(&topology) {}

  int rank() const override { return topology_->rank(); }
  int size() const override { return topology_->size(); }
  bool speaks_for(NodeIndex node) const override { return topology_->speaker_for(node) == rank(); }
  Status agree_max(const Status& mine, std::uint64_t& value, Waiting waiting) const override;
  void broadcast(Bytes& bytes) const override;
  void broadcast(Id128& id) const override;
  std::vector<Bytes> gather(const Bytes& mine) const override;
  std::uint64_t all_max(std::uint64_t value) const override;

 private:
  const Topology* topology_;
};

}  // namespace dedup::engine
