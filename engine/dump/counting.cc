#include "engine/dump/counting.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/dump/node_exchange.h"
#include "engine/mpi/checked_message.h"
#include "engine/mpi/comm_ranks.h"
#include "engine/protocol/failpoint.h"

namespace dedup::engine {

// What this rank does about a lane of names: of the nodes' ranks that have the same lane one is its
// node's on the grid.
class Counting::Lane {
 public:
  Lane(const Topology& topology, const plan::Grid& grid, int number, unsigned copies)
      : topology_(topology),
        number_(number),
        place_(place_of(topology)),
        count_(grid, topology.nodes(), place_, copies, topology.job_nodes()) {}

  // Collective over the lane's ranks: brings all questions to their homes, and counts there.
  void ask(const NodeView& view, const plan::SettledChunks& settled, ReductionCost& cost) {
    asked_ = ask_about(view, number_, lanes_of(topology_).count);
    count_.take_row(swap(count_.row(), count_.ask(asked_.questions), cost));
    count_.take_column(swap(count_.column(), count_.ask_homes(), cost));
    count_.count(settled);
  }
  plan::NameCount& counted() { return count_.counted(); }

  // Collective over the lane's ranks: brings all answers to those who asked. False if they are not
  // what was sent.
  bool answer(const NodeView& view, const plan::Weights* weights, ReductionCost& cost,
              plan::FrequentSet& result) {
    count_.take_answers(swap(count_.column(), count_.answer(weights), cost));
    const plan::Answers answers = count_.take(swap(count_.row(), count_.answer_row(), cost));
    take_answers(view, asked_, answers, result);
    asked_ = {};
    return count_.is_sound();
  }

  // Where the chunks that were counted here are, as `dealer` has it.
  void settle(const plan::Dealer& dealer,
              std::vector<std::pair<Fingerprint, plan::Placement>>& chunks) const {
    plan::Dealer::Deal deal;
    const plan::Answers& answers = count_.answers();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].empty()) continue;
      const Fingerprint name = count_.asked().fingerprint(i);
      if (dealer.deal(answers[i], name.prefix(), deal)) chunks.emplace_back(name, deal.placement);
    }
  }

 private:
  static std::uint32_t place_of(const Topology& topology) {
    const auto& nodes = topology.nodes();
    const auto at = std::lower_bound(nodes.begin(), nodes.end(), topology.my_node());
    return static_cast<std::uint32_t>(at - nodes.begin());
  }

  // Collective over the lane's ranks on these places, this one's among them, if there are any:
  // to[i] goes to places[i], and what comes back is from there.
  std::vector<Bytes> swap(const std::vector<std::uint32_t>& places, std::vector<Bytes> to,
                          ReductionCost& cost) const {
    failpoint("dump.reducing");
    const auto rank_of = [&](std::uint32_t place) {
      const std::vector<int>& ranks = topology_.ranks_on(topology_.nodes()[place]);
      return ranks[static_cast<std::size_t>(number_) % ranks.size()];
    };
    std::vector<std::size_t> by_rank(places.size());
    std::iota(by_rank.begin(), by_rank.end(), std::size_t{0});
    std::sort(by_rank.begin(), by_rank.end(), [&](std::size_t a, std::size_t b) {
      return rank_of(places[a]) < rank_of(places[b]);
    });
    std::vector<int> partners;
    std::vector<Letter> letters;
    for (const std::size_t i : by_rank) {
      partners.push_back(rank_of(places[i]));
      if (places[i] != place_) cost.add_message(to[i].size());
      letters.push_back({std::move(to[i]), {}});
    }
    std::vector<Letter> received;
    exchange_letters(topology_.comm(), partners, letters, received, [] {});
    std::vector<Bytes> from(places.size());
    for (std::size_t i = 0; i < by_rank.size(); ++i) {
      if (places[by_rank[i]] != place_) cost.add_message(received[i].said.size());
      from[by_rank[i]] = std::move(received[i].said);
    }
    return from;
  }

  const Topology& topology_;
  int number_;
  std::uint32_t place_;
  AskedChunks asked_;
  plan::GridCount count_;
};

Counting::Counting(const Topology& topology, std::uint32_t remembered)
    : topology_(topology),
      grid_(static_cast<std::uint32_t>(topology.nodes().size())),
      settled_(remembered) {}

Counting::~Counting() = default;

Result<plan::FrequentSet> Counting::count(const NodeView& view, std::uint32_t outside,
                                          unsigned copies, ReductionCost& cost) {
  lanes_.clear();
  const Lanes lanes = lanes_of(topology_);
  for (int lane = topology_.node_rank(); lane < lanes.count; lane += lanes.ranks) {
    lanes_.push_back(std::make_unique<Lane>(topology_, grid_, lane, copies));
  }
  // Whoever waits for another rank waits for one that is at the same lane or at a lower one: so
  // nobody waits for himself.
  for (const auto& lane : lanes_) lane->ask(view, settled_, cost);
  const std::optional<plan::Weights> weights = balance(view, outside, copies);
  plan::FrequentSet result;
  bool is_sound = true;
  for (const auto& lane : lanes_) {
    is_sound = lane->answer(view, weights ? &*weights : nullptr, cost, result) && is_sound;
  }
  result.sort();
  if (is_sound) return result;
  return Status(Code::kInternal,
                "the homes of chunks' names received something else than was sent");
}

std::optional<plan::Weights> Counting::balance(const NodeView& view, std::uint32_t outside,
                                               unsigned copies) {
  const NodeIndex nodes = topology_.job_nodes();
  // Everybody who has a chunk keeps it.
  if (copies >= nodes) return std::nullopt;
  plan::Loads mine(nodes);
  mine.fixed[view.node] += outside;
  for (const auto& lane : lanes_) lane->counted().add_to(mine);
  // Two numbers a word: of chunks in one round, which are fewer than 2^32 on all ranks of a node.
  constexpr unsigned kHalf = 32;
  std::vector<std::uint64_t> words;
  for (NodeIndex n = 0; n < nodes; ++n) words.push_back(mine.fixed[n] | mine.chance[n] << kHalf);
  words.push_back(mine.choices);
  const CommRanks ranks(topology_.comm());
  ranks.sum(words);
  plan::Loads all(nodes);
  all.choices = words.back();
  if (all.choices == 0) return std::nullopt;
  for (NodeIndex n = 0; n < nodes; ++n) {
    all.fixed[n] = words[n] & ((std::uint64_t{1} << kHalf) - 1);
    all.chance[n] = words[n] >> kHalf;
  }
  plan::Weights weights(std::move(all));
  for (int i = 0; i < plan::Weights::kMostCorrections; ++i) {
    std::vector<std::uint64_t> chosen(nodes);
    for (const auto& lane : lanes_) lane->counted().count_chosen(weights, chosen);
    ranks.sum(chosen);
    if (weights.correct(chosen)) break;
  }
  return weights;
}

void Counting::settle(const plan::Dealer& dealer) {
  std::vector<std::pair<Fingerprint, plan::Placement>> chunks;
  for (const auto& lane : lanes_) lane->settle(dealer, chunks);
  lanes_.clear();
  const std::uint64_t size = chunks.size() * static_cast<std::uint64_t>(topology_.node_size());
  settled_.add(std::move(chunks), size);
}

void Counting::clear() {
  lanes_.clear();
  settled_.clear();
}

}  // namespace dedup::engine
