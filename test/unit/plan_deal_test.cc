#include "plan/deal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "plan/slots.h"

namespace dedup::plan {
namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 50;
constexpr std::uint32_t kOverhead = 44;

Fingerprint fingerprint_of(std::uint64_t number) {
  Fingerprint f;
  const std::uint64_t spread = number * 0x9e3779b97f4a7c15u;
  std::memcpy(f.bytes.data(), &spread, sizeof spread);
  std::memcpy(f.bytes.data() + 8, &number, sizeof number);
  return f;
}

std::uint32_t length_of(std::uint64_t chunk) {
  return 512 + static_cast<std::uint32_t>(chunk % 7) * 100;
}

// What each position receives if every node sends its load to each of the K - 1 next ones.
std::uint64_t received_most(const std::vector<NodeIndex>& order,
                            const std::vector<std::uint64_t>& load, unsigned copies) {
  std::vector<std::uint64_t> received(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (unsigned j = 1; j < copies; ++j) received[(i + j) % order.size()] += load[order[i]];
  }
  return *std::max_element(received.begin(), received.end());
}

// The paper's Figure 2: six ranks, K = 3, two of them send 100 chunks to each partner, the rest 10.
TEST(PlanDeal, PapersExample) {
  const std::vector<std::uint64_t> load{100, 100, 10, 10, 10, 10};
  std::vector<SendLoad> loads;
  std::vector<NodeIndex> ring(6);
  std::iota(ring.begin(), ring.end(), NodeIndex{0});
  for (const NodeIndex n : ring) loads.push_back({n, 2 * load[n]});
  EXPECT_EQ(received_most(ring, load, 3), 200u);
  EXPECT_EQ(received_most(order_by_load(loads, 3), load, 3), 110u);
  EXPECT_EQ(largest_receive(ring, loads, 3), 200u);
  EXPECT_EQ(largest_receive(order_by_load(loads, 3), loads, 3), 110u);
}

// The same through the whole dealing: 90 unique chunks on two nodes, 20 that all six have.
TEST(PlanDeal, PapersExampleThroughTheReduction) {
  const ReduceLimits limits{3, 1000, 6};
  FrequentSet result;
  for (NodeIndex n = 0; n < 6; ++n) {
    FrequentSet set;
    for (std::uint64_t c = 0; c < 20; ++c) set.add(fingerprint_of(c), 1, 1, n, false, {});
    set.add_outside(n, n < 2 ? 90 : 0);
    set.finish(limits);
    result = FrequentSet::merge(result, set, limits);
  }
  std::vector<NodeState> nodes;
  for (NodeIndex n = 0; n < 6; ++n) {
    const std::uint64_t unique = n < 2 ? 100 : 10;
    nodes.push_back({n, kPlenty, unique, unique, 0, 0});
  }
  for (const bool ring : {false, true}) {
    const Dealing p = deal_all({3, ring, 0, nodes, &result, {}});
    ASSERT_TRUE(p.feasible);
    std::vector<std::uint64_t> received(6);
    for (const Flow& f : p.flows) received[f.to] += f.chunks;
    EXPECT_EQ(*std::max_element(received.begin(), received.end()), ring ? 200u : 110u);
  }
}

TEST(PlanDeal, OrderHasEachNodeOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 1 + random() % 60;
    const unsigned copies = 1 + random() % 6;
    std::vector<SendLoad> loads;
    std::vector<std::uint64_t> load(count);
    for (std::size_t i = 0; i < count; ++i) {
      load[i] = random() % 5 * 10;
      loads.push_back({static_cast<NodeIndex>(i), load[i]});
    }
    std::vector<NodeIndex> order = order_by_load(loads, copies);
    if (copies > 1 && copies <= count) {
      // Rounded down: loads need not be multiples of K - 1.
      EXPECT_EQ(largest_receive(order, loads, copies),
                received_most(order, load, copies) / (copies - 1));
    }
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order.size(), count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(order[i], i);
  }
}

TEST(PlanDeal, OneNodeAloneSendsToTheNextOnes) {
  const FrequentSet none;
  std::vector<NodeState> nodes{{3, kPlenty, 10, 1000, 0, 0}, {4, kPlenty}, {0, kPlenty}};
  const Dealing p = deal_all({3, false, 0, nodes, &none, {}});
  ASSERT_TRUE(p.feasible);
  ASSERT_EQ(p.flows.size(), 2u);
  EXPECT_EQ(p.flows[0].to, 0);
  EXPECT_EQ(p.flows[1].to, 4);
  EXPECT_EQ(p.flows[0].chunks, 10u);
}

