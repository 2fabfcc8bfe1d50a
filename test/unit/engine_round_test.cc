// The stages of a dump that need no MPI, together: many nodes with several ranks each, whose
// messages are handed over by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>

#include "engine/chunks/cut_chunks.h"
#include "engine/chunks/judge.h"
#include "engine/chunks/known_chunks.h"
#include "engine/chunks/name_chunks.h"
#include "engine/chunks/node_chunks.h"
#include "engine/chunks/sends.h"
#include "engine/chunks/settle.h"
#include "plan/deal.h"
#include "plan/reduce.h"
#include "test/hooks/names.h"
#include "test/unit/count_everywhere.h"

namespace dedup::engine {
namespace {

constexpr std::uint32_t kChunk = 64;

struct Shape {
  NodeIndex nodes = 1;
  int ranks = 1;  // of a node
  unsigned copies = 1;
  std::uint32_t threshold = 1;
  bool collective = true;
  unsigned group = 0;
  std::size_t chunks = 30;  // of a rank, at most
  bool counts = false;      // at homes, in place of a tree
};

struct Rank {
  NodeIndex node = 0;
  int number = 0;  // of its node
  Bytes data;
  DumpRun run;
  std::vector<DumpedPiece> pieces;
  NamedChunks chunks;
  DealtRecords dealt;
  NodeView view;
  AskedChunks asked;
  plan::FrequentSet result;  // its part, where chunks are counted
  ChunkTotals totals;
  std::optional<PartTurns> turns;
  NodeVerdicts judged;
  Answers answers;
  Verdicts verdicts;
  Sends sends;
};

// Chunks that stores have before the round, by content: who holds them, as all holders' services
// know.
using Held = std::map<std::uint64_t, NodeSet>;

class Round {
 public:
  Round(const Shape& shape, std::vector<std::vector<std::uint64_t>> contents, Held held)
      : shape_(shape),
        copies_(std::min<unsigned>(shape.copies, shape.nodes)),
        held_(std::move(held)) {
    for (std::size_t r = 0; r < contents.size(); ++r) {
      Rank& rank = ranks_.emplace_back();
      rank.node = static_cast<NodeIndex>(r / static_cast<std::size_t>(shape.ranks));
      rank.number = static_cast<int>(r) % shape.ranks;
      rank.data.resize(contents[r].size() * kChunk);
      for (std::size_t i = 0; i < contents[r].size(); ++i) {
        std::memcpy(rank.data.data() + i * kChunk, &contents[r][i], sizeof contents[r][i]);
      }
      rank.run = {0, rank.data.data(), rank.data.size()};
    }
  }

  void run() {
    cut_and_name();
    see_nodes();
    decide();
    answer();
    send();
    for (Rank& rank : ranks_) finish_pieces(rank.chunks, rank.verdicts, placements_);
    EXPECT_TRUE(error_.none()) << error_.status().message();
  }

  // Every chunk is on enough nodes, on none twice, and everybody knows on which.
  void check() {
    std::map<Fingerprint, std::multiset<NodeIndex>> stored;
    for (const auto& [content, holders] : held_) {
      stored[name_of(content)].insert(holders.begin(), holders.end());
    }
    for (const Rank& rank : ranks_) {
      for (std::uint32_t i = 0; i < rank.chunks.size(); ++i) {
        if (rank.verdicts[i].keep) stored[rank.chunks.name(i)].insert(rank.node);
      }
      for (const Send& send : rank.sends.list) {
        stored[rank.chunks.name(send.chunk)].insert(send.target);
      }
    }
    // What nodes decide by themselves may meet on a third: its service grants the first.
    const bool exact = everybody_knows();
    for (const auto& [name, nodes] : stored) {
      if (!exact) break;
      const std::set<NodeIndex> distinct(nodes.begin(), nodes.end());
      EXPECT_EQ(distinct.size(), nodes.size()) << "a node stores a chunk twice";
    }
    for (const Rank& rank : ranks_) {
      for (const DumpedPiece& piece : rank.pieces) {
        if (piece.zero) continue;
        const auto& nodes = stored[piece.fingerprint];
        const plan::Placement& placement = placements_[piece.placement];
        EXPECT_GE(placement.redundancy(), plan::Redundancy::copies(copies_));
        for (const NodeIndex node : placement.nodes()) {
          EXPECT_TRUE(nodes.contains(node)) << "a recorded holder has not got it";
        }
      }
    }
    check_slots();
    check_settled();
  }

