// Ranks of which one program plays all: each on a stack of its own, in turn, in one thread. So what
// ranks do together in any number runs without MPI, the same each time, and what each of them sends
// can be counted.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/ranks.h"

namespace dedup::simulation {

struct Traffic {
  std::uint64_t sent = 0;  // messages
  std::uint64_t received = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;

  std::uint64_t messages() const { return sent + received; }
  std::uint64_t bytes() const { return sent_bytes + received_bytes; }
};

class RankFibers {
 public:
  // Rank r speaks for node r.
  explicit RankFibers(int ranks);
  ~RankFibers();
  RankFibers(const RankFibers&) = delete;
  RankFibers& operator=(const RankFibers&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  const Ranks& rank(int rank) const;
  // Each rank does `what`, until all have. Ends the program, saying so, if they wait for each
  // other.
  void run(const std::function<void(int rank)>& what);
  // Of the rank that runs: others go on. To be called while it waits for one of them.
  void yield();
  // The same, until it is true.
  void wait_until(const std::function<bool()>& is_so);

  // What MPI would send for a rank: allreduces by recursive doubling, broadcasts and gathers along
  // binomial trees (engine/mpi/checked_message.h), letters one by one, each after its envelope.
  Traffic& traffic(int rank) { return traffic_[static_cast<std::size_t>(rank)]; }
  void reset_traffic();
  // One message.
  void count(int from, int to, std::uint64_t bytes);
  // Told before another rank goes on.
  std::function<void(int rank)> on_switch;

 private:
  class Rank;
  struct Fiber;
  // A collective call that not all have come back from.
  struct Step {
    std::vector<std::uint64_t> values;
    std::vector<Bytes> bytes;
    std::vector<std::vector<Bytes>> to_each;
    int came = 0;
    int left = 0;
  };

  // The rank's next collective step.
  Step& enter(int rank);
  void leave(int rank);
  void count_tree(int root, const std::vector<std::uint64_t>& up, std::uint64_t down);

  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Traffic> traffic_;
  std::vector<std::uint64_t> next_step_;
  std::map<std::uint64_t, Step> steps_;
  std::map<std::pair<int, int>, std::deque<Letter>> letters_;  // from, to
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* running_ = nullptr;
  std::uint64_t progress_ = 0;  // grows with whatever others may wait for
};

}  // namespace dedup::simulation
