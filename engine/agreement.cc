#include "engine/agreement.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "base/codec.h"
#include "base/xxh3.h"
#include "engine/wait.h"
#include "hints/hints.h"

namespace dedup::engine {
namespace {

// MPI counts are int: longer byte strings travel in pieces.
constexpr std::size_t kLargestCount = std::size_t{1} << 30;

// Shorter byte strings, with their size before them, are broadcast in one message of this size.
constexpr std::size_t kFirstMessage = 1024;

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
  Encoder encoder;
  encoder.put(std::string_view(text));
  Bytes bytes = encoder.take();
  broadcast(comm, 0, bytes);
  const std::string first = Decoder(bytes).get_string();
  Status mine;
  if (first != text) {
    mine = Status(Code::kNotSame, what + ": " + hints::first_difference(first, text));
  }
  return agree(comm, mine);
}

void broadcast(MPI_Comm comm, int root, Bytes& bytes) {
  std::array<std::byte, kFirstMessage> first{};
  std::uint64_t size = bytes.size();
  const std::span beginning = std::span(first).subspan(sizeof size);
  std::memcpy(first.data(), &size, sizeof size);
  std::copy_n(bytes.begin(), std::min<std::size_t>(size, beginning.size()), beginning.begin());
  PMPI_Bcast(first.data(), kFirstMessage, MPI_BYTE, root, comm);
  std::memcpy(&size, first.data(), sizeof size);
  bytes.resize(size);
  const std::size_t begun = std::min<std::size_t>(size, beginning.size());
  std::copy_n(beginning.begin(), begun, bytes.begin());
  for (std::size_t at = begun; at < size; at += kLargestCount) {
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

Status MpiRanks::agree_max(const Status& mine, std::uint64_t& value, Waiting waiting) const {
  return engine::agree_max(topology_->comm(), mine, value, waiting);
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

}  // namespace dedup::engine
