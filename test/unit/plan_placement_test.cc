#include "plan/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>

namespace dedup::plan {
namespace {

using Nodes = std::vector<NodeIndex>;

// `count` different nodes of 0 … nodes - 1.
Nodes some_of(NodeIndex nodes, std::size_t count, std::mt19937_64& random) {
  std::set<NodeIndex> chosen;
  while (chosen.size() < count) chosen.insert(static_cast<NodeIndex>(random() % nodes));
  return {chosen.begin(), chosen.end()};
}

LiveNodes without(LiveNodes live, const Nodes& lost) {
  for (const NodeIndex node : lost) live.erase(node);
  return live;
}

// A chunk's name where it is a hash, and where it is a number.
Fingerprint hash(std::mt19937_64& random) {
  Fingerprint f;
  for (std::uint8_t& byte : f.bytes) byte = static_cast<std::uint8_t>(random());
  return f;
}
Fingerprint numbered(std::uint64_t number) {
  Fingerprint f;
  for (std::size_t i = 0; i < 8; ++i)
    f.bytes[16 + i] = static_cast<std::uint8_t>(number >> (8 * i));
  return f;
}

Nodes sources(const Placement& placement, const LiveNodes& live, NodeIndex reader,
              std::uint64_t salt) {
  Nodes out{77};  // is overwritten
  placement.sources(live, reader, salt, out);
  return out;
}

TEST(PlanPlacement, LiveNodesAreASet) {
  const LiveNodes none;
  EXPECT_EQ(none.count(), 0u);
  EXPECT_FALSE(none.contains(0));
  const std::uint64_t seed = 1;
  std::mt19937_64 random(seed);
  for (const NodeIndex nodes : Nodes{1, 63, 64, 65, 1000, 65535}) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", nodes " + std::to_string(nodes));
    LiveNodes live(nodes);
    EXPECT_EQ(live.count(), nodes);
    EXPECT_TRUE(live.contains(static_cast<NodeIndex>(nodes - 1)));
    EXPECT_FALSE(live.contains(nodes));
    EXPECT_FALSE(live.contains(kNoNode));
    std::set<NodeIndex> expected(live.list().begin(), live.list().end());
    ASSERT_EQ(expected.size(), nodes);
    for (int i = 0; i < 40; ++i) {
      const auto node = static_cast<NodeIndex>(random() % nodes);
      live.erase(node);  // often one that is gone already
      expected.erase(node);
      EXPECT_FALSE(live.contains(node));
    }
    EXPECT_EQ(live.list(), Nodes(expected.begin(), expected.end()));
    EXPECT_EQ(live.count(), expected.size());
    Nodes shuffled = live.list();
    shuffled.insert(shuffled.end(), live.list().begin(), live.list().end());
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const LiveNodes again(shuffled);
    EXPECT_EQ(again.list(), live.list());
    for (NodeIndex node = 0; node < nodes; ++node) {
      ASSERT_EQ(live.contains(node), expected.contains(node)) << node;
      ASSERT_EQ(again.contains(node), expected.contains(node)) << node;
    }
  }
}

TEST(PlanPlacement, IsAValue) {
  const Placement a = Placement::copies_on({5, 1, 3, 1});
  EXPECT_EQ(a, Placement::copies_on({1, 3, 5}));
  EXPECT_EQ(a.nodes(), (NodeSet{1, 3, 5}));
  EXPECT_NE(a, Placement::copies_on({1, 3}));
  EXPECT_EQ(Placement(), Placement::copies_on({}));
  const std::set<Placement> distinct{a, Placement::copies_on({1, 3, 5}), Placement()};
  EXPECT_EQ(distinct.size(), 2u);
  EXPECT_TRUE(a.is_on(3));
  EXPECT_FALSE(a.is_on(2));
  EXPECT_EQ(a.redundancy(), Redundancy::copies(3));
  EXPECT_TRUE(Placement().redundancy().is_lost());
  EXPECT_EQ(Redundancy::copies(3).within(2), Redundancy::copies(2));
  EXPECT_EQ(Redundancy::copies(3).within(4), Redundancy::copies(3));
}

