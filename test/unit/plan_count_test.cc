#include "plan/count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "base/hasher.h"
#include "plan/grid_count.h"
#include "test/unit/count_everywhere.h"

namespace dedup::plan {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

Fingerprint keyed(std::mt19937_64& random) {
  std::array<std::uint8_t, 16> hash{};
  const std::uint64_t words[] = {random(), random()};
  std::memcpy(hash.data(), words, hash.size());
  return keyed_name(hash, random());
}

struct Asked {
  Fingerprint name;
  NodeSet holders;  // as the node knows; empty: it is not in its store
};

// What nodes have, and who is to keep it, as all of them are told.
struct World {
  std::vector<NodeIndex> nodes;  // that ask
  NodeIndex job_nodes = 0;
  unsigned copies = 1;
  std::uint32_t direct = 1;
  std::vector<std::vector<Asked>> asked;     // by node
  std::vector<std::uint32_t> outside;        // by node
  std::map<Fingerprint, Placement> settled;  // everywhere
  std::vector<FrequentSet> told;             // by node
  std::vector<std::uint64_t> load;           // by node
  std::optional<Weights> weights;

  World(NodeIndex count, unsigned k)
      : job_nodes(count), copies(k), asked(count), outside(count), told(count) {
    nodes.resize(count);
    std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
  }

  void run() {
    const Grid grid(static_cast<std::uint32_t>(nodes.size()), direct);
    std::vector<Questions> questions;
    std::vector<std::vector<Fingerprint>> names(nodes.size());  // as sorted
    for (std::uint32_t p = 0; p < nodes.size(); ++p) {
      Gathering mine(0, kAll);
      for (const Asked& one : asked[p]) {
        mine.add(one.name, nodes[p], one.holders.empty() ? nullptr : &one.holders);
      }
      Gathering::Together together = std::move(mine).finish();
      names[p].resize(asked[p].size());
      for (std::size_t i = 0; i < asked[p].size(); ++i) {
        names[p][together.places[i]] = asked[p][i].name;
      }
      questions.push_back(std::move(together.questions));
    }
    SettledChunks all_settled(1 << 20);
    all_settled.add({settled.begin(), settled.end()}, settled.size());
    test::CountedEverywhere counted =
        test::count_everywhere(grid, nodes, job_nodes, copies, questions, outside, all_settled);
    EXPECT_LE(counted.most_messages, grid.columns() + 1);
    weights = std::move(counted.weights);
    load = std::move(counted.load);
    for (std::uint32_t p = 0; p < nodes.size(); ++p) {
      const Answers& answers = counted.answers[p];
      ASSERT_EQ(answers.size(), names[p].size());
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (!answers[i].empty()) told[p].add_designated(names[p][i], 1, 1, answers[i]);
      }
      told[p].sort();
    }
  }

  // By a count of everything that everybody has, in one place.
  void check() const {
    std::vector<Have> all;
    std::size_t shared = 0;
    for (std::uint32_t p = 0; p < nodes.size(); ++p) {
      for (const Asked& one : asked[p]) {
        all.push_back({one.name, nodes[p], !one.holders.empty(), p});
        for (const NodeIndex node : one.holders) all.push_back({one.name, node, true, kNobody});
      }
    }
    std::sort(all.begin(), all.end(), [](const Have& a, const Have& b) {
      return a.name != b.name ? a.name < b.name : a.node < b.node;
    });
    for (std::size_t begin = 0, end; begin < all.size(); begin = end) {
      for (end = begin; end < all.size() && all[end].name == all[begin].name;) ++end;
      shared += check_name({all.begin() + static_cast<std::ptrdiff_t>(begin),
                            all.begin() + static_cast<std::ptrdiff_t>(end)});
    }
    for (const FrequentSet& set : told) shared -= set.elements().size();
    EXPECT_EQ(shared, 0u);
  }

