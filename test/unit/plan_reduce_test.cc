#include "plan/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "plan/settled.h"

namespace dedup::plan {
namespace {

Fingerprint fingerprint_of(std::uint64_t number) {
  Fingerprint f;
  // Spread, so that the order of fingerprints is not that of the numbers.
  const std::uint64_t spread = number * 0x9e3779b97f4a7c15u;
  std::memcpy(f.bytes.data(), &spread, sizeof spread);
  std::memcpy(f.bytes.data() + 8, &number, sizeof number);
  return f;
}

FrequentSet node_set(NodeIndex node, const std::set<std::uint64_t>& chunks,
                     const ReduceLimits& limits) {
  FrequentSet set;
  for (const std::uint64_t c : chunks) set.add(fingerprint_of(c), 4096, 1, node, false, {});
  set.finish(limits);
  return set;
}

// As the tree over ranks does it.
FrequentSet reduce(std::vector<FrequentSet> sets, const ReduceLimits& limits) {
  for (std::size_t step = 1; step < sets.size(); step *= 2) {
    for (std::size_t i = 0; i + step < sets.size(); i += 2 * step) {
      sets[i] = FrequentSet::merge(sets[i], sets[i + step], limits);
    }
  }
  return sets[0];
}

void expect_sound(const FrequentSet& set, const ReduceLimits& limits) {
  ASSERT_LE(set.elements().size(), limits.threshold);
  for (std::size_t i = 0; i < set.elements().size(); ++i) {
    const auto& e = set.elements()[i];
    if (i > 0) {
      ASSERT_LT(set.elements()[i - 1].fingerprint, e.fingerprint);
    }
    const auto nodes = set.designated(e);
    ASSERT_GE(nodes.size(), 1u);
    ASSERT_LE(nodes.size(), limits.copies);
    for (std::size_t j = 1; j < nodes.size(); ++j) ASSERT_LT(nodes[j - 1].node, nodes[j].node);
    ASSERT_EQ(set.find(e.fingerprint), &e);
  }
}

TEST(PlanReduce, CountsNodesAndDesignatesThem) {
  const ReduceLimits limits{2, 100, 3};
  const auto set = reduce(
      {node_set(0, {1, 2, 3}, limits), node_set(1, {2, 3}, limits), node_set(2, {3}, limits)},
      limits);
  ASSERT_EQ(set.elements().size(), 3u);
  const auto* one = set.find(fingerprint_of(1));
  const auto* two = set.find(fingerprint_of(2));
  const auto* three = set.find(fingerprint_of(3));
  EXPECT_EQ(one->frequency, 1u);
  EXPECT_EQ(two->frequency, 2u);
  EXPECT_EQ(three->frequency, 3u);
  EXPECT_EQ(set.designated(*one)[0].node, 0);
  EXPECT_EQ(set.designated(*two).size(), 2u);
  // Node 0 keeps 1 and 2 anyway: node 2, which keeps nothing else, is one of those that keep 3.
  ASSERT_EQ(set.designated(*three).size(), 2u);
  EXPECT_EQ(set.designated(*three)[1].node, 2);
}

// With room for everything the result is exact, whatever the tree.
TEST(PlanReduce, AgreesWithCountingWhenNothingOverflows) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto nodes = static_cast<NodeIndex>(1 + random() % 20);
    const ReduceLimits limits{1 + static_cast<std::uint32_t>(random() % nodes), 1000, nodes};
    std::map<std::uint64_t, std::set<NodeIndex>> reference;
    std::vector<FrequentSet> sets;
    for (NodeIndex n = 0; n < nodes; ++n) {
      std::set<std::uint64_t> chunks;
      for (unsigned i = random() % 30; i > 0; --i) chunks.insert(random() % 40);
      for (const std::uint64_t c : chunks) reference[c].insert(n);
      sets.push_back(node_set(n, chunks, limits));
    }
    const FrequentSet set = reduce(std::move(sets), limits);
    ASSERT_NO_FATAL_FAILURE(expect_sound(set, limits));
    ASSERT_EQ(set.elements().size(), reference.size());
    for (const auto& [chunk, holders] : reference) {
      const auto* e = set.find(fingerprint_of(chunk));
      ASSERT_NE(e, nullptr);
      ASSERT_EQ(e->frequency, holders.size());
      ASSERT_EQ(e->count, std::min<std::size_t>(holders.size(), limits.copies));
      for (const Designated& d : set.designated(*e)) {
        ASSERT_TRUE(holders.contains(d.node));
        ASSERT_TRUE(d.has_data);
        ASSERT_FALSE(d.held);
      }
    }
  }
}

