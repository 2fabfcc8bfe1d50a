#include "engine/dump/twins.h"

#include <algorithm>
#include <bit>

#include "engine/mpi/counts.h"

namespace dedup::engine {
namespace {

constexpr int kTag = 2;

template <typename T>
MPI_Datatype type_of();
template <>
MPI_Datatype type_of<std::uint64_t>() {
  return MPI_UINT64_T;
}
template <>
MPI_Datatype type_of<std::uint8_t>() {
  return MPI_UINT8_T;
}

template <typename T>
void send(MPI_Comm comm, int to, std::span<const T> items) {
  in_pieces_with_end(items.size(), [&](std::uint64_t at, int count) {
    PMPI_Send(items.data() + at, count, type_of<T>(), to, kTag, comm);
  });
}

template <typename T>
std::vector<T> receive(MPI_Comm comm, int from) {
  std::vector<T> items;
  std::uint64_t count = kLargestCount;
  while (count == kLargestCount) {
    MPI_Status status;
    PMPI_Probe(from, kTag, comm, &status);
    int arrived = 0;
    PMPI_Get_count(&status, type_of<T>(), &arrived);
    const std::size_t before = items.size();
    count = static_cast<std::uint64_t>(arrived);
    items.resize(before + count);
    PMPI_Recv(items.data() + before, arrived, type_of<T>(), from, kTag, comm, MPI_STATUS_IGNORE);
  }
  return items;
}

template <typename T>
std::vector<T> swap(MPI_Comm comm, int partner, std::span<const T> items) {
  std::vector<MPI_Request> sent;
  in_pieces_with_end(items.size(), [&](std::uint64_t at, int count) {
    PMPI_Isend(items.data() + at, count, type_of<T>(), partner, kTag, comm, &sent.emplace_back());
  });
  std::vector<T> received = receive<T>(comm, partner);
  for (MPI_Request& request : sent) PMPI_Wait(&request, MPI_STATUS_IGNORE);
  return received;
}

// What went where in one dimension of the hypercube.
struct Step {
  int partner = 0;
  std::vector<bool> went;  // for each hash that was here before
  std::size_t stayed = 0;
};

}  // namespace

Twins::Twins(MPI_Comm comm, std::size_t remembered) : comm_(comm), most_remembered_(remembered) {
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &size_);
  corners_ = static_cast<int>(std::bit_floor(static_cast<unsigned>(size_)));
}

std::vector<std::uint8_t> Twins::find(std::span<const std::uint64_t> hashes) {
  if (rank_ >= corners_) {
    // No corner of its own: the one below takes its hashes along.
    send(comm_, rank_ - corners_, hashes);
    return receive<std::uint8_t>(comm_, rank_ - corners_);
  }
  std::vector<std::uint64_t> here(hashes.begin(), hashes.end());
  const bool has_guest = rank_ + corners_ < size_;
  if (has_guest) {
    const auto guest = receive<std::uint64_t>(comm_, rank_ + corners_);
    here.insert(here.end(), guest.begin(), guest.end());
  }

  std::vector<Step> steps;
  for (int bit = 1; bit < corners_; bit *= 2) {
    Step step{rank_ ^ bit, {}, 0};
    step.went.reserve(here.size());
    std::vector<std::uint64_t> leaving;
    for (const std::uint64_t hash : here) {
      const bool goes = ((static_cast<int>(hash & 0x7fffffff) ^ rank_) & bit) != 0;
      step.went.push_back(goes);
      if (goes) {
        leaving.push_back(hash);
      } else {
        here[step.stayed++] = hash;
      }
    }
    here.resize(step.stayed);
    const auto arrived = swap<std::uint64_t>(comm_, step.partner, leaving);
    here.insert(here.end(), arrived.begin(), arrived.end());
    steps.push_back(std::move(step));
  }

  std::vector<std::uint8_t> flags = judge(here);
  here = {};
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const auto back =
        swap<std::uint8_t>(comm_, step->partner, std::span(flags).subspan(step->stayed));
    std::vector<std::uint8_t> before;
    before.reserve(step->went.size());
    std::size_t stayed = 0;
    std::size_t returned = 0;
    for (const bool went : step->went) before.push_back(went ? back[returned++] : flags[stayed++]);
    flags = std::move(before);
  }
  if (has_guest) {
    send(comm_, rank_ + corners_, std::span<const std::uint8_t>(flags).subspan(hashes.size()));
    flags.resize(hashes.size());
  }
  return flags;
}

// Of all hashes whose home this is.
std::vector<std::uint8_t> Twins::judge(const std::vector<std::uint64_t>& hashes) {
  std::vector<std::uint64_t> twins = hashes;
  std::sort(twins.begin(), twins.end());
  // Those that follow themselves, once each.
  std::size_t count = 0;
  for (std::size_t i = 1; i < twins.size(); ++i) {
    if (twins[i] != twins[i - 1]) continue;
    if (count == 0 || twins[count - 1] != twins[i]) twins[count++] = twins[i];
  }
  twins.resize(count);
  std::vector<std::uint8_t> flags;
  flags.reserve(hashes.size());
  for (const std::uint64_t hash : hashes) {
    const bool has = std::binary_search(twins.begin(), twins.end(), hash) ||
                     std::binary_search(remembered_.begin(), remembered_.end(), hash);
    flags.push_back(has ? 1 : 0);
  }
  remember(std::move(twins));
  return flags;
}

// The newest stay, if there is not room for all.
void Twins::remember(std::vector<std::uint64_t> twins) {
  if (twins.size() + remembered_.size() > most_remembered_) {
    remembered_.clear();
    twins.resize(std::min(twins.size(), most_remembered_));
  }
  const auto old_end = static_cast<std::ptrdiff_t>(remembered_.size());
  remembered_.insert(remembered_.end(), twins.begin(), twins.end());
  std::inplace_merge(remembered_.begin(), remembered_.begin() + old_end, remembered_.end());
}

void Twins::clear() {
  remembered_ = {};
}

}  // namespace dedup::engine