TEST(PlanDeal, CopiesAreDealtRoundRobin) {
  const Dealer dealer({0, 1, 2, 3, 4, 5}, 6);
  const std::vector<Designated> both{{1, false, true}, {4, false, true}};
  Dealer::Deal deal;
  for (std::uint64_t salt = 0; salt < 4; ++salt) {
    ASSERT_TRUE(dealer.deal(both, salt, deal));
    ASSERT_EQ(deal.copies.size(), 4u);
    EXPECT_EQ(std::count_if(deal.copies.begin(), deal.copies.end(),
                            [](const auto& c) { return c.from == 1; }),
              2);
    EXPECT_EQ(deal.copies[0].from, salt % 2 == 0 ? 1 : 4);
  }
}

// What stripes will be made of stays where it is, on one node.
TEST(PlanDeal, WhatIsRareIsNotCopiedIfItIsNotToBe) {
  Dealer dealer({0, 1, 2, 3}, 3);
  dealer.stop_copying(3);
  Encoder e;
  dealer.encode(e);
  const Bytes bytes = e.take();
  Decoder d(bytes);
  const Dealer decoded = Dealer::decode(d);
  for (const Dealer* one : {static_cast<const Dealer*>(&dealer), &decoded}) {
    Dealer::Deal deal;
    ASSERT_TRUE(one->deal_unique(2, false, 0, deal));
    EXPECT_EQ(deal.placement, Placement::copies_on({2}));
    EXPECT_TRUE(deal.copies.empty());
    // Of two that have it one keeps it: who holds it already, else in turn.
    std::set<NodeIndex> keepers;
    for (std::uint64_t salt = 0; salt < 10; ++salt) {
      const std::vector<Designated> fresh{{1, false, true}, {3, false, true}};
      ASSERT_TRUE(one->deal(fresh, salt, deal));
      ASSERT_EQ(deal.placement.nodes().size(), 1u);
      EXPECT_TRUE(deal.copies.empty());
      const NodeIndex keeper = deal.placement.nodes().front();
      keepers.insert(keeper);
      EXPECT_TRUE(one->stores({keeper, false, true}, deal.placement));
      EXPECT_FALSE(one->stores({static_cast<NodeIndex>(4 - keeper), false, true}, deal.placement));
      const std::vector<Designated> held{{1, false, true}, {3, true, true}};
      ASSERT_TRUE(one->deal(held, salt, deal));
      EXPECT_EQ(deal.placement, Placement::copies_on({3}));
    }
    EXPECT_EQ(keepers, (std::set<NodeIndex>{1, 3}));
    // What is on enough nodes stays there.
    const std::vector<Designated> enough{{0, false, true}, {1, true, true}, {3, false, true}};
    ASSERT_TRUE(one->deal(enough, 0, deal));
    EXPECT_EQ(deal.placement, Placement::copies_on({0, 1, 3}));
  }
  // A node without room sends what it has to one other.
  dealer.stop_keeping(2);
  Dealer::Deal deal;
  ASSERT_TRUE(dealer.deal_unique(2, false, 0, deal));
  ASSERT_EQ(deal.copies.size(), 1u);
  EXPECT_EQ(deal.placement.nodes(), NodeSet{deal.copies.front().to});
}

// K says how many nodes must have a chunk to be left alone, not how many keep it then.
TEST(PlanDeal, OfWhatEnoughNodesHaveSomeKeepIt) {
  std::vector<NodeIndex> nodes(8);
  std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
  Dealer dealer(nodes, 5);
  dealer.stop_copying(3);
  Dealer::Deal deal;
  std::map<NodeIndex, int> keepers;
  for (std::uint64_t salt = 0; salt < 50; ++salt) {
    const std::vector<Designated> enough{
        {0, false, true}, {1, false, true}, {3, false, true}, {4, true, true}, {7, false, true}};
    ASSERT_TRUE(dealer.deal(enough, salt, deal));
    EXPECT_TRUE(deal.copies.empty());
    ASSERT_EQ(deal.placement.nodes().size(), 3u);
    EXPECT_TRUE(deal.placement.is_on(4));
    for (const NodeIndex node : deal.placement.nodes()) ++keepers[node];
    const std::span fewer = std::span(enough).first(4);
    ASSERT_TRUE(dealer.deal(fewer, salt, deal));
    EXPECT_EQ(deal.placement, Placement::copies_on({4}));
  }
  EXPECT_EQ(keepers.size(), 5u);
  // More than there are: no chunk is left alone.
  Dealer none({0, 1, 2}, 11);
  none.stop_copying(3);
  const std::vector<Designated> all{{0, false, true}, {1, false, true}, {2, false, true}};
  ASSERT_TRUE(none.deal(all, 1, deal));
  EXPECT_EQ(deal.placement.nodes().size(), 1u);
  EXPECT_TRUE(deal.copies.empty());
}