// One merge against a reference that sorts the whole union.
TEST(PlanReduce, KeepsTheMostFrequentOfTheUnion) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const ReduceLimits wide{3, 100000, 8};
    const ReduceLimits narrow{3, 1 + static_cast<std::uint32_t>(random() % 60), 8};
    std::vector<FrequentSet> halves;
    std::map<Fingerprint, std::pair<unsigned, unsigned>> count;
    for (NodeIndex half = 0; half < 2; ++half) {
      std::vector<FrequentSet> sets;
      for (NodeIndex n = 0; n < 4; ++n) {
        FrequentSet set;
        std::set<std::uint64_t> chunks;
        for (unsigned i = random() % 30; i > 0; --i) chunks.insert(random() % 60);
        for (const std::uint64_t c : chunks) {
          const unsigned ranks = 1 + random() % 3;
          set.add(fingerprint_of(c), 512, ranks, static_cast<NodeIndex>(half * 4 + n), false, {});
          ++count[fingerprint_of(c)].first;
          count[fingerprint_of(c)].second += ranks;
        }
        set.finish(wide);
        sets.push_back(set);
      }
      halves.push_back(reduce(std::move(sets), wide));
    }
    const FrequentSet set = FrequentSet::merge(halves[0], halves[1], narrow);
    ASSERT_NO_FATAL_FAILURE(expect_sound(set, narrow));
    std::vector<std::tuple<int, int, Fingerprint>> order;
    for (const auto& [f, c] : count) {
      order.emplace_back(-static_cast<int>(c.first), -static_cast<int>(c.second), f);
    }
    std::sort(order.begin(), order.end());
    order.resize(std::min<std::size_t>(order.size(), narrow.threshold));
    ASSERT_EQ(set.elements().size(), order.size());
    for (const auto& [frequency, ranks, f] : order) {
      const auto* e = set.find(f);
      ASSERT_NE(e, nullptr);
      ASSERT_EQ(static_cast<int>(e->frequency), -frequency);
      ASSERT_EQ(static_cast<int>(e->ranks), -ranks);
    }
  }
}

// All nodes have the same chunks: each keeps its share, not K nodes all of them (2015, III-B).
TEST(PlanReduce, SpreadsWhatAllHave) {
  for (const NodeIndex nodes : {2, 3, 8, 13, 64}) {
    for (const std::uint32_t copies : {1u, 2u, 3u}) {
      const ReduceLimits limits{std::min<std::uint32_t>(copies, nodes), 4096, nodes};
      std::set<std::uint64_t> chunks;
      for (std::uint64_t c = 0; c < 640; ++c) chunks.insert(c);
      std::vector<FrequentSet> sets;
      for (NodeIndex n = 0; n < nodes; ++n) sets.push_back(node_set(n, chunks, limits));
      const FrequentSet set = reduce(std::move(sets), limits);
      std::vector<unsigned> load(nodes);
      for (const auto& e : set.elements()) {
        ASSERT_EQ(e.count, limits.copies);
        for (const Designated& d : set.designated(e)) ++load[d.node];
      }
      const double even = 640.0 * limits.copies / nodes;
      EXPECT_LE(*std::max_element(load.begin(), load.end()), even * 1.25 + 2)
          << nodes << " nodes, K = " << copies;
      EXPECT_GE(*std::min_element(load.begin(), load.end()), even * 0.75 - 2);
    }
  }
}

TEST(PlanReduce, ThoseWithMuchOfTheirOwnKeepLessOfWhatIsShared) {
  const ReduceLimits limits{1, 100, 2};
  FrequentSet heavy;
  for (std::uint64_t c = 0; c < 20; ++c) heavy.add(fingerprint_of(c), 4096, 1, 0, false, {});
  heavy.add_outside(0, 15);
  heavy.finish(limits);
  std::set<std::uint64_t> chunks;
  for (std::uint64_t c = 0; c < 20; ++c) chunks.insert(c);
  const FrequentSet set = FrequentSet::merge(heavy, node_set(1, chunks, limits), limits);
  unsigned kept_by_heavy = 0;
  for (const auto& e : set.elements()) kept_by_heavy += set.designated(e)[0].node == 0 ? 1 : 0;
  EXPECT_EQ(kept_by_heavy, 3u);  // 15 + 2.5 = 17.5; the tie goes to node 0
}

