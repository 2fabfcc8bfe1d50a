// The processor's time.
#pragma once

#include <sys/resource.h>

#include <cstdlib>

namespace dedup::bench {

// Seconds of this process so far, all threads and the kernel's work for them included.
inline double processor_seconds() {
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) != 0) std::abort();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace dedup::bench
