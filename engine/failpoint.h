// Named steps at which a test can kill this process.
//
// DEDUP_TEST_KILL=step:count:rank makes the given rank of MPI_COMM_WORLD send itself SIGKILL when
// it passes `step` for the count-th time. Costs one comparison when the variable is not set.
#pragma once

namespace dedup::engine {

void failpoint(const char* step);

}  // namespace dedup::engine