TEST(PlanDeal, OrderIsKeptUnlessLoadChangesMuch) {
  const FrequentSet none;
  std::vector<NodeState> nodes;
  for (NodeIndex n = 0; n < 6; ++n) nodes.push_back({n, kPlenty, 100, 100, 0, 0});
  const std::vector<NodeIndex> old{5, 3, 1, 0, 2, 4};
  EXPECT_EQ(deal_all({2, false, 0, nodes, &none, old}).dealer.order(), old);
  nodes[0].new_chunks = nodes[0].new_bytes = 110;
  EXPECT_EQ(deal_all({2, false, 0, nodes, &none, old}).dealer.order(), old);
  // Now 0 and 1, which stand side by side in the old order, would both be heavy for K = 3.
  nodes[0].new_bytes = nodes[1].new_bytes = 10000;
  EXPECT_NE(deal_all({3, false, 0, nodes, &none, old}).dealer.order(), old);
  nodes.pop_back();
  EXPECT_NE(deal_all({2, false, 0, nodes, &none, old}).dealer.order(), old);
}

// A job in small: nodes with chunks, and what their stores hold before and after.
struct World {
  NodeIndex job_nodes = 1;
  std::vector<NodeIndex> represented;
  std::uint32_t copies = 1;
  std::uint32_t threshold = 1;
  std::vector<std::set<std::uint64_t>> chunks;  // that a node's ranks write
  std::vector<std::set<std::uint64_t>> stored;  // that a node's store holds
  std::vector<std::uint64_t> free_bytes;
  bool ring = false;
  bool with_reduction = true;
  unsigned group = 0;
  std::uint32_t turn = 0;
  std::vector<std::uint32_t> domain;  // by node; none: not known
};

struct Outcome {
  Dealing dealing;
  std::vector<std::uint64_t> added;  // bytes, by node
};

NodeSet known_holders(const World& w, NodeIndex node, std::uint64_t chunk) {
  NodeSet known;  // half of the chunks are known to be elsewhere too
  if (!w.stored[node].contains(chunk) || chunk % 2 == 0) return known;
  for (NodeIndex n = 0; n < w.job_nodes; ++n) {
    if (w.stored[n].contains(chunk)) known.push_back(n);
  }
  return known;
}

void dump(World& w, Outcome& out) {
  const ReduceLimits limits{w.copies, w.threshold, w.job_nodes};
  std::vector<FrequentSet> sets;
  for (const NodeIndex n : w.represented) {
    FrequentSet set;
    if (w.with_reduction) {
      for (const std::uint64_t c : w.chunks[n]) {
        set.add(fingerprint_of(c), length_of(c), 1, n, w.stored[n].contains(c),
                known_holders(w, n, c));
      }
    }
    set.finish(limits);
    sets.push_back(std::move(set));
  }
  for (std::size_t step = 1; step < sets.size(); step *= 2) {
    for (std::size_t i = 0; i + step < sets.size(); i += 2 * step) {
      sets[i] = FrequentSet::merge(sets[i], sets[i + step], limits);
    }
  }
  FrequentSet& result = sets[0];
  result.drop_singles();

  std::vector<NodeState> states;
  for (NodeIndex n = 0; n < w.job_nodes; ++n) {
    NodeState s{n, w.free_bytes[n], 0, 0, 0, 0, w.domain.empty() ? 0 : w.domain[n]};
    for (const std::uint64_t c : w.chunks[n]) {
      if (result.find(fingerprint_of(c)) != nullptr) continue;
      if (known_holders(w, n, c).size() >= w.copies) continue;
      const bool held = w.stored[n].contains(c);
      (held ? s.held_chunks : s.new_chunks) += 1;
      (held ? s.held_bytes : s.new_bytes) += length_of(c);
    }
    states.push_back(s);
  }
  out.dealing =
      deal_all({w.copies, w.ring, kOverhead, states, &result, {}, w.group, w.turn, length_of(6)});
  out.added.assign(w.job_nodes, 0);
  if (!out.dealing.feasible) return;

  // Every node acts on its own, knowing only the result and the dealer.
  Encoder e;
  out.dealing.dealer.encode(e);
  Decoder d(e.bytes());
  const Dealer dealer = Dealer::decode(d);
  ASSERT_TRUE(d.ok() && d.at_end());

  auto stored = w.stored;
  std::map<std::pair<NodeIndex, NodeIndex>, std::uint64_t> flows;
  std::vector<std::pair<std::uint64_t, NodeSet>> claims;
  const auto store = [&](NodeIndex node, std::uint64_t chunk) {
    if (stored[node].insert(chunk).second) out.added[node] += length_of(chunk) + kOverhead;
  };
  for (const NodeIndex n : w.represented) {
    std::uint64_t dealt[2] = {};  // of those outside the result: new ones, and held ones
    for (const std::uint64_t c : w.chunks[n]) {
      Dealer::Deal deal;
      bool keep = false;
      if (const auto* element = result.find(fingerprint_of(c)); element != nullptr) {
        const auto designated = result.designated(*element);
        ASSERT_TRUE(dealer.deal(designated, element->fingerprint.prefix(), deal));
        keep = deal.placement.is_on(n) &&
               std::any_of(designated.begin(), designated.end(),
                           [&](const Designated& x) { return x.node == n; });
      } else if (const NodeSet known = known_holders(w, n, c); known.size() >= w.copies) {
        deal.placement = Placement::copies_on(known);
      } else {
        const bool held = w.stored[n].contains(c);
        const std::uint64_t all = held ? states[n].held_chunks : states[n].new_chunks;
        const std::uint32_t parts = dealer.parts(n, all);
        const std::uint32_t part = Dealer::part_of(dealt[held]++, all, parts);
        ASSERT_LT(part, parts);
        ASSERT_TRUE(dealer.deal_unique(n, held, part, deal));
        keep = deal.placement.is_on(n);
      }
      ASSERT_GE(deal.placement.redundancy(), Redundancy::copies(w.copies));
      std::set<NodeIndex> targets;
      for (const Dealer::Copy& copy : deal.copies) {
        ASSERT_TRUE(targets.insert(copy.to).second) << "two copies to one node";
        ASSERT_TRUE(deal.placement.is_on(copy.to));
        if (copy.from != n) continue;
        ASSERT_NE(copy.to, n);
        store(copy.to, c);
        ++flows[{copy.to, n}];
      }
      if (keep) store(n, c);
      claims.emplace_back(c, deal.placement.nodes());
    }
  }
  for (const auto& [chunk, holders] : claims) {
    for (const NodeIndex n : holders) {
      ASSERT_TRUE(stored[n].contains(chunk)) << "node " << n << " was said to hold " << chunk;
    }
  }
  std::map<std::uint64_t, std::uint32_t> nodes_with;
  for (const auto& s : stored) {
    for (const std::uint64_t c : s) ++nodes_with[c];
  }
  for (const NodeIndex n : w.represented) {
    for (const std::uint64_t c : w.chunks[n]) ASSERT_GE(nodes_with[c], w.copies);
  }
  ASSERT_EQ(flows.size(), out.dealing.flows.size());
  for (const Flow& f : out.dealing.flows) {
    const std::pair<NodeIndex, NodeIndex> key{f.to, f.from};
    ASSERT_EQ(f.chunks, flows[key]);
  }
  for (NodeIndex n = 0; n < w.job_nodes; ++n) ASSERT_LE(out.added[n], w.free_bytes[n]);
  w.stored = std::move(stored);
}