  double largest_over_average() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t one : load) sum += one;
    return static_cast<double>(*std::max_element(load.begin(), load.end())) *
           static_cast<double>(load.size()) / static_cast<double>(sum);
  }

 private:
  static constexpr std::uint32_t kNobody = 0xffffffff;

  struct Have {
    Fingerprint name;
    NodeIndex node;
    bool held;
    std::uint32_t place;  // kNobody: it has not asked
  };

  // Of all that have one. Returns how many nodes were told who is designated.
  std::size_t check_name(const std::vector<Have>& all) const {
    const Fingerprint& name = all.front().name;
    std::map<NodeIndex, bool> candidates;
    std::size_t askers = 0;
    for (const Have& one : all) {
      candidates[one.node] = candidates[one.node] || one.held;
      askers += one.place == kNobody ? 0 : 1;
    }
    const auto placement = settled.find(name);
    if (placement != settled.end()) {
      for (const NodeIndex node : placement->second.nodes()) candidates[node] = true;
    }
    NodeSet designated;
    if (askers > 1 || placement != settled.end()) designated = choose(name, candidates);
    for (const Have& one : all) {
      if (one.place == kNobody) continue;
      const auto* const element = told[one.place].find(name);
      EXPECT_EQ(element != nullptr, !designated.empty());
      if (element == nullptr) continue;
      NodeSet got;
      for (const Designated& d : told[one.place].designated(*element)) {
        got.push_back(d.node);
        EXPECT_EQ(d.held, candidates[d.node]);
      }
      EXPECT_EQ(got, designated);
    }
    return designated.empty() ? 0 : askers;
  }

  // The K first: those that hold it before the others, and then by rendezvous hashing.
  NodeSet choose(const Fingerprint& name, const std::map<NodeIndex, bool>& candidates) const {
    const auto holding = static_cast<std::size_t>(
        std::count_if(candidates.begin(), candidates.end(), [](auto& c) { return c.second; }));
    std::vector<std::tuple<bool, float, NodeIndex>> order;
    for (const auto& [node, held] : candidates) {
      const float key = rendezvous_key({name.leading(), low(name)}, node);
      order.emplace_back(!held, holding >= copies ? key : key / (*weights)[node], node);
    }
    std::sort(order.begin(), order.end());
    NodeSet chosen;
    for (std::size_t i = 0; i < order.size() && i < copies; ++i) {
      chosen.push_back(std::get<2>(order[i]));
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  static std::uint64_t low(const Fingerprint& name) {
    std::uint64_t value;
    std::memcpy(&value, name.bytes.data() + 8, sizeof value);
    return __builtin_bswap64(value);
  }
};

// `count` names, each on nodes that `choose` says.
template <typename Choose>
void share(World& world, std::size_t count, std::mt19937_64& random, const Choose& choose) {
  for (std::size_t i = 0; i < count; ++i) {
    const Fingerprint name = keyed(random);
    for (const std::size_t p : choose(i)) world.asked[p].push_back({name, {}});
  }
}

std::vector<std::size_t> some_of(std::size_t nodes, std::size_t count, std::mt19937_64& random) {
  std::vector<std::size_t> out;
  while (out.size() < count) {
    const std::size_t node = random() % nodes;
    if (std::find(out.begin(), out.end(), node) == out.end()) out.push_back(node);
  }
  return out;
}

TEST(Counting, OfAMillionTwinsIsWhatCountingThemAllInOnePlaceGives) {
  std::mt19937_64 random(31);
  World world(24, 3);
  share(world, std::size_t{1} << 20, random,
        [&](std::size_t i) { return some_of(24, 2 + (i % 4 == 0 ? 3 : 0), random); });
  world.run();
  world.check();
  EXPECT_LE(world.largest_over_average(), 1.1);
}

// Few and many nodes; not all of the job's; chunks that are held, single ones by name, settled
// ones; more nodes than chunks, and none at all.
TEST(Counting, IsThatOfOnePlaceWhateverNodesHave) {
  std::mt19937_64 random(32);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const auto nodes = static_cast<NodeIndex>(1 + random() % (round % 10 == 0 ? 150 : 20));
    World world(nodes, static_cast<unsigned>(1 + random() % std::min<unsigned>(nodes, 4)));
    world.direct = round % 3 == 0 ? Grid::kDirect : 1;
    // The others of the job are not asked, but may hold something.
    world.job_nodes = static_cast<NodeIndex>(nodes + random() % 5);
    std::vector<NodeIndex> job(world.job_nodes);
    std::iota(job.begin(), job.end(), NodeIndex{0});
    std::shuffle(job.begin(), job.end(), random);
    world.nodes.assign(job.begin(), job.begin() + nodes);
    std::sort(world.nodes.begin(), world.nodes.end());
    const std::size_t names = random() % (round % 4 == 0 ? 4 : 300);
    for (std::size_t i = 0; i < names; ++i) {
      Fingerprint name = keyed(random);
      if (i % 7 == 1) name = name_of_single(name, random());
      if (i % 7 == 2) {  // a SHA-256
        for (std::uint8_t& byte : name.bytes) byte = static_cast<std::uint8_t>(random() | 1);
      }
      NodeSet holders;
      if (random() % 3 == 0) {
        for (const std::size_t n : some_of(job.size(), 1 + random() % job.size(), random)) {
          holders.push_back(static_cast<NodeIndex>(n));
        }
        std::sort(holders.begin(), holders.end());
      }
      if (random() % 8 == 0) world.settled[name] = Placement::copies_on(holders);
      for (const std::size_t p : some_of(nodes, 1 + random() % nodes, random)) {
        const bool holds = std::binary_search(holders.begin(), holders.end(), world.nodes[p]);
        world.asked[p].push_back({name, holds ? holders : NodeSet{}});
        // The same content under the name of one that had no twin.
        if (i % 7 == 3) world.asked[p].push_back({name_of_single(name, 5), {}});
      }
    }
    for (auto& mine : world.asked) std::shuffle(mine.begin(), mine.end(), random);
    // A settled name's keyed rest is not sent: homes know it without.
    std::map<Fingerprint, Placement> known;
    for (const auto& [name, placement] : world.settled) {
      Gathering question(0, kAll);
      question.add(name, 0, nullptr);
      known[std::move(question).finish().questions.fingerprint(0)] = placement;
    }
    const auto as_named = std::exchange(world.settled, known);
    world.run();
    world.settled = as_named;
    world.check();
  }
}