// For every set of holders, every set of lost nodes and every K: by what redundancy means, that
// whichever further nodes are lost, as long as these are fewer than K, the chunk is still there.
TEST(PlanPlacement, EnoughIsWhatEveryLossLeaves) {
  constexpr NodeIndex kNodes = 6;
  constexpr unsigned kSets = 1u << kNodes;
  const auto nodes_of = [](unsigned set) {
    Nodes nodes;
    for (NodeIndex n = 0; n < kNodes; ++n) {
      if ((set >> n & 1) != 0) nodes.push_back(n);
    }
    return nodes;
  };
  for (unsigned holders = 0; holders < kSets; ++holders) {
    const Placement placement = Placement::copies_on(nodes_of(holders));
    for (unsigned lost = 0; lost < kSets; ++lost) {
      const LiveNodes live = without(LiveNodes(kNodes), nodes_of(lost));
      unsigned fatal = kNodes + 1;  // the fewest further losses after which nobody has it
      for (unsigned further = 0; further < kSets; ++further) {
        if ((further & lost) != 0 || (holders & ~lost & ~further) != 0) continue;
        fatal = std::min(fatal, static_cast<unsigned>(std::popcount(further)));
      }
      ASSERT_EQ(placement.redundancy(live).as_copies(), fatal) << holders << " " << lost;
      ASSERT_EQ(placement.redundancy(live).is_lost(), (holders & ~lost) == 0);
      ASSERT_EQ(placement.surviving(live).nodes(), nodes_of(holders & ~lost));
      ASSERT_EQ(placement.surviving(live).redundancy(), placement.redundancy(live));
      for (std::uint32_t wanted = 0; wanted <= kNodes; ++wanted) {
        ASSERT_EQ(placement.enough(live, Redundancy::copies(wanted)), wanted <= fatal);
      }
    }
  }
}

TEST(PlanPlacement, SourcesAreTheLiveOnesOwnFirst) {
  const std::uint64_t seed = 2;
  std::mt19937_64 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int round = 0; round < 3000; ++round) {
    const auto nodes = static_cast<NodeIndex>(16 + random() % 4000);
    const Nodes holders = some_of(nodes, random() % 6, random);
    const Placement placement = Placement::copies_on(holders);
    Nodes lost = some_of(nodes, random() % 10, random);
    for (const NodeIndex node : holders) {
      if (random() % 3 == 0) lost.push_back(node);
    }
    const LiveNodes live = without(LiveNodes(nodes), lost);
    const NodeIndex reader = !holders.empty() && random() % 2 == 0
                                 ? holders[random() % holders.size()]
                                 : static_cast<NodeIndex>(random() % nodes);
    const std::uint64_t salt = random();
    const Nodes from = sources(placement, live, reader, salt);
    ASSERT_EQ(from, sources(placement, live, reader, salt));
    for (const NodeIndex node : from) ASSERT_TRUE(live.contains(node));
    const Nodes expected = placement.surviving(live).nodes();
    if (std::find(expected.begin(), expected.end(), reader) != expected.end()) {
      ASSERT_EQ(from.front(), reader);
    }
    ASSERT_EQ(from.size(), expected.size());
    ASSERT_EQ(Placement::copies_on(from).nodes(), expected);
  }
}

// Many readers without the chunk, or one reader of many chunks: each copy is asked alike.
TEST(PlanPlacement, SourcesSpread) {
  const Placement placement = Placement::copies_on({10, 20, 30});
  const LiveNodes live(3000);
  std::map<NodeIndex, int> by_reader;
  std::map<NodeIndex, int> by_salt;
  for (NodeIndex i = 100; i < 1000; ++i) {
    ++by_reader[sources(placement, live, i, 7).front()];
    ++by_salt[sources(placement, live, 99, i).front()];
  }
  for (const NodeIndex node : placement.nodes()) {
    EXPECT_EQ(by_reader[node], 300);
    EXPECT_EQ(by_salt[node], 300);
  }
}

