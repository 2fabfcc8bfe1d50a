// The MPI job that this process is a rank of, if an mpiexec has started it.
#pragma once

#include <memory>

#include "base/ranks.h"

namespace dedup::ctl {

// Whether an mpiexec has started this process.
bool is_mpi_rank();

// MPI, from its beginning to its end.
class MpiJob {
 public:
  MpiJob();
  // Returns when all ranks have got here.
  ~MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  const Ranks& ranks() const { return *ranks_; }

 private:
  std::unique_ptr<Ranks> ranks_;
};

}  // namespace dedup::ctl
