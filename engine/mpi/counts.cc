#include "engine/mpi/counts.h"

#include <mpi.h>

#include <string>

#include "base/warn.h"

namespace dedup::engine {

int count_of(std::uint64_t items) {
  if (items > kLargestCount) {
    say_error("this rank ends, since it would hand MPI " + std::to_string(items) +
              " items at once, more than it can count");
    wait_until_read();
    PMPI_Abort(MPI_COMM_WORLD, 1);
  }
  return static_cast<int>(items);
}

}  // namespace dedup::engine
