// The processes that work together on the stores of several nodes: the ranks of an MPI job, or this
// process alone.
//
// All members are called by all ranks, in the same order ("collective"). Rank 0 decides and prints.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace dedup::ctl {

class Group {
 public:
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // All ranks' bytes, in order of ranks, on rank 0; nothing elsewhere.
  virtual std::vector<Bytes> gather(const Bytes& mine) = 0;
  // The root's bytes on all ranks.
  virtual void broadcast(int root, Bytes& bytes) = 0;
  // Element by element, the sum over all ranks, or the smallest, on all of them. Of values below
  // 2^63: MPICH 4.0.2 compares MPI_UINT64_T as if it had a sign.
  virtual void sum(std::span<std::uint64_t> values) = 0;
  virtual void minimum(std::span<std::uint64_t> values) = 0;
  // to[r] goes to rank r; what comes back is from each rank. The receiver knows how much that is.
  virtual void exchange(std::span<const Bytes> to, std::span<Bytes> from) = 0;
  // Nobody goes on before all have got here, unless this one asks nobody to.
  virtual void end() {}

  bool is_root() const { return rank() == 0; }
  // One outcome on all ranks: the error of the lowest rank that has one.
  Status agree(const Status& mine);
};

// This process alone.
std::unique_ptr<Group> make_group_of_one();

// Whether an mpiexec has started this process.
bool is_mpi_rank();
// The job that this process belongs to. Begins MPI; the group's end() ends it.
std::unique_ptr<Group> make_mpi_group();

}  // namespace dedup::ctl
