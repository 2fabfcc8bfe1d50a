// engine/protocol/failpoint.h in a test build.
//
// DEDUP_TEST_KILL=step:count:rank makes the given rank of MPI_COMM_WORLD send itself SIGKILL when
// it passes `step` for the count-th time. DEDUP_TEST_KILL_HOST=FIFO, on a host whose first process
// ends when it reads from that FIFO (test/cluster): a byte is written into it and the process
// stops, so that the whole host dies there. DEDUP_TEST_KILL_PIDS=path, of a file with process ids:
// these are killed in its place, and it goes on when they are gone.
#pragma once

namespace dedup::engine {

// This process's rank in MPI_COMM_WORLD; before the first step.
void set_failpoint_rank(int rank);

}  // namespace dedup::engine