TEST(PlanReduce, ThoseThatHoldAChunkStayDesignated) {
  const ReduceLimits limits{2, 100, 6};
  FrequentSet holder;
  const NodeSet others{0, 5};
  holder.add(fingerprint_of(1), 4096, 1, 5, true, others);
  holder.finish(limits);
  const FrequentSet set =
      reduce({node_set(1, {1}, limits), node_set(2, {1}, limits), holder, node_set(0, {1}, limits)},
             limits);
  const auto* e = set.find(fingerprint_of(1));
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->frequency, 4u);
  const auto nodes = set.designated(*e);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0], (Designated{0, true, true}));
  EXPECT_EQ(nodes[1], (Designated{5, true, true}));
}

TEST(PlanReduce, OverflowKeepsTheSameChunksEverywhere) {
  // Each node alone has more chunks than F, the same ones in all: what is kept must still match.
  const ReduceLimits limits{2, 50, 16};
  std::set<std::uint64_t> chunks;
  for (std::uint64_t c = 0; c < 400; ++c) chunks.insert(c);
  std::vector<FrequentSet> sets;
  for (NodeIndex n = 0; n < 16; ++n) sets.push_back(node_set(n, chunks, limits));
  const FrequentSet set = reduce(std::move(sets), limits);
  ASSERT_EQ(set.elements().size(), 50u);
  for (const auto& e : set.elements()) EXPECT_EQ(e.frequency, 16u);
}

TEST(PlanReduce, DropsSingles) {
  const ReduceLimits limits{2, 100, 2};
  FrequentSet set =
      FrequentSet::merge(node_set(0, {1, 2, 3}, limits), node_set(1, {2, 3, 4}, limits), limits);
  set.drop_singles();
  ASSERT_EQ(set.elements().size(), 2u);
  ASSERT_NO_FATAL_FAILURE(expect_sound(set, limits));
  for (const auto& e : set.elements()) EXPECT_EQ(e.count, 2u);
  EXPECT_EQ(set.find(fingerprint_of(1)), nullptr);
  EXPECT_NE(set.find(fingerprint_of(2)), nullptr);
}

TEST(PlanReduce, ResultDoesNotGrowWithTheNodes) {
  const auto size_of_result = [](NodeIndex nodes) {
    const ReduceLimits limits{1, 4, nodes};
    std::vector<FrequentSet> sets;
    for (NodeIndex n = 0; n < nodes; ++n) {
      FrequentSet set;
      set.add(fingerprint_of(0), 100, 1, n, false, {});
      set.add(fingerprint_of(n + 1u), 100, 1, n, false, {});
      set.add_outside(n, 1000);
      set.finish(limits);
      sets.push_back(set);
    }
    FrequentSet result = reduce(sets, limits);
    EXPECT_EQ(result.elements().size(), 4u);
    result.drop_singles();
    EXPECT_EQ(result.elements().size(), 1u);
    Encoder encoder;
    result.encode(encoder);
    return encoder.size();
  };
  EXPECT_EQ(size_of_result(64), size_of_result(8));
}

TEST(PlanReduce, TravelsUnchanged) {
  const ReduceLimits limits{2, 40, 4};
  std::mt19937 random(5);
  std::vector<FrequentSet> sets;
  for (NodeIndex n = 0; n < 4; ++n) {
    FrequentSet set;
    const NodeSet others{1, 3};
    for (std::uint64_t c = n; c < 30; c += 1 + random() % 3) {
      set.add(fingerprint_of(c), 100, 2, n, n == 3, n == 3 ? others : NodeSet{});
    }
    set.add_outside(n, n);
    set.finish(limits);
    sets.push_back(set);
  }
  const FrequentSet direct = FrequentSet::merge(reduce({sets[0], sets[1]}, limits),
                                                reduce({sets[2], sets[3]}, limits), limits);
  for (FrequentSet& set : sets) {
    Encoder e;
    set.encode(e);
    Decoder d(e.bytes());
    set = FrequentSet::decode(d);
    ASSERT_TRUE(d.ok() && d.at_end());
  }
  const FrequentSet travelled = reduce(sets, limits);
  Encoder a;
  Encoder b;
  direct.encode(a);
  travelled.encode(b);
  EXPECT_EQ(a.bytes(), b.bytes());

  Bytes cut = a.bytes();
  cut.resize(cut.size() / 2);
  Decoder d(cut);
  FrequentSet::decode(d);
  EXPECT_FALSE(d.ok());
}