struct Case {
  NodeIndex nodes;
  std::size_t lost;
  std::uint32_t wanted;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::to_string(info.param.nodes) + "Without" + std::to_string(info.param.lost) + "K" +
         std::to_string(info.param.wanted);
}

class PlanPlacementRepair : public testing::TestWithParam<Case> {};
class PlanPlacementSpread : public testing::TestWithParam<Case> {};

// Chunks in rings and anywhere, some with more copies than are wanted, some with none; nodes are
// lost. Whoever decides, each chunk gets what it lacks, on nodes that live and have none of it.
TEST_P(PlanPlacementRepair, BringsWhatIsLackingAndNoMore) {
  const auto [nodes, lost_count, copies] = GetParam();
  const std::uint64_t seed = nodes * 31u + copies;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const Nodes lost = some_of(nodes, lost_count, random);
  const LiveNodes live = without(LiveNodes(nodes), lost);
  // Another process came to know the same by another way.
  Nodes shuffled = live.list();
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  const LiveNodes told(shuffled);
  const Redundancy wanted = Redundancy::copies(copies);
  for (int i = 0; i < 5000; ++i) {
    Nodes holders;
    if (i % 2 == 0) {
      holders = some_of(nodes, random() % std::min<std::size_t>(copies + 3, nodes), random);
    } else {
      const std::uint64_t first = random();
      for (std::uint64_t k = 0; k < std::min<std::uint64_t>(copies, nodes); ++k) {
        holders.push_back(static_cast<NodeIndex>((first + k) % nodes));
      }
    }
    const Placement placement = Placement::copies_on(holders);
    const Placement left = placement.surviving(live);
    const Fingerprint chunk = i % 3 == 0 ? numbered(static_cast<std::uint64_t>(i)) : hash(random);
    const Repair repair = placement.repair(live, wanted, chunk);
    ASSERT_EQ(repair, placement.repair(told, wanted, chunk));
    ASSERT_EQ(repair, left.repair(live, wanted, chunk)) << "what is lost has no part in it";
    // Of live nodes without a copy, each once.
    const std::set<NodeIndex> targets(repair.targets.begin(), repair.targets.end());
    ASSERT_EQ(targets.size(), repair.targets.size());
    for (const NodeIndex node : targets) {
      ASSERT_TRUE(live.contains(node));
      ASSERT_FALSE(placement.is_on(node));
    }
    // What is said to be there afterwards is, and nothing else.
    Nodes after = left.nodes();
    after.insert(after.end(), targets.begin(), targets.end());
    ASSERT_EQ(repair.after, Placement::copies_on(after));
    ASSERT_TRUE(repair.after.enough(live, wanted.within(live.count())));
    // One transfer less would not have done.
    ASSERT_EQ(repair.targets.empty(), left.enough(live, wanted.within(live.count())));
    if (!repair.targets.empty()) {
      ASSERT_EQ(repair.after.redundancy(), wanted.within(live.count()));
      after.pop_back();
      ASSERT_FALSE(Placement::copies_on(after).enough(live, wanted.within(live.count())));
    }
    // And nothing is lacking then.
    ASSERT_TRUE(repair.after.repair(live, wanted, chunk).targets.empty());
  }
}

