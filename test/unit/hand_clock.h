// A clock that stands still, but for those who sleep.
#pragma once

#include "test/hooks/paced_device.h"

namespace dedup::test {

class HandClock final : public PaceClock {
 public:
  std::int64_t now() override { return time; }
  void sleep_until(std::int64_t until) override { time = until + oversleeps; }

  std::int64_t time = 0;
  std::int64_t oversleeps = 0;
};

}  // namespace dedup::test
