// Waiting for MPI while others work.
//
// MPI waits by polling: a rank that waits for long keeps a core from whoever it waits for (the
// node's service, ranks that share the core), and the kernel, to which it looks as busy as they do,
// does not spread them over the cores. So what may take long is started without blocking, and
// waited for here: by polling at first, then with sleeps that grow with the time waited.
#pragma once

#include <mpi.h>

namespace dedup::engine {

// Until `request` is complete; returns MPI's code. Sleeps are an eighth of the time waited, and 0.2
// ms at most. A nonblocking collective goes on only when it is tested: each of its steps may wait
// for a rank that sleeps. Any thread.
int wait(MPI_Request& request);

}  // namespace dedup::engine