// A lost node's chunks, all of them on one neighbour otherwise, go to all that are left alike:
// also if their names differ in one number only, as they do without deduplication.
TEST_P(PlanPlacementSpread, IsEven) {
  const auto [nodes, lost_count, copies] = GetParam();
  const std::uint64_t seed = nodes * 37u + copies;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Nodes lost = some_of(nodes, lost_count, random);
  const LiveNodes live = without(LiveNodes(nodes), lost);
  const NodeIndex keeper = live.list()[random() % live.count()];
  const Placement placement = Placement::copies_on({keeper});
  constexpr std::uint64_t kEach = 400;  // standard deviation 20
  for (const bool consecutive : {false, true}) {
    std::vector<std::uint64_t> received(nodes);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; sum < kEach * (live.count() - 1); ++i) {
      const Fingerprint chunk = consecutive ? numbered(i) : hash(random);
      for (const NodeIndex node :
           placement.repair(live, Redundancy::copies(copies), chunk).targets) {
        ++received[node];
        ++sum;
      }
    }
    EXPECT_EQ(received[keeper], 0u);
    const double mean = static_cast<double>(sum) / (live.count() - 1);
    for (const NodeIndex node : live.list()) {
      if (node == keeper) continue;
      ASSERT_LT(received[node], 1.3 * mean) << node;
      ASSERT_GT(received[node], 0.7 * mean) << node;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, PlanPlacementRepair,
                         testing::Values(Case{1, 0, 1}, Case{2, 0, 2}, Case{3, 1, 3}, Case{4, 0, 2},
                                         Case{8, 3, 3}, Case{34, 3, 3}, Case{100, 90, 4},
                                         Case{1000, 5, 2}, Case{4096, 400, 3}, Case{4096, 4090, 16},
                                         Case{5000, 1, 16}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Nodes, PlanPlacementSpread,
                         testing::Values(Case{4, 0, 2}, Case{8, 3, 3}, Case{34, 3, 3},
                                         Case{100, 90, 4}, Case{1000, 5, 2}, Case{4096, 400, 3},
                                         Case{4096, 4070, 16}, Case{2000, 1, 16}),
                         name_of);

// The same chunk, wherever: the choice is part of what several ranks agree on without a word. What
// is written here is what others come to.
TEST(PlanPlacement, RepairIsFixed) {
  const LiveNodes live(1000);
  const Placement placement = Placement::copies_on({7});
  const Repair repair = placement.repair(live, Redundancy::copies(4), numbered(42));
  EXPECT_EQ(repair.targets, (Nodes{100, 82, 493}));
}

TEST(PlanPlacement, Remap) {
  Placement placement = Placement::copies_on({0, 2, 3});
  const Nodes table{5, kNoNode, 1, kNoNode, 9};
  ASSERT_TRUE(placement.remap(table));
  EXPECT_EQ(placement, Placement::copies_on({1, 5}));
  Placement unknown = Placement::copies_on({1, 5});
  EXPECT_FALSE(unknown.remap(table));
  EXPECT_EQ(unknown, Placement::copies_on({1, 5}));
  const std::uint64_t seed = 3;
  std::mt19937_64 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Nodes folded{3, kNoNode, 0, 3, 9};
  for (int step = 0; step < 100; ++step) {
    const Nodes nodes = some_of(5, random() % 5, random);
    std::set<NodeIndex> expected;
    for (const NodeIndex n : nodes) {
      if (folded[n] != kNoNode) expected.insert(folded[n]);
    }
    Placement mapped = Placement::copies_on(nodes);
    ASSERT_TRUE(mapped.remap(folded));
    EXPECT_EQ(mapped.nodes(), Nodes(expected.begin(), expected.end()));
  }
}

TEST(PlanPlacement, AddingCopies) {
  Placement placement;
  for (const NodeIndex node : Nodes{7, 2, 7, 9, 2}) placement.add_copy(node);
  EXPECT_EQ(placement, Placement::copies_on({2, 7, 9}));
  placement.clear();
  EXPECT_EQ(placement, Placement());
}

Bytes encoded(const Placement& placement) {
  Encoder e;
  placement.encode(e);
  return e.take();
}

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  for (const unsigned v : values) bytes.push_back(static_cast<std::byte>(v));
  return bytes;
}

TEST(PlanPlacement, EncodingOfCopies) {
  EXPECT_EQ(encoded(Placement()), bytes_of({0}));
  EXPECT_EQ(encoded(Placement::copies_on({0, 1, 300})), bytes_of({3, 0, 0, 0xaa, 2}));
  const std::uint64_t seed = 5;
  std::mt19937_64 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int i = 0; i < 500; ++i) {
    const Placement placement = Placement::copies_on(some_of(65535, random() % 40, random));
    const Bytes bytes = encoded(placement);
    Decoder d(bytes);
    EXPECT_EQ(Placement::decode(d), placement);
    EXPECT_LE(bytes.size(), Placement::encoded_at_most(placement.nodes().size()));
    EXPECT_LE(bytes.size(), placement.encoded_size());
    EXPECT_TRUE(d.ok());
    EXPECT_TRUE(d.at_end());
    if (bytes.size() < 2) continue;
    Decoder cut(std::span<const std::byte>(bytes).first(bytes.size() - 1));
    (void)Placement::decode(cut);
    EXPECT_FALSE(cut.ok());
  }
  LiveNodes all(65535);
  const Bytes bytes = encoded(Placement::copies_on(all.list()));
  Decoder d(bytes);
  EXPECT_EQ(Placement::decode(d).nodes(), all.list());
  EXPECT_TRUE(d.ok());
}

