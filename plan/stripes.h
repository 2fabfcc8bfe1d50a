// Which units of data become a stripe, and which nodes keep its parities. A unit is a stretch of
// what one node has to itself; the nodes of a stripe are all different, so that with m parities any
// m of them can be lost. Pure: whoever has the same input comes to the same stripes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "plan/placement.h"

namespace dedup::plan {

struct StripeShape {
  unsigned data = 0;      // k: units of data, at most
  unsigned parities = 0;  // m; 0: there are no stripes
  // What fits so many nodes: k shrinks, but m does not. With k of 1 each parity would be a copy:
  // then there are no stripes, and k is 0.
  StripeShape within(std::size_t nodes) const;
  bool is_possible() const { return data > 1; }
};

struct Stripe {
  struct Unit {
    NodeIndex node = kNoNode;
    std::uint32_t number = 0;  // of those of its node
    bool operator==(const Unit&) const = default;
  };
  std::vector<Unit> units;          // at least one, at most k
  std::vector<NodeIndex> parities;  // m; the first one makes them
};

// Cuts the nodes that are there into groups for such stripes, of `least` nodes at least: each
// stripe is within one.
std::vector<std::vector<NodeIndex>> stripe_groups(const LiveNodes& live, const StripeShape& shape,
                                                  unsigned least);

// Each unit is in one stripe. `nodes`: of a group, at least k + m; units[i]: how many nodes[i] has.
// `turn`: another one begins with other nodes. Stripes have k units as long as k nodes have some
// left: those with most go first. Parities go round the other nodes. Time: for each stripe, linear
// in the nodes.
std::vector<Stripe> make_stripes(std::span<const NodeIndex> nodes,
                                 std::span<const std::uint32_t> units, const StripeShape& shape,
                                 std::uint32_t turn);

// What is moved for one stripe: its units to who makes the parities, and these to who keeps them.
struct StripeMoves {
  std::vector<std::uint32_t>
      from;  // partners, by number, one for each unit; the same may be there often
  std::uint32_t encoder = 0;
  std::vector<std::uint32_t> to;  // one for each parity but the encoder's
};

// Stripes are moved in rounds, so that in each a partner sends and receives `most` units and
// parities at most, of each, or what a single stripe takes. By round, the numbers of its stripes.
// Time: for each stripe, linear in its units.
std::vector<std::vector<std::uint32_t>> stripe_rounds(std::span<const StripeMoves> stripes,
                                                      std::size_t partners, std::size_t most);

}  // namespace dedup::plan