 private:
  // Whether nothing was dropped from the sets on the way up.
  bool everybody_knows() const {
    std::set<Fingerprint> shared;
    for (const Rank& rank : ranks_) {
      for (std::uint32_t i = 0; i < rank.chunks.size(); ++i) {
        if (!rank.chunks.is_single(i)) shared.insert(rank.chunks.name(i));
      }
    }
    const bool is_small = shape_.counts || shared.size() <= shape_.threshold;
    return shape_.collective && is_small && held_.empty();
  }

  Fingerprint name_of(std::uint64_t content) {
    Bytes data(kChunk);
    std::memcpy(data.data(), &content, sizeof content);
    return test::content_name(data);
  }

  void cut_and_name() {
    std::map<std::uint64_t, int> seen;
    std::vector<CutChunks> cut;
    for (Rank& rank : ranks_) {
      RunCursor cursor(std::span(&rank.run, 1), kChunk);
      rank.pieces.reserve(rank.data.size() / kChunk);
      cut.push_back(cut_distinct(cursor, rank.data.size() / kChunk + 1, test::keyed_namer(),
                                 rank.pieces, error_));
      for (std::uint32_t i = 0; i < cut.back().size(); ++i) ++seen[cut.back().checksum(i)];
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const std::size_t size = cut[r].size();
      std::vector<std::uint8_t> may_have_twin(size);
      for (std::uint32_t i = 0; i < size; ++i) {
        const bool twin = seen[cut[r].checksum(i)] > 1;
        may_have_twin[i] = twin || held_.contains(content_of(cut[r].data(i))) ? 1 : 0;
      }
      Rank& rank = ranks_[r];
      rank.chunks = NamedChunks(std::move(cut[r]), NamedChunks::Kind::kOpen);
      share_twins(rank.chunks, may_have_twin);
      for (std::uint32_t i = 0; i < size; ++i) {
        const auto known = held_.find(content_of(rank.chunks.data(i)));
        if (known == held_.end()) continue;
        const NodeSet& holders = known->second;
        if (!std::binary_search(holders.begin(), holders.end(), rank.node)) continue;
        rank.chunks.name_held(i, rank.chunks.name(i), plan::Placement::copies_on(holders));
      }
      name_the_rest(rank.chunks, singles_);
    }
  }

  static std::uint64_t content_of(std::span<const std::byte> data) {
    std::uint64_t content = 0;
    std::memcpy(&content, data.data(), sizeof content);
    return content;
  }

  Lanes lanes() const { return {shape_.ranks, shape_.ranks}; }

  std::span<Rank> ranks_on(NodeIndex node) {
    const auto ranks = static_cast<std::size_t>(shape_.ranks);
    return std::span(ranks_).subspan(node * ranks, ranks);
  }