// Units on nodes 10, 20 and so on.
StripeUnit stripe_of(unsigned unit, unsigned data, unsigned parities) {
  StripeUnit stripe;
  stripe.stripe = Id128::random();
  stripe.unit = static_cast<std::uint8_t>(unit);
  stripe.data = static_cast<std::uint8_t>(data);
  for (unsigned slot = 0; slot < data + parities; ++slot) {
    stripe.nodes.push_back(static_cast<NodeIndex>(10 * (slot + 1)));
  }
  return stripe;
}

// The slots that a loss leaves, bit by bit.
LiveNodes live_of(const StripeUnit& stripe, unsigned slots) {
  Nodes nodes{5, 1000};
  for (unsigned slot = 0; slot < stripe.nodes.size(); ++slot) {
    if ((slots >> slot & 1) != 0) nodes.push_back(stripe.nodes[slot]);
  }
  return LiveNodes(nodes);
}

bool can_be_had(const StripeUnit& stripe, unsigned slots) {
  return (slots >> stripe.unit & 1) != 0 ||
         static_cast<unsigned>(std::popcount(slots)) >= stripe.data;
}

// How many losses it takes, at least, of what is there: by going through all of them.
std::uint32_t least_fatal(const StripeUnit& stripe, unsigned slots) {
  if (!can_be_had(stripe, slots)) return 0;
  int least = static_cast<int>(stripe.nodes.size()) + 1;
  for (unsigned lost = slots; lost != 0; lost = (lost - 1) & slots) {
    if (!can_be_had(stripe, slots & ~lost)) least = std::min(least, std::popcount(lost));
  }
  return static_cast<std::uint32_t>(least);
}