World random_world(std::mt19937& random, NodeIndex largest) {
  World w;
  w.job_nodes = static_cast<NodeIndex>(1 + random() % largest);
  w.copies = 1 + static_cast<std::uint32_t>(random() % std::min<unsigned>(w.job_nodes, 6));
  w.threshold = 1 + static_cast<std::uint32_t>(random() % 300);
  w.ring = random() % 4 == 0;
  w.group = random() % 3 == 0 ? 0 : 1 + static_cast<unsigned>(random() % 9);
  w.turn = static_cast<std::uint32_t>(random());
  for (NodeIndex n = 0; n < w.job_nodes && w.turn % 2 == 0; ++n) {
    w.domain.push_back(static_cast<std::uint32_t>(random() % 4));
  }
  w.with_reduction = random() % 5 != 0;
  for (NodeIndex n = 0; n < w.job_nodes; ++n) {
    if (random() % 4 != 0) w.represented.push_back(n);
  }
  if (w.represented.empty()) w.represented.push_back(0);
  w.chunks.resize(w.job_nodes);
  w.stored.resize(w.job_nodes);
  w.free_bytes.assign(w.job_nodes, kPlenty);
  return w;
}

void new_chunks(World& w, std::mt19937& random, std::uint64_t kinds, std::uint64_t most) {
  for (const NodeIndex n : w.represented) {
    w.chunks[n].clear();
    for (std::uint64_t i = random() % (most + 1); i > 0; --i) {
      // Some chunks are frequent, most are not.
      const std::uint64_t kind = random() % kinds;
      w.chunks[n].insert(random() % 2 == 0 ? kind % 10 : kind);
    }
  }
}

TEST(PlanDealBruteForce, EveryChunkIsOnEnoughNodes) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    World w = random_world(random, 12);
    for (int dumps = 0; dumps < 3; ++dumps) {
      new_chunks(w, random, 40, 25);
      Outcome out;
      ASSERT_NO_FATAL_FAILURE(dump(w, out)) << "round " << round;
      ASSERT_TRUE(out.dealing.feasible);
    }
  }
}

TEST(PlanDealBruteForce, ManyChunks) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    World w = random_world(random, 40);
    for (int dumps = 0; dumps < 2; ++dumps) {
      new_chunks(w, random, 20000, 600);
      Outcome out;
      ASSERT_NO_FATAL_FAILURE(dump(w, out)) << "round " << round;
      ASSERT_TRUE(out.dealing.feasible);
    }
  }
}

