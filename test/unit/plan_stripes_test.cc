#include "plan/stripes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <utility>

namespace dedup::plan {
namespace {

std::vector<NodeIndex> nodes_of(std::size_t count) {
  std::vector<NodeIndex> nodes(count);
  std::iota(nodes.begin(), nodes.end(), NodeIndex{100});
  return nodes;
}

TEST(PlanStripes, HaveEachUnitOnceAndNoNodeTwice) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const StripeShape shape{1 + static_cast<unsigned>(random() % 10),
                            1 + static_cast<unsigned>(random() % 4)};
    const auto nodes = nodes_of(shape.data + shape.parities + random() % 8);
    std::vector<std::uint32_t> units(nodes.size());
    for (auto& count : units)
      count = random() % 3 == 0 ? 0 : static_cast<std::uint32_t>(random() % 40);
    const auto stripes = make_stripes(nodes, units, shape, static_cast<std::uint32_t>(random()));
    std::map<NodeIndex, std::set<std::uint32_t>> found;
    for (const Stripe& stripe : stripes) {
      EXPECT_GE(stripe.units.size(), 1u);
      EXPECT_LE(stripe.units.size(), shape.data);
      EXPECT_EQ(stripe.parities.size(), shape.parities);
      std::set<NodeIndex> different(stripe.parities.begin(), stripe.parities.end());
      for (const Stripe::Unit& unit : stripe.units) {
        different.insert(unit.node);
        EXPECT_TRUE(found[unit.node].insert(unit.number).second);
      }
      EXPECT_EQ(different.size(), stripe.units.size() + shape.parities);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      EXPECT_EQ(found[nodes[i]].size(), units[i]);
      if (units[i] == 0) continue;
      EXPECT_EQ(*found[nodes[i]].rbegin() + 1, units[i]);
    }
  }
}

TEST(PlanStripes, OfEvenLoadsAreWholeAndLoadAllAlike) {
  for (const std::size_t count : {10, 11, 13, 16}) {
    const StripeShape shape{8, 2};
    const auto nodes = nodes_of(count);
    const std::vector<std::uint32_t> units(count, 160);
    const auto stripes = make_stripes(nodes, units, shape, 3);
    EXPECT_EQ(stripes.size(), (count * 160 + 7) / 8);
    std::map<NodeIndex, std::uint32_t> kept;
    std::map<NodeIndex, std::uint32_t> made;
    for (const Stripe& stripe : stripes) {
      for (const NodeIndex node : stripe.parities) ++kept[node];
      ++made[stripe.parities.front()];
    }
    const auto limits = [](const auto& counts) {
      const auto [least, most] =
          std::minmax_element(counts.begin(), counts.end(),
                              [](const auto& a, const auto& b) { return a.second < b.second; });
      return std::pair(least->second, most->second);
    };
    EXPECT_EQ(kept.size(), count);
    EXPECT_LE(limits(kept).second, limits(kept).first + 2) << count;
    EXPECT_LE(limits(made).second * 10, limits(made).first * 15) << count;
  }
}

TEST(PlanStripes, OfANodeThatHasMuchMoreBecomeCopies) {
  const auto nodes = nodes_of(6);
  const auto stripes =
      make_stripes(nodes, std::vector<std::uint32_t>{50, 1, 1, 1, 1, 1}, {4, 2}, 0);
  EXPECT_EQ(stripes.size(), 50u);
  EXPECT_EQ(std::count_if(stripes.begin(), stripes.end(),
                          [](const Stripe& s) { return s.units.size() == 1; }),
            48);
}

