#include "engine/mpi/wait.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace dedup::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPolling{1};
constexpr std::chrono::microseconds kLongestSleep{200};
constexpr int kPart = 8;  // of the time waited

}  // namespace

int wait(MPI_Request& request) {
  const Clock::time_point begin = Clock::now();
  for (;;) {
    int done = 0;
    const int error = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0 || error != MPI_SUCCESS) return error;
    const Clock::duration waited = Clock::now() - begin;
    if (waited < kPolling) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::min<Clock::duration>(waited / kPart, kLongestSleep));
    }
  }
}

}  // namespace dedup::engine