  void see_nodes() {
    for (Rank& rank : ranks_) {
      rank.dealt = deal_records(rank.chunks.take_records(), lanes());
    }
    for (Rank& rank : ranks_) {
      Bytes bytes;
      std::vector<std::uint64_t> sizes;
      for (const Rank& from : ranks_on(rank.node)) {
        const auto to = static_cast<std::size_t>(rank.number);
        std::uint64_t begin = 0;
        for (std::size_t i = 0; i < to; ++i) begin += from.dealt.sizes[i];
        const auto first = from.dealt.bytes.begin() + static_cast<std::ptrdiff_t>(begin);
        sizes.push_back(from.dealt.sizes[to]);
        bytes.insert(bytes.end(), first, first + static_cast<std::ptrdiff_t>(sizes.back()));
      }
      auto chunks = NodeChunks::read(bytes, sizes);
      ASSERT_TRUE(chunks.is_ok());
      rank.view = {rank.node, std::move(*chunks), {}, plan::Redundancy::copies(copies_)};
      rank.view.known =
          look_up(rank.view.chunks, settled_, rank.node, plan::LiveNodes(shape_.nodes));
    }
  }

  void decide() {
    const plan::ReduceLimits limits{copies_, shape_.threshold, shape_.nodes};
    if (shape_.collective && shape_.counts) {
      count();
    } else if (shape_.collective) {
      std::optional<plan::FrequentSet> all;
      for (Rank& rank : ranks_) {
        plan::FrequentSet part = frequent_part(rank.view, rank.chunks.singles(), limits);
        all = all ? plan::FrequentSet::merge(*all, part, limits) : std::move(part);
      }
      result_ = std::move(*all);
      result_.drop_singles();
    }
    std::vector<plan::NodeState> states;
    for (NodeIndex n = 0; n < shape_.nodes; ++n) {
      plan::NodeState state{n, std::uint64_t{1} << 40, 0, 0, 0, 0};
      for (Rank& rank : ranks_on(n)) {
        rank.totals = total(rank.view, rank.chunks, result_of(rank));
        state.new_chunks += rank.totals.new_chunks;
        state.new_bytes += rank.totals.new_bytes;
        state.held_chunks += rank.totals.held_chunks;
        state.held_bytes += rank.totals.held_bytes;
      }
      states.push_back(state);
    }
    plan::DealingInput input{copies_, !shape_.collective, 0, states, &result_,
                             {},      shape_.group,       7, kChunk};
    if (shape_.counts) {
      input.result = nullptr;
      for (plan::NodeState& state : states) {
        state.shared_sent = part_of(state.node, all_alike()).bytes_sent();
      }
      input.shared = [&](const plan::Dealer& dealer) {
        std::vector<plan::SharedPart> parts;
        for (NodeIndex n = 0; n < shape_.nodes; ++n) parts.push_back(part_of(n, dealer));
        return parts;
      };
    }
    dealing_ = plan::deal_all(input);
    ASSERT_TRUE(dealing_.feasible);
    for (NodeIndex n = 0; n < shape_.nodes; ++n) {
      const ChunkTotals all{states[n].new_chunks, 0, states[n].held_chunks, 0};
      ChunkTotals before;
      for (Rank& rank : ranks_on(n)) {
        rank.turns.emplace(dealing_.dealer, n, before, all);
        before.new_chunks += rank.totals.new_chunks;
        before.held_chunks += rank.totals.held_chunks;
      }
    }
  }

  const plan::FrequentSet& result_of(const Rank& rank) const {
    return shape_.counts ? rank.result : result_;
  }

  // Each lane is a grid of its own.
  void count() {
    std::vector<NodeIndex> nodes(shape_.nodes);
    std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
    const plan::Grid grid(shape_.nodes, 4);
    for (int lane = 0; lane < shape_.ranks; ++lane) {
      std::vector<plan::Questions> questions;
      std::vector<std::uint32_t> outside;
      for (const NodeIndex n : nodes) {
        Rank& rank = ranks_on(n)[static_cast<std::size_t>(lane)];
        rank.asked = ask_about(rank.view, lane, shape_.ranks);
        questions.push_back(std::move(rank.asked.questions));
        outside.push_back(rank.chunks.singles());
      }
      const auto counted =
          test::count_everywhere(grid, nodes, shape_.nodes, copies_, questions, outside, settled_);
      for (const NodeIndex n : nodes) {
        Rank& rank = ranks_on(n)[static_cast<std::size_t>(lane)];
        take_answers(rank.view, rank.asked, counted.answers[n], rank.result);
        rank.result.sort();
      }
    }
  }

