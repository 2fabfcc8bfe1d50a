#include "engine/mpi/comm_ranks.h"

#include "engine/mpi/checked_message.h"
#include "engine/mpi/counts.h"
#include "engine/mpi/wait.h"

namespace dedup::engine {
namespace {

MPI_Op op_of(Combining how) {
  switch (how) {
    case Combining::kSum:
      return MPI_SUM;
    case Combining::kLeast:
      return MPI_MIN;
    case Combining::kLargest:
      break;
  }
  return MPI_MAX;
}

}  // namespace

CommRanks::CommRanks(MPI_Comm comm) : comm_(comm) {
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &size_);
}

Status CommRanks::combine(Combining how, std::span<std::uint64_t> values, Waiting waiting) const {
  const int count = count_of(values.size());
  int error;
  if (waiting == Waiting::kPolling) {
    error = PMPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_UINT64_T, op_of(how), comm_);
  } else {
    MPI_Request request;
    error = PMPI_Iallreduce(MPI_IN_PLACE, values.data(), count, MPI_UINT64_T, op_of(how), comm_,
                            &request);
    if (error == MPI_SUCCESS) error = wait(request);
  }
  if (error == MPI_SUCCESS) return Status::ok();
  return {Code::kUnreachable, "MPI_Allreduce failed: another rank cannot be reached"};
}

void CommRanks::broadcast(Bytes& bytes, int root) const {
  engine::broadcast(comm_, root, bytes);
}

void CommRanks::broadcast_patiently(Bytes& bytes, int root) const {
  engine::broadcast(comm_, root, bytes, Waiting::kPatient);
}

void CommRanks::broadcast(Id128& id) const {
  broadcast_value(comm_, 0, id);
}

std::vector<Bytes> CommRanks::gather(const Bytes& mine) const {
  return engine::gather(comm_, mine);
}

std::vector<Bytes> CommRanks::exchange(const std::vector<Bytes>& to) const {
  return engine::exchange(comm_, to);
}

void CommRanks::exchange_letters(std::span<const int> partners, std::span<const Letter> to,
                                 std::vector<Letter>& from,
                                 const std::function<void()>& meanwhile) const {
  engine::exchange_letters(comm_, partners, to, from, meanwhile);
}

}  // namespace dedup::engine