TEST(PlanDealBruteForce, ManyNodes) {
  std::mt19937 random(8);
  for (int round = 0; round < 4; ++round) {
    World w = random_world(random, 3000);
    w.threshold = 1u << (5 + random() % 8);
    new_chunks(w, random, 3000, 12);
    Outcome out;
    ASSERT_NO_FATAL_FAILURE(dump(w, out)) << "round " << round;
    ASSERT_TRUE(out.dealing.feasible);
  }
}

// Little room: what is feasible respects it, and what is not is said to be short.
TEST(PlanDealBruteForce, NobodyGetsMoreThanFits) {
  std::mt19937 random(9);
  int feasible = 0;
  int passed_over = 0;
  int full = 0;
  for (int round = 0; round < 3000; ++round) {
    World w = random_world(random, 12);
    for (auto& f : w.free_bytes) f = random() % 3 == 0 ? random() % 20000 : kPlenty;
    new_chunks(w, random, 40, 25);
    Outcome out;
    ASSERT_NO_FATAL_FAILURE(dump(w, out)) << "round " << round;
    if (!out.dealing.feasible) {
      ASSERT_GT(out.dealing.bytes_short, 0u);
      ASSERT_NE(out.dealing.tightest, kNoNode);
      continue;
    }
    ++feasible;
    const Dealer& dealer = out.dealing.dealer;
    for (NodeIndex n = 0; n < w.job_nodes; ++n) {
      if (!dealer.receives(n)) ++passed_over;
      if (!dealer.keeps(n)) ++full;
    }
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GT(passed_over, 100);
  EXPECT_GT(full, 100);
}

// ---- Groups -------------------------------------------------------------------------------------

TEST(PlanGroups, AreAllOfAboutOneSize) {
  for (std::size_t nodes = 1; nodes < 200; ++nodes) {
    for (const std::size_t least : {1, 2, 3, 8, 11, 500}) {
      const Groups groups(nodes, least);
      EXPECT_EQ(groups.count(), std::max<std::size_t>(nodes / least, 1));
      std::size_t next = 0;
      for (std::size_t g = 0; g < groups.count(); ++g) {
        const Groups::Range range = groups.range(g);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size(), std::min(least, nodes));
        EXPECT_LE(range.size(), groups.range(0).size());
        EXPECT_LE(groups.range(0).size(), range.size() + 1);
        for (next = range.begin; next < range.end; ++next) {
          EXPECT_EQ(groups.of(next).begin, range.begin);
          EXPECT_EQ(groups.of(next).end, range.end);
        }
      }
      EXPECT_EQ(next, nodes);
    }
  }
}

std::vector<Member> members_of(NodeIndex nodes,
                               const std::function<std::uint32_t(NodeIndex)>& domain,
                               const std::function<std::uint64_t(NodeIndex)>& bytes) {
  std::vector<Member> members;
  for (NodeIndex n = 0; n < nodes; ++n) members.push_back({n, bytes(n), domain(n)});
  return members;
}

TEST(PlanGroups, TakeTheirMembersFromDifferentDomains) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const auto nodes = static_cast<NodeIndex>(8 + random() % 300);
    const std::uint32_t domains = 2 + static_cast<std::uint32_t>(random() % 40);
    std::vector<std::uint32_t> domain(nodes);
    for (NodeIndex n = 0; n < nodes; ++n) {
      domain[n] = 1 + (round % 2 == 0 ? n * domains / nodes
                                      : static_cast<std::uint32_t>(random()) % domains);
    }
    const auto order = order_in_groups(
        members_of(
            nodes, [&](NodeIndex n) { return domain[n]; }, [](NodeIndex n) { return n % 5u; }),
        8);
    EXPECT_EQ((std::set<NodeIndex>(order.begin(), order.end()).size()), nodes);
    const Groups groups(nodes, 8);
    std::map<std::uint32_t, std::size_t> members;
    for (const std::uint32_t d : domain) ++members[d];
    for (std::size_t g = 0; g < groups.count(); ++g) {
      std::map<std::uint32_t, std::size_t> here;
      for (std::size_t i = groups.range(g).begin; i < groups.range(g).end; ++i)
        ++here[domain[order[i]]];
      // No domain is there more often than if it were dealt out evenly.
      for (const auto& [d, count] : here) {
        EXPECT_LE(count, (members[d] + groups.count() - 1) / groups.count());
      }
    }
  }
}

