#include "engine/agreement.h"

#include <climits>
#include <numeric>
#include <vector>

#include "base/codec.h"
#include "engine/wait.h"

namespace dedup::engine {
namespace {

// MPI counts are int: longer byte strings travel in pieces.
constexpr std::size_t kLargestCount = std::size_t{1} << 30;

// The smallest of all ranks' values. MPI's code.
int all_min(MPI_Comm comm, int mine, int& result, Waiting waiting) {
  if (waiting == Waiting::kPolling) {
    return PMPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_MIN, comm);
  }
  MPI_Request request;
  const int error = PMPI_Iallreduce(&mine, &result, 1, MPI_INT, MPI_MIN, comm, &request);
  return error == MPI_SUCCESS ? wait(request) : error;
}

}  // namespace

Status agree(MPI_Comm comm, const Status& mine, Waiting waiting) {
  int rank;
  int size;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  const int candidate = mine.is_ok() ? size : rank;
  int failed = size;
  if (all_min(comm, candidate, failed, waiting) != MPI_SUCCESS) {
    return {Code::kUnreachable, "MPI_Allreduce failed: another rank cannot be reached"};
  }
  if (failed == size) return Status::ok();
  Encoder encoder;
  if (rank == failed) {
    encoder.put(static_cast<std::uint32_t>(mine.code()));
    encoder.put(std::string_view(mine.message()));
  }
  Bytes bytes = encoder.take();
  broadcast(comm, failed, bytes);
  Decoder decoder(bytes);
  const auto code = static_cast<Code>(decoder.get<std::uint32_t>());
  return {code, decoder.get_string()};
}

void broadcast(MPI_Comm comm, int root, Bytes& bytes) {
  std::uint64_t size = bytes.size();
  PMPI_Bcast(&size, 1, MPI_UINT64_T, root, comm);
  bytes.resize(size);
  for (std::size_t at = 0; at < size; at += kLargestCount) {
    const auto count = static_cast<int>(std::min(kLargestCount, size - at));
    PMPI_Bcast(bytes.data() + at, count, MPI_BYTE, root, comm);
  }
}

std::vector<Bytes> gather(MPI_Comm comm, const Bytes& mine) {
  int rank;
  int size;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  const auto count = static_cast<int>(mine.size());
  std::vector<int> counts(rank == 0 ? static_cast<std::size_t>(size) : 0);
  PMPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, comm);
  std::vector<int> offsets(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
  Bytes all(counts.empty() ? 0 : static_cast<std::size_t>(offsets.back() + counts.back()));
  PMPI_Gatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), offsets.data(), MPI_BYTE, 0,
               comm);
  std::vector<Bytes> out;
  out.reserve(counts.size());
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto begin = all.begin() + offsets[r];
    out.emplace_back(begin, begin + counts[r]);
  }
  return out;
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

Status MpiRanks::agree(const Status& mine, Waiting waiting) const {
  return engine::agree(topology_->comm(), mine, waiting);
}
void MpiRanks::broadcast(Bytes& bytes) const {
  engine::broadcast(topology_->comm(), 0, bytes);
}
void MpiRanks::broadcast(Id128& id) const {
  PMPI_Bcast(&id, sizeof id, MPI_BYTE, 0, topology_->comm());
}
std::vector<Bytes> MpiRanks::gather(const Bytes& mine) const {
  return engine::gather(topology_->comm(), mine);
}
std::uint64_t MpiRanks::all_max(std::uint64_t value) const {
  return engine::all_max(topology_->comm(), value);
}
std::uint64_t MpiRanks::all_sum(std::uint64_t value) const {
  return engine::all_sum(topology_->comm(), value);
}

}  // namespace dedup::engine
