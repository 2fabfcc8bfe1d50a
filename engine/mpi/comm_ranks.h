// The ranks of a communicator. An error of MPI ends the job or not as the communicator's error
// handler says.
#pragma once

#include <mpi.h>

#include "base/ranks.h"

namespace dedup::engine {

// Of a communicator that outlives it and that nobody else uses meanwhile.
class CommRanks : public Ranks {
 public:
  explicit CommRanks(MPI_Comm comm);

  MPI_Comm comm() const { return comm_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status combine(Combining how, std::span<std::uint64_t> values, Waiting waiting) const override;
  void broadcast(Bytes& bytes, int root) const override;
  void broadcast_patiently(Bytes& bytes, int root) const override;
  void broadcast(Id128& id) const override;
  std::vector<Bytes> gather(const Bytes& mine) const override;
  std::vector<Bytes> exchange(const std::vector<Bytes>& to) const override;
  void exchange_letters(std::span<const int> partners, std::span<const Letter> to,
                        std::vector<Letter>& from,
                        const std::function<void()>& meanwhile) const override;

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
};

}  // namespace dedup::engine