// Names that are not spread evenly: most begin alike, some are alike but for the end of what is
// sent, or for what is only of names that are not keyed.
TEST(Counting, BringsAnyNamesTogether) {
  std::mt19937_64 random(36);
  for (const std::size_t count : {1, 2, 3, 100, 5000}) {
    for (const std::uint64_t spread : {0, 1, 50, 1 << 20}) {
      std::map<Fingerprint, std::vector<NodeIndex>> expected;
      std::vector<Bytes> messages;
      BitWriter writer;
      for (NodeIndex node = 0; node < 3; ++node) {
        Gathering mine(0, kAll);
        std::map<Fingerprint, bool> names;
        for (std::size_t i = 0; i < count; ++i) {
          Fingerprint name;
          name.bytes[0] = 7;
          name.bytes[7] = static_cast<std::uint8_t>(spread == 0 ? 0 : random() % spread);
          name.bytes[15] = static_cast<std::uint8_t>(random());
          name.bytes[20] = static_cast<std::uint8_t>(random() % 3);
          name.bytes[31] = 0xff;
          if (!names.emplace(name, true).second) continue;
          mine.add(name, node, nullptr);
          expected[name].push_back(node);
        }
        const Questions questions = std::move(mine).finish().questions;
        questions.encode(0, questions.size(), 0, kAll, writer);
        const auto bytes = writer.finish();
        messages.emplace_back(bytes.begin(), bytes.end());
      }
      Gathering gathering(0, kAll);
      for (NodeIndex node = 0; node < 3; ++node) ASSERT_TRUE(gathering.add(messages[node], node));
      const Questions all = std::move(gathering).finish().questions;
      ASSERT_EQ(all.size(), expected.size());
      std::size_t i = 0;
      for (const auto& [name, nodes] : expected) {
        EXPECT_EQ(all.fingerprint(i), name);
        std::vector<NodeIndex> askers;
        for (const Asker& asker : all.askers(i++)) askers.push_back(asker.node);
        EXPECT_EQ(askers, nodes);
      }
    }
  }
}

// At the level nodes take as many as there are, as far as they can.
TEST(Counting, FindsTheLevel) {
  std::mt19937_64 random(37);
  for (int round = 0; round < 2000; ++round) {
    Loads all(static_cast<NodeIndex>(1 + random() % 30));
    std::uint64_t chances = 0;
    const std::uint64_t most = round % 2 == 0 ? 10 : 100'000;
    for (std::size_t n = 0; n < all.fixed.size(); ++n) {
      all.fixed[n] = random() % most;
      all.chance[n] = random() % 4 == 0 ? 0 : random() % most;
      chances += all.chance[n];
    }
    all.choices = random() % (chances + 1);
    const double level = level_of(all);
    double taken = 0;
    for (std::size_t n = 0; n < all.fixed.size(); ++n) {
      taken += std::clamp(level - static_cast<double>(all.fixed[n]), 0.0,
                          static_cast<double>(all.chance[n]));
    }
    EXPECT_NEAR(taken, static_cast<double>(all.choices), 1e-3) << "round " << round;
  }
}

