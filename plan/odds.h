// The odds of losing data: with what probability the loss of some nodes, each set of as many alike,
// is the loss of data.
//
// Pure; the same question has the same answer everywhere, also where it is estimated. Sources: for
// rare losses the estimate of a union's size by R. M. Karp and M. Luby ("Monte-Carlo algorithms for
// enumeration and reliability problems", FOCS 1983), whose error does not grow as they get rarer.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "plan/placement.h"

namespace dedup::plan {

// Data that is lost once any `least` of these nodes are: of copies, when all are; of a stripe, when
// one more is than it has parities.
struct FatalSet {
  NodeSet nodes;  // ascending, none twice
  std::uint32_t least = 0;
  auto operator<=>(const FatalSet&) const = default;
};

// How many losses, beyond those that are survived for sure, users are told the odds of.
inline constexpr std::uint32_t kLossesTold = 3;

// Of chunks that are kept so. On no node: they are lost whatever happens.
FatalSet fatal_set(const Placement& placement);

struct Odds {
  double probability = 0;
  double error = 0;  // standard; 0: it is exact, but for rounding
};

class LossOdds {
 public:
  // `nodes`: those that may be lost are 0 … nodes - 1. `sets`: in any order, repeated or not.
  // Memory: about 80 bytes a different set and 6 for each of its nodes.
  LossOdds(NodeIndex nodes, std::vector<FatalSet> sets);

  // How many nodes can be lost, whichever they are, without a loss of data: as many as there are
  // if there is none that could be lost.
  std::uint32_t survived() const { return survived_; }
  NodeIndex nodes() const { return nodes_; }

  // Of `lost` nodes, at most as many as there are. Exact where all sets of so many nodes can be
  // gone through, or all fatal ones listed; time: below a second, but for a million sets and more.
  Odds of(std::uint32_t lost) const;
  // Of one node more than survived(), of two more and so on: `most` of them, if there are as many
  // nodes.
  std::vector<Odds> beyond_survived(std::uint32_t most) const;

 private:
  class Trial;

  bool is_lost_anyway() const { return !sets_.empty() && sets_.front().nodes.empty(); }
  double steps_of(std::uint32_t lost) const;
  std::uint32_t trials_of(std::uint32_t lost) const;
  double share_of_all(std::uint32_t lost) const;
  bool list_fatal(std::uint32_t lost, std::size_t& count) const;
  Odds estimate(std::uint32_t lost) const;
  Odds estimate_rare(std::uint32_t lost, const std::vector<double>& odds) const;

  NodeIndex nodes_;
  std::vector<FatalSet> sets_;  // ascending by nodes, none twice
  std::uint32_t survived_ = 0;
  std::vector<std::uint32_t> first_;    // of each node, in of_node_; and one more
  std::vector<std::uint32_t> of_node_;  // numbers in sets_
};

}  // namespace dedup::plan