// What the busiest partner sends and receives in any round.
std::pair<std::size_t, std::size_t> busiest(const std::vector<StripeMoves>& moves,
                                            const std::vector<std::vector<std::uint32_t>>& rounds) {
  std::size_t most_sent = 0;
  std::size_t most_received = 0;
  std::set<std::uint32_t> seen;
  for (const auto& round : rounds) {
    EXPECT_FALSE(round.empty());
    std::map<std::uint32_t, std::size_t> sent;
    std::map<std::uint32_t, std::size_t> received;
    for (const std::uint32_t i : round) {
      EXPECT_TRUE(seen.insert(i).second);
      for (const std::uint32_t partner : moves[i].from) ++sent[partner];
      for (const std::uint32_t partner : moves[i].to) ++received[partner];
      sent[moves[i].encoder] += moves[i].to.size();
      received[moves[i].encoder] += moves[i].from.size();
    }
    for (const auto& [partner, units] : sent) most_sent = std::max(most_sent, units);
    for (const auto& [partner, units] : received) most_received = std::max(most_received, units);
  }
  EXPECT_EQ(seen.size(), moves.size());
  return {most_sent, most_received};
}
TEST(PlanStripes, AreMovedInRounds) {
  // Each node is a partner.
  const auto moves_of = [](const std::vector<Stripe>& stripes) {
    std::vector<StripeMoves> moves;
    for (const Stripe& stripe : stripes) {
      StripeMoves& one = moves.emplace_back();
      for (const Stripe::Unit& unit : stripe.units) one.from.push_back(unit.node);
      one.encoder = stripe.parities.front();
      one.to.assign(stripe.parities.begin() + 1, stripe.parities.end());
    }
    return moves;
  };
  std::vector<NodeIndex> nodes(10);
  std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
  // All have alike: each makes about one stripe a round.
  const std::vector<StripeMoves> even =
      moves_of(make_stripes(nodes, std::vector<std::uint32_t>(10, 80), {8, 2}, 0));
  ASSERT_EQ(even.size(), 100u);
  auto rounds = stripe_rounds(even, 10, 9);
  EXPECT_LE(rounds.size(), 13u);
  auto [sent, received] = busiest(even, rounds);
  EXPECT_LE(sent, 9u);
  EXPECT_LE(received, 9u);
  // One has it all, and does not have to send it at once.
  std::vector<std::uint32_t> of_one(10);
  of_one[3] = 200;
  const std::vector<StripeMoves> uneven = moves_of(make_stripes(nodes, of_one, {8, 2}, 0));
  rounds = stripe_rounds(uneven, 10, 8);
  EXPECT_EQ(rounds.size(), 25u);
  std::tie(sent, received) = busiest(uneven, rounds);
  EXPECT_EQ(sent, 8u);
  // One rank moves it all to itself; a stripe that is more than what may be is a round.
  std::vector<StripeMoves> own(5, {{0, 0, 0}, 0, {0}});
  EXPECT_EQ(stripe_rounds(own, 1, 2).size(), 5u);
  EXPECT_EQ(stripe_rounds(own, 1, 8).size(), 3u);
  EXPECT_TRUE(stripe_rounds({}, 1, 8).empty());
}
TEST(PlanStripes, ShrinkToTheNodes) {
  const StripeShape shape{8, 2};
  EXPECT_EQ(shape.within(100).data, 8u);
  EXPECT_EQ(shape.within(10).data, 8u);
  EXPECT_EQ(shape.within(9).data, 7u);
  EXPECT_EQ(shape.within(4).data, 2u);
  EXPECT_FALSE(shape.within(3).is_possible());
  EXPECT_FALSE(shape.within(2).is_possible());
  EXPECT_FALSE(shape.within(0).is_possible());
}

TEST(PlanStripes, AreWithinGroupsOfDifferentDomains) {
  for (const std::size_t nodes : {10u, 11u, 25u, 64u}) {
    std::vector<std::uint32_t> domains(nodes);
    for (std::size_t i = 0; i < nodes; ++i) domains[i] = static_cast<std::uint32_t>(1 + i / 4);
    const LiveNodes live(static_cast<NodeIndex>(nodes), domains);
    const auto groups = stripe_groups(live, {8, 2}, 8);
    EXPECT_EQ(groups.size(), nodes / 10);
    NodeSet all;
    for (const auto& group : groups) {
      EXPECT_GE(group.size(), 10u);
      std::map<std::uint32_t, int> of_domain;
      for (const NodeIndex node : group) ++of_domain[live.domain_of(node)];
      for (const auto& [domain, count] : of_domain) {
        EXPECT_LE(count, static_cast<int>(4 / groups.size() + 1));
      }
      all.insert(all.end(), group.begin(), group.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, live.list());
  }
  EXPECT_EQ(stripe_groups(LiveNodes(40), {4, 2}, 20).size(), 2u);
  EXPECT_EQ(stripe_groups(LiveNodes(5), {4, 2}, 8).size(), 1u);
}

}  // namespace
}  // namespace dedup::plan