// Bytes that each node receives when every node has as many chunks as `chunks` says.
std::vector<std::uint64_t> received(NodeIndex nodes, unsigned copies, unsigned group,
                                    const std::function<std::uint64_t(NodeIndex)>& chunks,
                                    Dealing& dealing) {
  const FrequentSet none;
  std::vector<NodeState> states;
  for (NodeIndex n = 0; n < nodes; ++n)
    states.push_back({n, kPlenty, chunks(n), chunks(n) * 4096, 0, 0});
  dealing = deal_all({copies, false, 0, states, &none, {}, group, 0, 4096});
  EXPECT_TRUE(dealing.feasible);
  std::vector<std::uint64_t> bytes(nodes);
  for (const Flow& flow : dealing.flows) bytes[flow.to] += flow.chunks * 4096;
  return bytes;
}

TEST(PlanGroups, ReceiveAlikeAndLoseAlike) {
  constexpr NodeIndex kNodes = 1024;
  for (const unsigned copies : {2u, 3u}) {
    for (const std::uint64_t chunks : {1000u, 16384u}) {
      Dealing dealing;
      const auto bytes = received(
          kNodes, copies, 8, [&](NodeIndex) { return chunks; }, dealing);
      const std::uint64_t average = (copies - 1) * chunks * 4096;
      EXPECT_LE(*std::max_element(bytes.begin(), bytes.end()), average * 11 / 10);
      // One node is lost: who has what it had.
      std::vector<std::uint64_t> sources(kNodes);
      constexpr NodeIndex kLost = 17;
      std::mt19937 random(5);
      const auto& order = dealing.dealer.order();
      const auto position = std::find(order.begin(), order.end(), kLost) - order.begin();
      const Groups::Range group = Groups(kNodes, 8).of(static_cast<std::size_t>(position));
      for (std::size_t p = group.begin; p < group.end; ++p) {
        const NodeIndex n = order[p];
        const std::uint32_t parts = dealing.dealer.parts(n, chunks);
        for (std::uint64_t i = 0; i < chunks; ++i) {
          Dealer::Deal deal;
          ASSERT_TRUE(
              dealing.dealer.deal_unique(n, false, Dealer::part_of(i, chunks, parts), deal));
          if (!deal.placement.is_on(kLost)) continue;
          std::vector<NodeIndex> holders;
          LiveNodes live(kNodes);
          live.erase(kLost);
          deal.placement.sources(live, kLost, random(), holders);
          ++sources[holders.front()];
        }
      }
      std::vector<std::uint64_t> busy;
      for (const std::uint64_t count : sources) {
        if (count > 0) busy.push_back(count);
      }
      EXPECT_EQ(busy.size(), 7u);
      const std::uint64_t all = std::accumulate(busy.begin(), busy.end(), std::uint64_t{0});
      EXPECT_NEAR(static_cast<double>(all), copies * static_cast<double>(chunks), 7);
      EXPECT_LE(*std::max_element(busy.begin(), busy.end()) * busy.size(), all * 3 / 2);
    }
  }
}

// A node in eight has ten times as much: with partners by load and without groups, a partner of
// each.
TEST(PlanGroups, ShareTheLoadOfHeavyNodes) {
  const auto chunks = [](NodeIndex n) { return std::uint64_t{n % 8 == 3 ? 10000u : 1000u}; };
  Dealing dealing;
  const auto grouped = received(256, 2, 8, chunks, dealing);
  const auto by_load = received(256, 2, 0, chunks, dealing);
  const auto most = [](const auto& bytes) { return *std::max_element(bytes.begin(), bytes.end()); };
  EXPECT_EQ(most(by_load), 10000u * 4096);
  EXPECT_LT(most(grouped), 2500u * 4096);
}

TEST(PlanGroups, HaveOneCopyBesideEachOtherWhereThereIsLittle) {
  Dealing dealing;
  const auto bytes = received(
      64, 2, 8, [](NodeIndex) { return std::uint64_t{40}; }, dealing);
  EXPECT_EQ(dealing.flows.size(), 64u);
  EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), 40u * 4096);
}

