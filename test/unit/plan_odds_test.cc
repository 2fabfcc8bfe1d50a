#include "plan/odds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace dedup::plan {
namespace {

// Node i's data on i and on the `copies` - 1 nodes after it.
std::vector<FatalSet> ring(NodeIndex nodes, unsigned copies) {
  std::vector<FatalSet> sets;
  for (unsigned i = 0; i < nodes; ++i) {
    NodeSet set;
    for (unsigned c = 0; c < copies; ++c) set.push_back(static_cast<NodeIndex>((i + c) % nodes));
    std::sort(set.begin(), set.end());
    sets.push_back({set, copies});
  }
  return sets;
}

// `size` nodes each, that have one another's data.
std::vector<FatalSet> groups(NodeIndex nodes, unsigned size, unsigned least) {
  std::vector<FatalSet> sets;
  for (unsigned first = 0; first + size <= nodes; first += size) {
    FatalSet& set = sets.emplace_back(FatalSet{{}, least});
    for (unsigned i = 0; i < size; ++i) set.nodes.push_back(static_cast<NodeIndex>(first + i));
  }
  return sets;
}

// Of `lost` of `nodes` nodes that are in groups of r: that all of a group are lost. (L. Hübner et
// al., "ReStore: In-Memory REplicated STORagE for Rapid Recovery in Fault-Tolerant Algorithms",
// 2022, section IV-D.) Terms alternate, so few nodes only may be lost.
double of_groups(double nodes, double r, double lost) {
  const auto log_choose = [](double n, double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
  };
  double sum = 0;
  for (double j = 1; j <= nodes / r && j * r <= lost; ++j) {
    const double term = std::exp(log_choose(nodes / r, j) +
                                 log_choose(nodes - j * r, lost - j * r) - log_choose(nodes, lost));
    sum += std::fmod(j, 2) == 1 ? term : -term;
  }
  return sum;
}

TEST(PlanOdds, AreThoseOfGoingThroughAllLosses) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 30; ++round) {
    const auto nodes = static_cast<NodeIndex>(3 + random() % 9);
    std::vector<Placement> placements;
    std::vector<FatalSet> sets;
    for (std::uint64_t i = 0; i < 1 + random() % 12; ++i) {
      NodeSet on;
      while (on.empty()) {
        for (NodeIndex n = 0; n < nodes; ++n) {
          if (random() % 3 == 0) on.push_back(n);
        }
      }
      placements.push_back(Placement::copies_on(on));
      sets.push_back(fatal_set(placements.back()));
    }
    const LossOdds odds(nodes, sets);
    std::vector<double> fatal(nodes + 1u);
    std::vector<double> all(nodes + 1u);
    for (std::uint32_t mask = 0; mask < 1u << nodes; ++mask) {
      LiveNodes live(nodes);
      std::uint32_t lost = 0;
      for (NodeIndex n = 0; n < nodes; ++n) {
        if ((mask >> n & 1) == 0) continue;
        live.erase(n);
        ++lost;
      }
      ++all[lost];
      fatal[lost] += std::any_of(placements.begin(), placements.end(), [&](const Placement& one) {
        return one.redundancy(live).is_lost();
      });
    }
    for (std::uint32_t lost = 0; lost <= nodes; ++lost) {
      const Odds found = odds.of(lost);
      EXPECT_DOUBLE_EQ(found.probability, fatal[lost] / all[lost]) << lost << " of " << nodes;
      EXPECT_EQ(found.error, 0);
      EXPECT_EQ(found.probability == 0, lost <= odds.survived());
    }
  }
}