  plan::SharedPart part_of(NodeIndex node, const plan::Dealer& dealer) {
    plan::SharedPart part;
    part.node = node;
    for (const Rank& rank : ranks_on(node)) {
      part.add(plan::shared_part(rank.result, node, dealer, 0));
    }
    return part;
  }
  plan::Dealer all_alike() const {
    std::vector<NodeIndex> nodes(shape_.nodes);
    std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
    return plan::Dealer(std::move(nodes), copies_);
  }

  void answer() {
    for (Rank& rank : ranks_) {
      rank.judged = judge(rank.view, result_of(rank), dealing_.dealer, *rank.turns, error_);
      rank.answers = std::move(rank.view.chunks).answer(rank.judged);
    }
    for (Rank& rank : ranks_) {
      Bytes bytes;
      for (const Rank& from : ranks_on(rank.node)) {
        const auto to = static_cast<std::size_t>(rank.number);
        std::uint64_t begin = 0;
        for (std::size_t i = 0; i < to; ++i) begin += from.answers.sizes[i];
        const auto first = from.answers.bytes.begin() + static_cast<std::ptrdiff_t>(begin);
        bytes.insert(bytes.end(), first,
                     first + static_cast<std::ptrdiff_t>(from.answers.sizes[to]));
      }
      Numbered<Verdict> list;
      const auto dealt = read_answers(bytes, rank.dealt.counts, list);
      ASSERT_TRUE(dealt.is_ok());
      std::vector<std::uint32_t> answers;
      for (const std::uint32_t place : rank.dealt.place) answers.push_back((*dealt)[place]);
      rank.verdicts = judge_own(rank.chunks, rank.node, dealing_.dealer, answers, std::move(list),
                                *rank.turns, error_);
    }
  }

  void send() {
    std::map<NodeIndex, std::vector<Target>> targets;  // by sender
    for (const plan::Flow& flow : dealing_.flows) {
      targets[flow.from].push_back({flow.to, incoming_[flow.to], flow.chunks});
      incoming_[flow.to] += flow.chunks;
    }
    for (NodeIndex n = 0; n < shape_.nodes; ++n) {
      std::vector<std::uint64_t> before(targets[n].size());
      for (Rank& rank : ranks_on(n)) {
        std::vector<Send> list = list_sends(rank.verdicts);
        const std::vector<std::uint64_t> counts = count_sends(list, targets[n]);
        const bool last = rank.number == shape_.ranks - 1;
        rank.sends = number_sends(std::move(list), targets[n], before, last, error_);
        for (std::size_t t = 0; t < counts.size(); ++t) before[t] += counts[t];
      }
    }
  }

  // Each number of what a node receives is one sender's.
  void check_slots() {
    std::map<NodeIndex, std::set<std::uint64_t>> slots;
    for (const Rank& rank : ranks_) {
      std::size_t sent = 0;
      for (std::size_t r = 0; r < rank.sends.ranges.size(); ++r) {
        const SlotRange& range = rank.sends.ranges[r];
        for (std::uint64_t i = 0; i < range.count; ++i, ++sent) {
          EXPECT_TRUE(slots[range.target].insert(range.first + i).second);
          const std::uint32_t chunk = rank.sends.chunk_of(r, i);
          ASSERT_NE(chunk, Sends::kNone);
          const auto& to = rank.verdicts[chunk].targets;
          EXPECT_NE(std::find(to.begin(), to.end(), range.target), to.end());
        }
      }
      EXPECT_EQ(sent, rank.sends.list.size());
    }
    for (const auto& [node, received] : slots) {
      EXPECT_EQ(received.size(), incoming_[node]);
      EXPECT_EQ(*received.rbegin() + 1, received.size());
    }
  }

