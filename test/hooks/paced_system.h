// A System whose reads and writes take time at a given rate: for measurements (doc/testing.md,
// "Pacing"). All else is as fast as it is.
#pragma once

#include "test/hooks/forwarding_system.h"
#include "test/hooks/paced_device.h"

namespace dedup::store {

class PacedSystem final : public ForwardingSystem {
 public:
  // Both must outlive it.
  PacedSystem(System& below, const PacedDevice& device)
      : ForwardingSystem(below), device_(device) {}

  ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) override {
    return passed(below_.preadv(fd, parts, count, offset));
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

  const PacedDevice& device_;
};

}  // namespace dedup::store