//// Each other member of the group is the partner for each copy in one part.
TEST(PlanGroups, CopiesGoToAllInTurn) {
  for (NodeIndex size = 3; size < 16; ++size) {
    std::vector<NodeIndex> order(size);
    std::iota(order.begin(), order.end(), NodeIndex{0});
    for (unsigned copies = 2; copies < std::min<unsigned>(size, 6); ++copies) {
      for (const std::uint32_t turn : {0u, 5u, 0xffffffffu}) {
        const Dealer dealer(order, copies, {size, turn, {}});
        for (const NodeIndex from : order) {
          const std::uint32_t parts = dealer.parts(from, 10'000);
          ASSERT_EQ(parts, size - 1u);
          std::map<NodeIndex, unsigned> received;
          for (std::uint32_t part = 0; part < parts; ++part) {
            Dealer::Deal deal;
            ASSERT_TRUE(dealer.deal_unique(from, false, part, deal));
            for (const Dealer::Copy& copy : deal.copies) ++received[copy.to];
          }
          EXPECT_EQ(received.size(), size - 1u);
          for (const auto& [node, count] : received) EXPECT_EQ(count, copies - 1) << node;
        }
      }
    }
    EXPECT_EQ(Dealer(order, size, {size, 0, {}}).parts(0, 10'000), 1u);
  }
}

TEST(PlanGroups, BeginWithOthersInTurn) {
  std::set<NodeIndex> partners;
  for (std::uint32_t turn = 0; turn < 7; ++turn) {
    const Dealer dealer({0, 1, 2, 3, 4, 5, 6, 7}, 2, {8, turn, {}});
    ASSERT_EQ(dealer.parts(3, 10), 1u);
    Dealer::Deal deal;
    ASSERT_TRUE(dealer.deal_unique(3, false, 0, deal));
    partners.insert(deal.copies.front().to);
  }
  EXPECT_EQ(partners.size(), 7u);
}

// Fewer domains than a group has nodes.
TEST(PlanGroups, NoChunkIsInOneDomainAlone) {
  const FrequentSet none;
  std::vector<NodeState> states;
  for (NodeIndex n = 0; n < 15; ++n) {
    states.push_back({n, kPlenty, 1000, 1000 * 4096, 0, 0, 1 + n / 4u});
  }
  for (const unsigned copies : {2u, 3u}) {
    const Dealing dealing = deal_all({copies, false, 0, states, &none, {}, 8, 3, 4096});
    ASSERT_TRUE(dealing.feasible);
    for (const NodeState& state : states) {
      const std::uint32_t parts = dealing.dealer.parts(state.node, 1000);
      EXPECT_GT(parts, 5u);
      for (std::uint32_t part = 0; part < parts; ++part) {
        Dealer::Deal deal;
        ASSERT_TRUE(dealing.dealer.deal_unique(state.node, false, part, deal));
        std::set<std::uint32_t> domains;
        for (const NodeIndex node : deal.placement.nodes()) domains.insert(states[node].domain);
        EXPECT_EQ(domains.size(), copies);
      }
    }
  }
}

TEST(PlanGroups, OfDomainsAreAboutEqualToo) {
  for (const std::uint32_t domains : {2u, 8u, 32u}) {
    const auto members = members_of(
        256, [&](NodeIndex n) { return 1 + n % domains; },
        [](NodeIndex n) { return n % 16 < 4 ? 1000u : 100u; });
    std::map<NodeIndex, std::uint64_t> load;
    for (const Member& member : members) load[member.node] = member.bytes;
    const auto order = order_in_groups(members, 8);
    const Groups groups(256, 8);
    for (std::size_t g = 0; g < groups.count(); ++g) {
      std::uint64_t sum = 0;
      for (std::size_t i = groups.range(g).begin; i < groups.range(g).end; ++i)
        sum += load[order[i]];
      EXPECT_LE(sum, 3400u) << domains;  // 2600 on average
      EXPECT_GE(sum, 1700u) << domains;
    }
  }
}

// One long chunk, and many short ones: what a part takes is not known to others.
TEST(PlanGroups, AreNotPartedWhereThereIsLittleRoom) {
  const FrequentSet none;
  std::vector<NodeState> states;
  for (NodeIndex n = 0; n < 8; ++n) states.push_back({n, 4 * 68'000, 1000, 64'000 + 4096, 0, 0});
  const Dealing parted = deal_all({2, false, 0, states, &none, {}, 8, 0, 64});
  ASSERT_TRUE(parted.feasible);
  EXPECT_EQ(parted.flows.size(), 8u * 7);
  const Dealing whole = deal_all({2, false, 0, states, &none, {}, 8, 0, 4096});
  ASSERT_TRUE(whole.feasible);
  EXPECT_EQ(whole.flows.size(), 8u);
  EXPECT_EQ(whole.bytes_short, 0u);
}

// Where nobody of a group has room, others take the copies.
TEST(PlanGroups, AreLeftIfTheyAreFull) {
  const FrequentSet none;
  std::vector<NodeState> states;
  for (NodeIndex n = 0; n < 16; ++n) states.push_back({n, kPlenty, 100, 100 * 4096, 0, 0});
  const std::vector<NodeIndex> order =
      deal_all({2, false, 0, states, &none, {}, 8, 0, 4096}).dealer.order();
  for (std::size_t i = 1; i < 8; ++i)
    states[order[i]].free_bytes = 100 * 4096;  // its own, and no more
  const Dealing dealing = deal_all({2, false, 0, states, &none, order, 8, 0, 4096});
  ASSERT_TRUE(dealing.feasible);
  EXPECT_EQ(dealing.dealer.order(), order);
  std::map<NodeIndex, std::uint64_t> sent;
  for (const Flow& flow : dealing.flows) {
    sent[flow.from] += flow.chunks;
    EXPECT_TRUE(states[flow.to].free_bytes == kPlenty);
  }
  for (const auto& [node, chunks] : sent) EXPECT_EQ(chunks, 100u) << node;
  EXPECT_EQ(sent.size(), 16u);
}

TEST(PlanDeal, FullNodesArePassedOverOthersAreNot) {
  const FrequentSet none;
  std::vector<NodeState> nodes;
  for (NodeIndex n = 0; n < 6; ++n) nodes.push_back({n, kPlenty, 10, 1000, 0, 0});
  nodes[2].free_bytes = 2000;  // its own, but no copies
  nodes[4].free_bytes = 500;   // not even its own
  const Dealing p = deal_all({2, true, 0, nodes, &none, {}});
  ASSERT_TRUE(p.feasible);
  EXPECT_EQ(p.bytes_short, 1500u);
  EXPECT_EQ(p.tightest, 4);
  EXPECT_EQ(p.tightest_short, 1500u);
  std::map<std::pair<NodeIndex, NodeIndex>, std::uint64_t> flows;
  for (const Flow& f : p.flows) flows[{f.from, f.to}] = f.chunks;
  const std::map<std::pair<NodeIndex, NodeIndex>, std::uint64_t> expected{
      {{0, 1}, 10}, {{1, 2}, 10}, {{2, 3}, 10}, {{3, 5}, 10},
      {{4, 5}, 10}, {{4, 0}, 10}, {{5, 0}, 10}};
  EXPECT_EQ(flows, expected);
}

TEST(PlanDeal, SaysHowMuchRoomIsMissing) {
  const FrequentSet none;
  std::vector<NodeState> nodes;
  for (NodeIndex n = 0; n < 3; ++n) nodes.push_back({n, 1000, 10, 1000, 0, 0});
  nodes[1].free_bytes = 900;
  const Dealing p = deal_all({2, true, 44, nodes, &none, {}});
  EXPECT_FALSE(p.feasible);
  EXPECT_EQ(p.tightest, 1);
  EXPECT_EQ(p.tightest_short, 2u * (1000 + 440) - 900);
  EXPECT_EQ(p.bytes_short, 3u * 2 * (1000 + 440) - 2900);
}

TEST(PlanSlots, EverySlotHasItsOwnPlaceAndIsExpected) {
  std::mt19937 random(10);
  for (int round = 0; round < 500; ++round) {
    const SlotGrid grid{1 + random() % 5, SlotGrid::round_down(1 + random() % 70)};
    const std::uint64_t count = random() % 1000;
    std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> places;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> arrived;
    const auto round_of = [&](std::uint64_t slot) { return grid.place_of(slot) / grid.per_round; };
    for (std::uint64_t s = 0; s < count; ++s) {
      ASSERT_LT(grid.rank_of(s), grid.ranks);
      ASSERT_LT(grid.position_of(s), grid.per_round);
      ASSERT_LT(round_of(s), grid.rounds(count));
      ASSERT_GE(s, grid.first_of(round_of(s)));
      ASSERT_LT(s, grid.first_of(round_of(s) + 1));
      ASSERT_TRUE(places.emplace(grid.rank_of(s), round_of(s), grid.position_of(s)).second);
      ASSERT_EQ(s, grid.slot_at(grid.rank_of(s), grid.place_of(s)));
      // Positions are filled from 0 on.
      ASSERT_EQ(grid.position_of(s), (arrived[{grid.rank_of(s), round_of(s)}]++));
    }
    for (std::uint64_t r = 0; r < grid.ranks; ++r) {
      std::uint64_t all = 0;
      for (std::uint64_t k = 0; k < grid.rounds(count) + 1; ++k) {
        ASSERT_EQ(grid.expected(count, r, k), (arrived[{r, k}]));
        all += arrived[{r, k}];
      }
      ASSERT_EQ(grid.expected(count, r), all);
    }
  }
}

TEST(PlanSlots, BlocksStayTogether) {
  const SlotGrid grid{3, 256};
  ASSERT_EQ(grid.block(), 128u);
  for (std::uint64_t s = 0; s < 5000; ++s) {
    EXPECT_EQ(grid.rank_of(s), s / 128 % 3);
    if (s % 128 != 0) {
      EXPECT_EQ(grid.place_of(s), grid.place_of(s - 1) + 1);
    }
  }
  EXPECT_EQ((SlotGrid{3, 7}).block(), 1u);
  for (std::uint64_t slots = 1; slots < 5000; ++slots) {
    const std::uint64_t rounded = SlotGrid::round_down(slots);
    EXPECT_LE(rounded, slots);
    EXPECT_GE(rounded * 8, slots * 7) << slots;
    EXPECT_GE((SlotGrid{1, rounded}).block() * 16, std::min<std::uint64_t>(slots, 2048)) << slots;
  }
}

}  // namespace
}  // namespace dedup::plan