  // The ranks of each node remember the result, each of them a part.
  void check_settled() {
    std::vector<Fingerprint> names;
    for (int r = 0; r < shape_.ranks; ++r) {
      for (const auto& [name, placement] : settled_part(result_, dealing_.dealer, r, lanes())) {
        names.push_back(name);
        EXPECT_GE(placement.redundancy(), plan::Redundancy::copies(copies_));
      }
    }
    const std::set<Fingerprint> distinct(names.begin(), names.end());
    EXPECT_EQ(distinct.size(), result_.elements().size());
    EXPECT_EQ(names.size(), distinct.size());
  }

  Shape shape_;
  unsigned copies_;
  Held held_;
  std::vector<Rank> ranks_;
  SingleNumbers singles_;
  plan::SettledChunks settled_{1};  // nothing
  FirstError error_;
  plan::FrequentSet result_;
  plan::Dealing dealing_;
  std::map<NodeIndex, std::uint64_t> incoming_;
  Numbered<plan::Placement> placements_;
};

void run_random(std::uint64_t seed, const Shape& shape, bool some_held) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::size_t ranks = shape.nodes * static_cast<std::size_t>(shape.ranks);
  std::vector<std::vector<std::uint64_t>> contents(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::size_t chunks = random() % shape.chunks;
    for (std::size_t i = 0; i < chunks; ++i) {
      switch (random() % 4) {
        case 0:
          contents[r].push_back(random() % 8);
          break;  // common, or zero
        case 1:
          contents[r].push_back(1000 + random() % (4 * ranks));
          break;  // of a few
        case 2:
          contents[r].push_back(1'000'000 * (r + 1) + random() % 10);
          break;  // its own
        default:
          contents[r].push_back(random() | 1);
          break;
      }
    }
  }
  Held held;
  for (std::uint64_t content = 1; some_held && content < 8; content += 2) {
    NodeSet& holders = held[content];
    for (NodeIndex n = 0; n < shape.nodes; ++n) {
      if (random() % 3 == 0) holders.push_back(n);
    }
    if (holders.empty()) held.erase(content);
  }
  Round round(shape, std::move(contents), std::move(held));
  round.run();
  round.check();
}

TEST(DumpRound, KeepsEachChunkOnEnoughNodes) {
  std::mt19937_64 random(20181);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Shape shape{static_cast<NodeIndex>(1 + random() % 12),
                      static_cast<int>(1 + random() % 4),
                      static_cast<unsigned>(1 + random() % 4),
                      static_cast<std::uint32_t>(seed % 3 == 0 ? 5 : 1000),
                      seed % 5 != 0,
                      seed % 4 == 0 ? 0u : static_cast<unsigned>(2 + random() % 8),
                      seed % 7 == 0 ? 900u : 30u};
    run_random(seed, shape, seed % 2 == 0);
  }
}

TEST(DumpRound, DoesSoWhereChunksAreCounted) {
  std::mt19937_64 random(20182);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Shape shape{static_cast<NodeIndex>(1 + random() % 12), static_cast<int>(1 + random() % 4),
                static_cast<unsigned>(1 + random() % 4)};
    shape.group = seed % 4 == 0 ? 0u : static_cast<unsigned>(2 + random() % 8);
    shape.chunks = seed % 7 == 0 ? 900u : 30u;
    shape.counts = true;
    run_random(seed, shape, seed % 2 == 0);
  }
  run_random(1, {300, 2, 3, 1, true, 8, 60, true}, false);
}

TEST(DumpRound, DoesSoOnHundredsOfNodes) {
  run_random(1, {300, 2, 3, 200, true}, false);
  run_random(2, {500, 1, 2, 100'000, true}, false);
  run_random(3, {200, 2, 3, 1000, true, 8, 400}, false);
}

}  // namespace
}  // namespace dedup::engine
