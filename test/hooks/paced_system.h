// A System whose reads and writes take time at a given rate: for measurements (doc/testing.md,
// "Pacing"). All else is as fast as it is, and what was written a moment ago is read from memory.
#pragma once

#include <sys/stat.h>

#include <ctime>
#include <tuple>

#include "test/hooks/forwarding_system.h"
#include "test/hooks/paced_device.h"

namespace dedup::store {

class PacedSystem final : public ForwardingSystem {
 public:
  // Both must outlive it. Files that change at `since` or later are kept in memory.
  PacedSystem(System& below, const PacedDevice& device, const timespec& since)
      : ForwardingSystem(below), device_(device), since_(since) {}

  ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) override {
    const ssize_t bytes = below_.preadv(fd, parts, count, offset);
    return bytes > 0 && is_in_memory(fd) ? bytes : passed(bytes);
  }
  ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) override {
    return passed(below_.pwritev(fd, parts, count, offset));
  }

 private:
  // Leaves errno as it is if nothing went through.
  ssize_t passed(ssize_t bytes) const {
    if (bytes > 0) device_.pass(static_cast<std::uint64_t>(bytes));
    return bytes;
  }

  bool is_in_memory(int fd) const {
    struct stat about {};
    return below_.fstat(fd, &about) == 0 && std::tie(about.st_mtim.tv_sec, about.st_mtim.tv_nsec) >=
                                                std::tie(since_.tv_sec, since_.tv_nsec);
  }

  const PacedDevice& device_;
  const timespec since_;
};

}  // namespace dedup::store
