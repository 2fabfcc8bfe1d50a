// This process as the only rank of a communicator.
#pragma once

#include <mutex>
#include <optional>

#include "engine/mpi/topology.h"

namespace dedup::engine {

// For what one rank does while the other ranks of a collective call wait for it: the same code as
// for all of them, without a message. Of a job; whoever uses it has the mutex meanwhile, and waits
// for nobody but services.
struct Alone {
  std::mutex mutex;
  std::optional<Topology> topology;  // none before the job has begun, and when it has ended
};

}  // namespace dedup::engine