TEST(PlanPlacement, OfAUnitSurvivesWhatItsStripeDoes) {
  for (const auto& [k, m] : {std::pair{2u, 1u}, {3u, 2u}, {4u, 3u}, {7u, 1u}}) {
    for (unsigned unit = 0; unit < k; ++unit) {
      const StripeUnit stripe = stripe_of(unit, k, m);
      const Placement placement = Placement::in_stripe(stripe);
      EXPECT_EQ(placement.redundancy().as_copies(), m + 1);
      EXPECT_EQ(placement.nodes(), Nodes{stripe.nodes[unit]});
      EXPECT_EQ(placement.all_nodes(), stripe.nodes);
      for (unsigned slots = 0; slots < 1u << (k + m); ++slots) {
        const LiveNodes live = live_of(stripe, slots);
        const std::uint32_t fatal = least_fatal(stripe, slots);
        ASSERT_EQ(placement.redundancy(live).as_copies(), fatal) << k << '+' << m << ' ' << slots;
        const Placement left = placement.surviving(live);
        ASSERT_EQ(left.redundancy().as_copies(), fatal);
        ASSERT_EQ(left.redundancy(live).as_copies(), fatal);
        const bool is_here = (slots >> unit & 1) != 0;
        ASSERT_EQ(left.keeper(live), is_here ? stripe.nodes[unit] : kNoNode);
        // A stripe that is no help is no stripe.
        ASSERT_EQ(left.stripe() != nullptr, fatal > (is_here ? 1u : 0u));
        ASSERT_EQ(sources(placement, live, 5, 0), is_here ? Nodes{stripe.nodes[unit]} : Nodes{});
      }
    }
  }
}

TEST(PlanPlacement, OfAUnitIsRepairedByCopies) {
  const StripeUnit stripe = stripe_of(1, 3, 2);
  const Placement placement = Placement::in_stripe(stripe);
  const Fingerprint chunk = numbered(1);
  const auto wanted = Redundancy::copies(3);
  EXPECT_EQ(placement.repair(live_of(stripe, 0b11111), wanted, chunk), (Repair{{}, placement}));
  for (const unsigned slots : {0b11110u, 0b11101u, 0b01100u | 0b10000u}) {
    const LiveNodes live = live_of(stripe, slots);
    const Repair repair = placement.repair(live, wanted, chunk);
    EXPECT_EQ(repair.after.kind(), Placement::Kind::kCopies);
    EXPECT_EQ(repair.after.redundancy(), wanted);
    EXPECT_EQ(repair.after.is_on(stripe.nodes[1]), live.contains(stripe.nodes[1]));
    EXPECT_TRUE(live.contains(placement.new_keeper(live)));
  }
}

TEST(PlanPlacement, UnitsAreEncodedAsTheyAre) {
  for (const unsigned gone : {0u, 1u, 0b10110u}) {
    StripeUnit stripe = stripe_of(2, 3, 2);
    for (unsigned slot = 0; slot < 5; ++slot) {
      if ((gone >> slot & 1) != 0) stripe.nodes[slot] = kNoNode;
    }
    const Placement placement = Placement::in_stripe(stripe);
    Encoder e;
    placement.encode(e);
    const Bytes bytes = e.take();
    Decoder d(bytes);
    EXPECT_EQ(Placement::decode(d), placement);
    EXPECT_TRUE(d.ok() && d.at_end());
    EXPECT_LE(bytes.size(), placement.encoded_size());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::span<const std::byte> all = bytes;
      Decoder cut(all.first(size));
      (void)Placement::decode(cut);
      EXPECT_FALSE(cut.ok()) << size;
    }
  }
}

TEST(PlanPlacement, SaysWhatAUnitTakesWhateverItsNodes) {
  StripeUnit stripe = stripe_of(2, 3, 2);
  stripe.nodes = {65530, 65531, 65532, 65533, 65534};
  const Placement placement = Placement::in_stripe(stripe);
  Encoder e;
  placement.encode(e);
  EXPECT_LE(e.size(), placement.encoded_size());
}

TEST(PlanPlacement, UnitsThatCannotBeAreRefused) {
  const StripeUnit good = stripe_of(0, 2, 2);
  EXPECT_TRUE(good.possible());
  std::vector<StripeUnit> bad(6, good);
  bad[0].unit = 2;
  bad[1].data = 0;
  bad[2].data = 4;                    // no parity
  bad[3].nodes[3] = bad[3].nodes[0];  // a node twice
  bad[4] = stripe_of(0, 2, 9);        // too many parities
  bad[5] = stripe_of(0, 62, 3);       // too many nodes
  for (const StripeUnit& stripe : bad) {
    EXPECT_FALSE(stripe.possible());
    Encoder e;
    Placement::in_stripe(stripe).encode(e);
    const Bytes bytes = e.take();
    Decoder d(bytes);
    (void)Placement::decode(d);
    EXPECT_FALSE(d.ok());
  }
}