double balance_of(NodeIndex nodes, unsigned copies, const std::string& data) {
  std::mt19937_64 random(33);
  World world(nodes, copies);
  const std::size_t each = 2000;  // chunks of a node that others have, too
  const auto ring = [&](std::size_t from, std::size_t count) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back((from + i) % nodes);
    return out;
  };
  if (data == "all alike") {
    share(world, std::size_t{200} * nodes, random, [&](std::size_t) { return ring(0, nodes); });
  } else if (data == "pairs") {
    share(world, each * nodes / 2, random, [&](std::size_t) { return some_of(nodes, 2, random); });
  } else if (data == "neighbours") {
    share(world, each * nodes / 5, random, [&](std::size_t i) { return ring(i, 5); });
  } else {
    share(world, each * nodes / 5, random, [&](std::size_t) { return some_of(nodes, 5, random); });
  }
  std::lognormal_distribution<double> lognormal(std::log(100.0), 0.5);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    if (data == "one in three has more") world.outside[n] = n % 3 == 2 ? 400 : 40;
    if (data == "lognormal") world.outside[n] = static_cast<std::uint32_t>(lognormal(random));
    if (data == "every other one has more") world.outside[n] = n % 2 == 0 ? 300 : 0;
  }
  world.run();
  return world.largest_over_average();
}

// Where nodes have enough that others have, too, loads become equal.
TEST(Counting, MakesLoadsEqual) {
  for (const NodeIndex nodes : {NodeIndex{8}, NodeIndex{70}}) {
    for (const unsigned copies : {1u, 2u, 3u}) {
      for (const char* const data :
           {"all alike", "pairs", "neighbours", "scattered", "one in three has more", "lognormal",
            "every other one has more"}) {
        EXPECT_LE(balance_of(nodes, copies, data), 1.1)
            << data << ", " << nodes << " nodes, K = " << copies;
      }
    }
  }
}

TEST(Counting, SaysThatMessagesAreNotTheirs) {
  const Grid grid(3, 64);
  const std::vector<NodeIndex> nodes{0, 1, 2};
  std::mt19937_64 random(34);
  Gathering gathering(0, kAll);
  for (int i = 0; i < 50; ++i) gathering.add(keyed(random), 0, nullptr);
  const Questions mine = std::move(gathering).finish().questions;
  GridCount count(grid, nodes, 0, 2, 3);
  const std::vector<Bytes> sent = count.ask(mine);
  for (std::size_t length = 0; length < sent[0].size(); ++length) {
    GridCount other(grid, nodes, 0, 2, 3);
    other.ask(mine);
    other.take_row({Bytes(sent[0].begin(), sent[0].begin() + static_cast<std::ptrdiff_t>(length)),
                    sent[0], sent[0]});
    EXPECT_FALSE(other.is_sound());
    other.count(SettledChunks(1));
    other.answer(nullptr);
    const Answers answers = other.take({{}, other.answer_row()[0], {}});
    EXPECT_EQ(answers.size(), mine.size());
  }
}

// Whatever a message is, nothing is read behind it, and all that is taken from it is possible.
TEST(Counting, TakesAnyBytes) {
  std::mt19937_64 random(35);
  Gathering gathering(0, kAll);
  const NodeSet holders{1, 4};
  for (int i = 0; i < 40; ++i) {
    gathering.add(i % 5 == 0 ? name_of_single(keyed(random), 7) : keyed(random), 4,
                  i % 3 == 0 ? &holders : nullptr);
  }
  const Questions asked = std::move(gathering).finish().questions;
  BitWriter writer;
  asked.encode(0, asked.size(), 0, kAll, writer);
  const auto message = writer.finish();
  const Bytes good(message.begin(), message.end());
  for (int round = 0; round < 20'000; ++round) {
    Bytes bad = good;
    bad[random() % bad.size()] ^= static_cast<std::byte>(1 << random() % 8);
    if (round % 4 == 0) bad.resize(random() % bad.size());
    Gathering taken(0, kAll);
    const bool is_good = taken.add(bad, 4);
    const Questions out = std::move(taken).finish().questions;
    EXPECT_TRUE(is_good || out.size() == 0);
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (const Asker& asker : out.askers(i)) {
        EXPECT_EQ(asker.node, 4);
        if (asker.holders != Asker::kNotHeld) {
          EXPECT_TRUE(std::is_sorted(out.holders(asker).begin(), out.holders(asker).end()));
        }
      }
    }
    Answers answers;
    answers.decode(bad, 30, 3, 10);
    ASSERT_EQ(answers.size(), 30u);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      EXPECT_LE(answers[i].size(), 3u);
      for (const Designated& d : answers[i]) EXPECT_LT(d.node, 10);
    }
  }
}

}  // namespace
}  // namespace dedup::plan
