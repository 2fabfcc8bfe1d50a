// Which chunks of a dump may have a twin: the same content on another rank.
//
// Each rank has its chunks' names (base/chunk_namer.h), 64 bits of them. They meet at a home rank,
// chosen by these bits themselves, which answers for each whether it came more than once. They get
// there and the answers back along a hypercube: log2(ranks) exchanges with one partner each, in
// place of a message from everybody to everybody. Nothing is left out (unlike the reduction, which
// keeps F chunks): nobody else has to hear of a chunk without a twin.
//
// Costs a rank with C chunks: log2(ranks) times two messages each way, of about 4 C bytes to the
// home and C / 2 bytes back; 16 bytes a chunk and log2(ranks) bits while it runs.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

namespace dedup::engine {

// One thread at a time.
class Twins {
 public:
  // `remembered`: how many hashes of twins this rank keeps between calls, at most; of all calls on
  // all ranks together so many times the ranks.
  Twins(MPI_Comm comm, std::size_t remembered);

  // Collective. For each of this rank's hashes 1 if it came more than once in this call, on this or
  // other ranks, or had in an earlier one; else 0.
  std::vector<std::uint8_t> find(std::span<const std::uint64_t> hashes);

  // Forgets earlier calls. The same on all ranks, at the same place among the calls.
  void clear();
  // Local: whether find() knows of hashes of earlier calls here.
  bool remembers() const { return !remembered_.empty(); }

 private:
  std::vector<std::uint8_t> judge(const std::vector<std::uint64_t>& hashes);
  void remember(std::vector<std::uint64_t> twins);

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
  int corners_ = 1;  // of the hypercube: the largest power of two that is not above size_
  std::size_t most_remembered_;
  std::vector<std::uint64_t> remembered_;  // sorted
};

}  // namespace dedup::engine