TEST(PlanOdds, AreThoseOfGroupsOfCopies) {
  struct Case {
    NodeIndex nodes;
    unsigned copies;
    std::vector<std::uint32_t> lost;
  };
  for (const Case& c : {Case{34, 2, {2, 3, 4, 8}}, Case{1024, 2, {2, 3, 4, 16, 40}},
                        Case{1023, 3, {3, 4, 6, 30, 100}}, Case{32768, 2, {2, 3, 4, 100, 300}},
                        Case{32768, 4, {4, 5, 8, 1000}}}) {
    const LossOdds odds(c.nodes, groups(c.nodes, c.copies, c.copies));
    EXPECT_EQ(odds.survived(), c.copies - 1);
    for (const std::uint32_t lost : c.lost) {
      const Odds found = odds.of(lost);
      const double right = of_groups(c.nodes, c.copies, lost);
      EXPECT_NEAR(found.probability, right, 0.02 * right) << lost << " of " << c.nodes;
      EXPECT_NEAR(found.probability, right, 5 * found.error + 1e-9 * right) << lost;
    }
  }
}

TEST(PlanOdds, OfTheFirstFatalLossAreExact) {
  const LossOdds ring_of_two(32768, ring(32768, 2));
  EXPECT_EQ(ring_of_two.survived(), 1u);
  EXPECT_DOUBLE_EQ(ring_of_two.of(2).probability, 32768 / (32768.0 * 32767 / 2));
  EXPECT_EQ(ring_of_two.of(2).error, 0);
  EXPECT_GT(ring_of_two.of(3).error, 0);
  // Eight and two: any three of ten.
  const LossOdds stripes(1000, groups(1000, 10, 3));
  EXPECT_EQ(stripes.survived(), 2u);
  EXPECT_DOUBLE_EQ(stripes.of(3).probability, 100 * 120 / (1000.0 * 999 * 998 / 6));
  // Sets of which more must be lost count for nothing yet.
  std::vector<FatalSet> both = groups(1000, 10, 3);
  both.push_back({{3, 700}, 2});
  const LossOdds mixed(1000, both);
  EXPECT_EQ(mixed.survived(), 1u);
  EXPECT_DOUBLE_EQ(mixed.of(2).probability, 1 / (1000.0 * 999 / 2));
}

TEST(PlanOdds, OfARingAreThoseOfNeighbours) {
  const LossOdds odds(34, ring(34, 2));
  EXPECT_DOUBLE_EQ(odds.of(2).probability, 34 / 561.0);
  // Two neighbours and any other one; three in a row were counted twice.
  EXPECT_DOUBLE_EQ(odds.of(3).probability, (34 * 32 - 34) / 5984.0);
  const LossOdds three(34, ring(34, 3));
  EXPECT_EQ(three.of(2).probability, 0);
  EXPECT_DOUBLE_EQ(three.of(3).probability, 34 / 5984.0);
}

TEST(PlanOdds, EndWithAllNodes) {
  const LossOdds nothing(5, {});
  EXPECT_EQ(nothing.survived(), 5u);
  EXPECT_EQ(nothing.of(5).probability, 0);
  EXPECT_TRUE(nothing.beyond_survived(3).empty());

  const LossOdds lost(5, {fatal_set(Placement())});
  EXPECT_EQ(lost.survived(), 0u);
  EXPECT_EQ(lost.of(0).probability, 1);

  const LossOdds odds(5000, ring(5000, 3));
  EXPECT_EQ(odds.of(0).probability, 0);
  EXPECT_EQ(odds.of(5000).probability, 1);
  EXPECT_EQ(odds.of(6000).probability, 1);
  EXPECT_GT(odds.of(4990).probability, 0.99);
  const auto next = odds.beyond_survived(2);
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(next[0].probability, odds.of(3).probability);
  EXPECT_EQ(next[1].probability, odds.of(4).probability);
  EXPECT_EQ(LossOdds(3, ring(3, 3)).beyond_survived(5).size(), 1u);
}

TEST(PlanOdds, DoNotDependOnOrderAndRepetition) {
  std::vector<FatalSet> sets = ring(200, 2);
  const double right = LossOdds(200, sets).of(5).probability;
  sets.insert(sets.end(), sets.begin(), sets.begin() + 50);
  std::reverse(sets.begin(), sets.end());
  EXPECT_EQ(LossOdds(200, sets).of(5).probability, right);
}

}  // namespace
}  // namespace dedup::plan