TEST(PlanPlacement, UnitsAreRemapped) {
  const StripeUnit stripe{Id128::random(), 1, 2, {0, 1, 2}};
  Placement placement = Placement::in_stripe(stripe);
  EXPECT_TRUE(placement.is_within(3));
  EXPECT_FALSE(placement.is_within(2));
  const Placement before = placement;
  EXPECT_FALSE(placement.remap(Nodes{4, 5}));
  EXPECT_FALSE(placement.remap(Nodes{4, 5, 4}));  // two parts on one node
  EXPECT_EQ(placement, before);
  EXPECT_TRUE(placement.remap(Nodes{7, kNoNode, 3}));
  EXPECT_EQ(placement, Placement::in_stripe({stripe.stripe, 1, 2, {7, kNoNode, 3}}));
  EXPECT_EQ(placement.nodes(), Nodes{});
  EXPECT_EQ(placement.all_nodes(), (Nodes{3, 7}));
  EXPECT_TRUE(placement.involves(3) && !placement.involves(1) && !placement.is_on(7));
  EXPECT_EQ(placement.redundancy().as_copies(), 1u);
}

TEST(PlanPlacement, DecodingRefusesWhatCannotBe) {
  for (const Bytes& bytes : {
           bytes_of({}),                                       // nothing
           bytes_of({2, 0}),                                   // a node is missing
           bytes_of({1, 0x80, 0x80, 4}),                       // node 2^16
           bytes_of({2, 0xff, 0xff, 3, 0}),                    // … and one after the last
           bytes_of({0xff, 0xff, 3, 0}),                       // more nodes than bytes
           bytes_of({0x80, 0x80, 4}),                          // copies as another kind
           bytes_of({0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 0}),  // beyond all kinds
           bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}),
       }) {
    Decoder d(bytes);
    const Placement placement = Placement::decode(d);
    EXPECT_FALSE(d.ok());
    EXPECT_TRUE(Placement::is_known(placement.kind()));
  }
}

TEST(PlanPlacement, DecodingNamesAKindThatItDoesNotKnow) {
  for (const std::uint32_t kind : {2u, 3u, 300u, 65535u}) {
    Encoder e;
    for (std::uint32_t rest = 0x10000 + kind;; rest >>= 7) {
      e.put(static_cast<std::uint8_t>(rest < 0x80 ? rest : rest | 0x80));
      if (rest < 0x80) break;
    }
    e.put(std::uint64_t{0});  // whatever it says
    const Bytes bytes = e.take();
    Decoder d(bytes);
    const Placement placement = Placement::decode(d);
    EXPECT_FALSE(d.ok());
    EXPECT_EQ(static_cast<std::uint32_t>(placement.kind()), kind);
    EXPECT_FALSE(Placement::is_known(placement.kind()));
  }
}

TEST(PlanPlacement, IsWithinTheNodesOfAJob) {
  const Placement placement = Placement::copies_on({2, 7});
  EXPECT_TRUE(placement.is_within(8));
  EXPECT_FALSE(placement.is_within(7));
  EXPECT_TRUE(Placement().is_within(0));
  EXPECT_TRUE(Placement::copies_on({65534}).is_within(65535));
}

// By what it is for: of every set of K nodes that something may be on, one is in each quorum, and
// not in each smaller set.
TEST(PlanPlacement, AQuorumMeetsWhateverIsKept) {
  for (unsigned nodes = 1; nodes <= 8; ++nodes) {
    for (unsigned copies = 1; copies <= 10; ++copies) {
      const unsigned kept = std::min(copies, nodes);
      unsigned least = nodes;
      for (unsigned there = 0; there < 1u << nodes; ++there) {
        const auto others = nodes - static_cast<unsigned>(std::popcount(there));
        if (others < kept) least = std::min(least, nodes - others);
      }
      EXPECT_EQ(Redundancy::copies(copies).quorum(nodes), least) << nodes << " " << copies;
    }
  }
}

