// Devices that are made slower than they are, for measurements (doc/testing.md, "Pacing").
//
// What goes through a device takes time at its rate, one after the other, whoever asks. The time
// until which it is busy is all there is to it; it may be in memory that processes share.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace dedup {

// Times in nanoseconds, the same for all processes that share a device.
class PaceClock {
 public:
  PaceClock() = default;
  virtual ~PaceClock() = default;
  PaceClock(const PaceClock&) = delete;
  PaceClock& operator=(const PaceClock&) = delete;
  virtual std::int64_t now() = 0;
  // Returns at once if it is past.
  virtual void sleep_until(std::int64_t time) = 0;
};

// The kernel's, which nobody sets.
PaceClock& monotonic_clock();

// Any number of threads.
class PacedDevice {
 public:
  // Who asks again so soon after the device was done finds it still at work: what sleeping too long
  // and the program itself take in between does not add up.
  static constexpr std::int64_t kIdleAfter = 20'000'000;

  // As fast as it is.
  PacedDevice() = default;
  // All must outlive it.
  PacedDevice(double bytes_per_second, std::atomic<std::int64_t>& busy_until, PaceClock& clock)
      : seconds_a_byte_(1 / bytes_per_second), busy_until_(&busy_until), clock_(&clock) {}

  bool is_paced() const { return busy_until_ != nullptr; }
  std::int64_t now() const { return is_paced() ? clock_->now() : 0; }
  // How long so many bytes take.
  std::int64_t duration(std::uint64_t bytes) const;

  // Takes the device's time for so many bytes: from `from` on if it is free then, else when it is
  // done with what was asked of it before. Returns when they are through, which is what wait()
  // waits for.
  std::int64_t reserve(std::uint64_t bytes, std::int64_t from) const;
  void wait(std::int64_t time) const;
  // Both, from now on.
  void pass(std::uint64_t bytes) const { wait(reserve(bytes, now())); }

 private:
  double seconds_a_byte_ = 0;
  std::atomic<std::int64_t>* busy_until_ = nullptr;
  PaceClock* clock_ = nullptr;
};

// Bytes a second; 0: as fast as it is.
struct PaceRates {
  double store = 0;  // what a node reads from its store and writes to it
  double link = 0;   // what a node sends, and what it receives, at the same time
  double hash = 0;   // what a node's ranks fingerprint
};

// "store=10M,link=12.5M,hash=210M": each at most once, with K, M, G for 2^10, 2^20, 2^30.
Result<PaceRates> parse_pace(const std::string& text);

}  // namespace dedup
