// Links and hashing slowed down to given rates, for measurements: a test bed's proportions on a
// machine that has others. Only a test build has a pace (test/hooks/job.cc; doc/testing.md,
// "Pacing", says what is modelled): else nothing is in the way.
#pragma once

#include <cstdint>

namespace dedup::engine {

// The devices of this process's node, which its ranks share. Times in nanoseconds. Any number of
// threads.
class Pace {
 public:
  enum class Device { kHash, kSent, kReceived };  // a link carries in both directions at once

  Pace() = default;
  virtual ~Pace() = default;
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;
  virtual std::int64_t now() = 0;
  // How long so many bytes take.
  virtual std::int64_t duration(Device device, std::uint64_t bytes) = 0;
  // Takes the device's time for so many bytes, from `from` on if it is free then. Returns when they
  // are through.
  virtual std::int64_t reserve(Device device, std::uint64_t bytes, std::int64_t from) = 0;
  // Returns at once if it is past.
  virtual void wait(std::int64_t time) = 0;
};

// nullptr: not paced.
Pace* pace();

// What hashing takes from here to done().
class PacedHashing {
 public:
  PacedHashing() : begin_(pace() != nullptr ? pace()->now() : 0) {}
  void done(std::uint64_t bytes) const {
    if (pace() != nullptr) pace()->wait(pace()->reserve(Pace::Device::kHash, bytes, begin_));
  }

 private:
  std::int64_t begin_;
};

// What the node's link takes for a round in which all send to each other: it begins to send and to
// receive when the round begins, whenever MPI gets round to it. `incoming`: bytes that this rank
// receives.
class PacedLink {
 public:
  explicit PacedLink(std::uint64_t incoming) {
    if (pace() == nullptr) return;
    begin_ = pace()->now();
    due_ = pace()->reserve(Pace::Device::kReceived, incoming, begin_);
  }
  void send(std::uint64_t bytes) {
    if (pace() == nullptr) return;
    const std::int64_t sent = pace()->reserve(Pace::Device::kSent, bytes, begin_);
    if (due_ < sent) due_ = sent;
  }
  // Until all of it is sent and received.
  void wait() const {
    if (pace() != nullptr) pace()->wait(due_);
  }

 private:
  std::int64_t begin_ = 0;
  std::int64_t due_ = 0;
};

// A single message: before it is sent, and after it was received. It was on its way, then, for as
// long as it takes.
inline void pace_sending(std::uint64_t bytes) {
  if (pace() == nullptr) return;
  pace()->wait(pace()->reserve(Pace::Device::kSent, bytes, pace()->now()));
}
inline void pace_received(std::uint64_t bytes) {
  if (pace() == nullptr) return;
  const std::int64_t begin = pace()->now() - pace()->duration(Pace::Device::kReceived, bytes);
  pace()->wait(pace()->reserve(Pace::Device::kReceived, bytes, begin));
}

}  // namespace dedup::engine