TEST(PlanPlacement, ShardsAreKeptByTheirHomeAndThoseThatFollow) {
  const LiveNodes all(NodeIndex{5});
  EXPECT_EQ(shard_keepers(1, all, Redundancy::copies(3)), (Nodes{1, 2, 3}));
  EXPECT_EQ(shard_keepers(4, all, Redundancy::copies(2)), (Nodes{4, 0}));
  EXPECT_EQ(shard_keepers(3, all, Redundancy::copies(9)), (Nodes{3, 4, 0, 1, 2}));
  EXPECT_EQ(shard_keepers(3, without(all, {4, 0}), Redundancy::copies(2)), (Nodes{3, 1}));
  EXPECT_EQ(shard_keepers(4, without(all, {4}), Redundancy::copies(2)), (Nodes{0, 1}));
  EXPECT_EQ(shard_keepers(0, LiveNodes(), Redundancy::copies(2)), Nodes{});
}

TEST(PlanPlacement, ShardsAreKeptInDifferentDomains) {
  // Racks of two; of one node it is not known; one rack has three.
  const LiveNodes all(NodeIndex{8}, {1, 1, 2, 2, 0, 3, 3, 3});
  EXPECT_EQ(shard_keepers(0, all, Redundancy::copies(3)), (Nodes{0, 2, 4}));
  EXPECT_EQ(shard_keepers(6, all, Redundancy::copies(2)), (Nodes{6, 0}));
  EXPECT_EQ(shard_keepers(6, without(all, {0, 1}), Redundancy::copies(2)), (Nodes{6, 2}));
  // Four are apart; then the others.
  EXPECT_EQ(shard_keepers(1, all, Redundancy::copies(6)), (Nodes{1, 2, 4, 5, 3, 6}));
}

TEST(PlanPlacement, RepairsGoToOtherDomainsIfTheyCan) {
  std::mt19937_64 random(9);
  const LiveNodes racks(NodeIndex{12}, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4});
  std::set<NodeIndex> chosen;
  for (int i = 0; i < 300; ++i) {
    const auto repair =
        Placement::copies_on({0}).repair(racks, Redundancy::copies(3), hash(random));
    std::set<std::uint32_t> domains;
    for (const NodeIndex node : repair.after.nodes()) domains.insert(racks.domain_of(node));
    EXPECT_EQ(domains.size(), 3u);
    chosen.insert(repair.targets.begin(), repair.targets.end());
  }
  EXPECT_EQ(chosen.size(), 9u);
  // Fewer domains than copies: nodes all the same.
  const LiveNodes one(NodeIndex{4}, {7, 7, 7, 7});
  EXPECT_EQ(
      Placement::copies_on({2}).repair(one, Redundancy::copies(3), hash(random)).targets.size(),
      2u);
}

TEST(PlanPlacement, ShardsAreSpreadEvenlyOverThousandsOfNodes) {
  constexpr NodeIndex kNodes = 5000;
  const LiveNodes live(kNodes);
  std::vector<unsigned> kept(kNodes);
  for (NodeIndex home = 0; home < kNodes; ++home) {
    const Nodes keepers = shard_keepers(home, live, Redundancy::copies(3));
    ASSERT_EQ(std::set<NodeIndex>(keepers.begin(), keepers.end()).size(), 3u);
    ASSERT_EQ(keepers.front(), home);
    for (const NodeIndex node : keepers) ++kept[node];
  }
  EXPECT_EQ(std::set<unsigned>(kept.begin(), kept.end()), std::set<unsigned>{3});
}

}  // namespace
}  // namespace dedup::plan
