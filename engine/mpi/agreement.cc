#include "engine/mpi/agreement.h"

#include "base/fields.h"
#include "base/xxh3.h"
#include "engine/mpi/wait.h"
#include "hints/hints.h"

namespace dedup::engine {
namespace {

// A rank's failure, or 0, and its value.
using Pair = std::array<std::uint64_t, 2>;

// The largest of all ranks'. MPI's code.
int all_max(MPI_Comm comm, const Pair& mine, Pair& result, Waiting waiting) {
  if (waiting == Waiting::kPolling) {
    return PMPI_Allreduce(mine.data(), result.data(), 2, MPI_UINT64_T, MPI_MAX, comm);
  }
  MPI_Request request;
  const int error =
      PMPI_Iallreduce(mine.data(), result.data(), 2, MPI_UINT64_T, MPI_MAX, comm, &request);
  return error == MPI_SUCCESS ? wait(request) : error;
}

}  // namespace

Status agree(MPI_Comm comm, const Status& mine, Waiting waiting) {
  std::uint64_t nothing = 0;
  return agree_max(comm, mine, nothing, waiting);
}

Status agree_max(MPI_Comm comm, const Status& mine, std::uint64_t& value, Waiting waiting) {
  int rank;
  int size;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  // The larger, the lower the rank.
  const auto failure = static_cast<std::uint64_t>(mine.is_ok() ? 0 : size - rank);
  Pair result{};
  if (all_max(comm, {failure, value}, result, waiting) != MPI_SUCCESS) {
    return {Code::kUnreachable, "MPI_Allreduce failed: another rank cannot be reached"};
  }
  if (result[0] == 0) {
    value = result[1];
    return Status::ok();
  }
  const int failed = size - static_cast<int>(result[0]);
  Encoder encoder;
  if (rank == failed) put_status(encoder, mine);
  Bytes bytes = encoder.take();
  broadcast(comm, failed, bytes);
  Decoder decoder(bytes);
  return get_status(decoder);
}

Status agree_same(MPI_Comm comm, const std::string& what, const std::string& text,
                  std::uint64_t* value) {
  const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  // The largest of the hashes is the smallest too if all are equal.
  const auto largest = all_max<3>(comm, {hash, ~hash, value == nullptr ? 0 : *value});
  if (largest[0] == ~largest[1]) {
    if (value != nullptr) *value = largest[2];
    return Status::ok();
  }
  Bytes bytes = encoded(text);
  broadcast(comm, 0, bytes);
  const std::string first = decoded<std::string>(bytes).value_or("");
  Status mine;
  if (first != text) {
    mine = Status(Code::kNotSame, what + ": " + hints::first_difference(first, text));
  }
  return agree(comm, mine);
}

std::uint64_t all_max(MPI_Comm comm, std::uint64_t value) {
  std::uint64_t result = 0;
  PMPI_Allreduce(&value, &result, 1, MPI_UINT64_T, MPI_MAX, comm);
  return result;
}

std::uint64_t all_sum(MPI_Comm comm, std::uint64_t value) {
  std::uint64_t result = 0;
  PMPI_Allreduce(&value, &result, 1, MPI_UINT64_T, MPI_SUM, comm);
  return result;
}

Status MpiRanks::agree_max(const Status& mine, std::uint64_t& value, Waiting waiting) const {
  return engine::agree_max(topology_->comm(), mine, value, waiting);
}
void MpiRanks::broadcast(Bytes& bytes) const {
  engine::broadcast(topology_->comm(), 0, bytes);
}
void MpiRanks::broadcast(Id128& id) const {
  broadcast_value(topology_->comm(), 0, id);
}
std::vector<Bytes> MpiRanks::gather(const Bytes& mine) const {
  return engine::gather(topology_->comm(), mine);
}
std::uint64_t MpiRanks::all_max(std::uint64_t value) const {
  return engine::all_max(topology_->comm(), value);
}

}  // namespace dedup::engine
