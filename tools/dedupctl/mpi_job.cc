// The only part of dedupctl that knows MPI, beside what it asks of the engine.
#include "tools/dedupctl/mpi_job.h"

#include <mpi.h>

#include <cstdlib>

#include "engine/mpi/comm_ranks.h"

namespace dedup::ctl {

bool is_mpi_rank() {
  return std::getenv("PMI_RANK") != nullptr && std::getenv("PMI_SIZE") != nullptr;
}

MpiJob::MpiJob() {
  MPI_Init(nullptr, nullptr);
  ranks_ = std::make_unique<engine::CommRanks>(MPI_COMM_WORLD);
}

MpiJob::~MpiJob() {
  MPI_Finalize();
}

}  // namespace dedup::ctl