Bytes encoded(const FrequentSet& set) {
  Encoder e;
  set.encode(e);
  return e.take();
}

TEST(PlanReduce, LoadsTravelInAByteOrTwo) {
  FrequentSet alike;
  for (NodeIndex n = 0; n < 1000; ++n) alike.add_outside(n, 100'000);
  EXPECT_LT(encoded(alike).size(), 1020u);

  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    FrequentSet set;
    for (std::uint32_t n = 0; n < 0x10000;) {
      const std::uint32_t loads[] = {0, 1, static_cast<std::uint32_t>(random()), 0xffffffff};
      set.add_outside(static_cast<NodeIndex>(n), loads[random() % 4]);
      n += random() % 3 == 0 ? 1 + static_cast<std::uint32_t>(random() % 5000) : 1;
      if (random() % 200 == 0) break;
    }
    Bytes bytes = encoded(set);
    Decoder d(bytes);
    EXPECT_EQ(encoded(FrequentSet::decode(d)), bytes);
    EXPECT_TRUE(d.ok() && d.at_end());
    // Whatever else comes is read without harm.
    bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    Decoder damaged(bytes);
    FrequentSet::decode(damaged);
  }
}

TEST(PlanSettled, FindsWhatWasDecided) {
  SettledChunks settled(100);
  const auto on_0_1 = Placement::copies_on({0, 1});
  const auto on_2_4 = Placement::copies_on({2, 4});
  settled.add({{fingerprint_of(1), on_0_1}, {fingerprint_of(2), on_0_1}}, 4);
  settled.add({{fingerprint_of(3), on_2_4}}, 1);
  ASSERT_NE(settled.find(fingerprint_of(1)), nullptr);
  EXPECT_EQ(*settled.find(fingerprint_of(2)), on_0_1);
  EXPECT_EQ(*settled.find(fingerprint_of(3)), on_2_4);
  EXPECT_EQ(settled.find(fingerprint_of(4)), nullptr);
  settled.clear();
  EXPECT_EQ(settled.find(fingerprint_of(1)), nullptr);
}

// Two nodes divide the fingerprints differently; together their parts must know the same.
TEST(PlanSettled, ForgetsTheSameWhateverTheParts) {
  std::mt19937 random(6);
  for (int round = 0; round < 50; ++round) {
    const auto limit = static_cast<std::uint32_t>(1 + random() % 60);
    SettledChunks whole(limit);
    std::vector<SettledChunks> parts(3, SettledChunks(limit));
    std::uint64_t next = 0;
    for (int dump = 0; dump < 20; ++dump) {
      const std::uint64_t size = random() % (limit + 1);
      std::vector<std::pair<Fingerprint, Placement>> all;
      std::vector<std::vector<std::pair<Fingerprint, Placement>>> split(3);
      for (std::uint64_t i = 0; i < size; ++i, ++next) {
        const std::pair<Fingerprint, Placement> chunk{
            fingerprint_of(next), Placement::copies_on({static_cast<NodeIndex>(next % 5), 7})};
        all.push_back(chunk);
        split[next % 3].push_back(chunk);
      }
      whole.add(all, size);
      for (std::size_t i = 0; i < 3; ++i) parts[i].add(split[i], size);
      std::size_t known = 0;
      for (std::uint64_t c = 0; c < next; ++c) {
        const Placement* a = whole.find(fingerprint_of(c));
        const Placement* b = parts[c % 3].find(fingerprint_of(c));
        ASSERT_EQ(a == nullptr, b == nullptr);
        if (a == nullptr) continue;
        ++known;
        ASSERT_EQ(*a, *b);
        ASSERT_EQ(a->nodes().front(), c % 5);
      }
      ASSERT_LE(known, limit);
      if (size > 0) {
        ASSERT_NE(whole.find(fingerprint_of(next - 1)), nullptr);
      }
    }
  }
}

}  // namespace
}  // namespace dedup::plan
