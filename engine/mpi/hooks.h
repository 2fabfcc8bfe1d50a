// Where tests get in when a job begins: as base/hooks.h.
#pragma once

#include <mpi.h>

#include "base/status.h"
#include "base/types.h"

namespace dedup::engine {

// Collective over `world`, the job's ranks, before the first file is opened. `node`: the ranks of
// this one's node; `job`: what no other job has. Nothing: a test build reads what it is to do.
Status begin_hooks(MPI_Comm world, MPI_Comm node, const Id128& job);

}  // namespace dedup::engine
