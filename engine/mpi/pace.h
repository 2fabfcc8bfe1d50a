// Stores, links and hashing slowed down to given rates, for measurements: a test bed's proportions
// on a machine that has others.
//
// DEDUP_TEST_PACE="store=10M,link=12M,hash=210M" in rank 0's environment: bytes a second of each
// node, whose ranks share its devices (doc/testing.md, "Pacing", says what is modelled). When it is
// not set nothing is in the way.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "base/pace.h"
#include "base/types.h"

namespace dedup::engine {

struct Pace {
  PacedDevice store;
  // A link carries in both directions at once.
  PacedDevice sent;
  PacedDevice received;
  PacedDevice hash;
};

// nullptr: not paced.
const Pace* pace();

// Collective over the ranks of a node, before the first file is opened. `rates`: the variable's
// value; `job`: what no other job has; `world_rank`: this process's.
Status install_pace(MPI_Comm node, const std::string& rates, const Id128& job, int world_rank);

// What hashing takes from here to done().
class PacedHashing {
 public:
  PacedHashing() : begin_(pace() != nullptr ? pace()->hash.now() : 0) {}
  void done(std::uint64_t bytes) const {
    if (pace() != nullptr) pace()->hash.wait(pace()->hash.reserve(bytes, begin_));
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
    begin_ = pace()->received.now();
    due_ = pace()->received.reserve(incoming, begin_);
  }
  void send(std::uint64_t bytes) {
    if (pace() == nullptr) return;
    const std::int64_t sent = pace()->sent.reserve(bytes, begin_);
    if (due_ < sent) due_ = sent;
  }
  // Until all of it is sent and received.
  void wait() const {
    if (pace() != nullptr) pace()->sent.wait(due_);
  }

 private:
  std::int64_t begin_ = 0;
  std::int64_t due_ = 0;
};

// A single message: before it is sent, and after it was received. It was on its way, then, for as
// long as it takes.
inline void pace_sending(std::uint64_t bytes) {
  if (pace() != nullptr) pace()->sent.pass(bytes);
}
inline void pace_received(std::uint64_t bytes) {
  if (pace() == nullptr) return;
  const PacedDevice& link = pace()->received;
  link.wait(link.reserve(bytes, link.now() - link.duration(bytes)));
}

}  // namespace dedup::engine
