// Counting exactly: which chunks several nodes have, and who keeps them, by asking the homes of
// their names (plan/question.h, plan/count.h) along rows and columns of the nodes (plan/grid.h).
//
// In place of the tree (engine/dump/reduction.h), and behind the same value; but each rank gets of
// the result only what it has asked about, and nothing is left out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/chunks/judge.h"
#include "engine/dump/reduction.h"
#include "engine/mpi/topology.h"
#include "plan/deal.h"
#include "plan/grid_count.h"

namespace dedup::engine {

// One thread at a time.
class Counting {
 public:
  // `topology` must outlive it. `remembered`: how many names the ranks of a node keep between
  // counts, at most, of those whose home the node is.
  Counting(const Topology& topology, std::uint32_t remembered);
  ~Counting();

  // Collective over the topology's communicator: who keeps the chunks that a rank decides about, of
  // those that other nodes have or that an earlier count settled. `outside`: chunks that this rank
  // keeps whatever others have. kInternal if something else arrived than was sent; then it took
  // part all the same. Each of the ranks that decide about the same lane of names sends about
  // 2 √nodes messages and gets as many answered, of nodes if they are few; and there is one sum of
  // a word a node over all ranks, or at most five if nodes are chosen. Fills in `cost`.
  Result<plan::FrequentSet> count(const NodeView& view, std::uint32_t outside, unsigned copies,
                                  ReductionCost& cost);

  // Local. What was counted last was stored as `dealer` has it: whoever asks for it from now on is
  // told.
  void settle(const plan::Dealer& dealer);
  // The same on all ranks.
  void clear();

 private:
  class Lane;

  // Whom homes choose.
  std::optional<plan::Weights> balance(const NodeView& view, std::uint32_t outside,
                                       unsigned copies);

  const Topology& topology_;
  plan::Grid grid_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // of the last count, until it is settled
  plan::SettledChunks settled_;
};

}  // namespace dedup::engine
