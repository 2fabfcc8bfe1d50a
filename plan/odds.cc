#include "plan/odds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <utility>

namespace dedup::plan {
namespace {

// What is gone through or listed at most, before it is estimated.
constexpr double kMostEnumerated = 1 << 18;
constexpr double kMostListed = 1 << 17;
// Losses that are drawn; fewer if they take more steps than that together.
constexpr std::uint32_t kTrials = 1 << 17;
constexpr std::uint32_t kLeastTrials = 1 << 10;
constexpr double kSteps = 1 << 26;

double log_choose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

// How many sets of `k` of `n` there are: exact below 2^53, as good as double is beyond.
double choose(std::uint32_t n, std::uint32_t k) {
  if (k > n) return 0;
  double ways = 1;
  for (std::uint32_t i = 0; i < std::min(k, n - k); ++i)
    ways = std::round(ways * (n - i) / (i + 1));
  return ways;
}

// Calls f(span) with every set of `count` of the numbers 0 … of - 1, each ascending, in order.
template <typename F>
void for_each_choice(std::uint32_t of, std::uint32_t count, F&& f) {
  std::vector<std::uint32_t> chosen(count);
  std::iota(chosen.begin(), chosen.end(), 0U);
  for (;;) {
    f(std::span<const std::uint32_t>(chosen));
    std::uint32_t i = count;
    while (i > 0 && chosen[i - 1] == of - count + i - 1) --i;
    if (i == 0) return;
    ++chosen[i - 1];
    for (; i < count; ++i) chosen[i] = chosen[i - 1] + 1;
  }
}

// Of `size` of `nodes` nodes: the probability that exactly `hit` of them are among `lost`.
double hit_exactly(double nodes, double size, double lost, double hit) {
  if (hit > size || hit > lost || lost - hit > nodes - size) return 0;
  return std::exp(log_choose(size, hit) + log_choose(nodes - size, lost - hit) -
                  log_choose(nodes, lost));
}

}  // namespace

FatalSet fatal_set(const Placement& placement) {
  return {placement.all_nodes(), placement.redundancy().as_copies()};
}

// Nodes that are lost, and which sets that is fatal for. Used again for one loss after the other.
class LossOdds::Trial {
 public:
  explicit Trial(const LossOdds& odds)
      : odds_(odds), is_gone_(odds.nodes_), hits_(odds.sets_.size()) {}

  void clear() {
    for (const NodeIndex node : lost_) {
      is_gone_[node] = false;
      for (const std::uint32_t set : sets_of(node)) hits_[set] = 0;
    }
    lost_.clear();
    fatal_ = 0;
  }
  // False if it was lost already.
  bool lose(NodeIndex node) {
    if (is_gone_[node]) return false;
    is_gone_[node] = true;
    lost_.push_back(node);
    for (const std::uint32_t set : sets_of(node)) {
      if (++hits_[set] == odds_.sets_[set].least) ++fatal_;
    }
    return true;
  }
  // Sets of which too many nodes are lost.
  std::uint32_t fatal() const { return fatal_; }

  // Loses `count` more of `among`, any of them alike.
  void lose_any(std::span<const NodeIndex> among, std::uint32_t count, std::mt19937_64& random) {
    while (count > 0) count -= lose(among[below(random, among.size())]) ? 1 : 0;
  }
  // Of those that are not in `but`, which is ascending.
  void lose_others(std::span<const NodeIndex> but, std::uint32_t count, std::mt19937_64& random) {
    while (count > 0) {
      const auto node = static_cast<NodeIndex>(below(random, odds_.nodes_));
      if (std::binary_search(but.begin(), but.end(), node)) continue;
      count -= lose(node) ? 1 : 0;
    }
  }

 private:
  static std::uint64_t below(std::mt19937_64& random, std::uint64_t bound) {
    return (random() >> 32) * bound >> 32;
  }
  std::span<const std::uint32_t> sets_of(NodeIndex node) const {
    return std::span(odds_.of_node_)
        .subspan(odds_.first_[node], odds_.first_[node + 1u] - odds_.first_[node]);
  }

  const LossOdds& odds_;
  std::vector<bool> is_gone_;
  std::vector<std::uint32_t> hits_;  // by set
  std::vector<NodeIndex> lost_;
  std::uint32_t fatal_ = 0;
};

LossOdds::LossOdds(NodeIndex nodes, std::vector<FatalSet> sets)
    : nodes_(nodes), sets_(std::move(sets)), survived_(nodes), first_(nodes + std::size_t{1}) {
  std::sort(sets_.begin(), sets_.end());
  sets_.erase(std::unique(sets_.begin(), sets_.end()), sets_.end());
  for (const FatalSet& set : sets_) {
    survived_ = std::min(survived_, std::max(set.least, 1U) - 1);
    for (const NodeIndex node : set.nodes) ++first_[node + std::size_t{1}];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  of_node_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t s = 0; s < sets_.size(); ++s) {
    for (const NodeIndex node : sets_[s].nodes) of_node_[next[node]++] = s;
  }
}

std::vector<Odds> LossOdds::beyond_survived(std::uint32_t most) const {
  std::vector<Odds> all;
  for (std::uint32_t lost = survived_ + 1; lost <= nodes_ && all.size() < most; ++lost) {
    all.push_back(of(lost));
  }
  return all;
}

Odds LossOdds::of(std::uint32_t lost) const {
  lost = std::min<std::uint32_t>(lost, nodes_);
  if (is_lost_anyway()) return {1, 0};
  if (sets_.empty() || lost <= survived_) return {0, 0};
  if (lost == nodes_) return {1, 0};
  // Of some sets more must be lost: they only take time.
  std::vector<FatalSet> relevant;
  for (const FatalSet& set : sets_) {
    if (set.least <= lost) relevant.push_back(set);
  }
  if (relevant.size() < sets_.size()) return LossOdds(nodes_, std::move(relevant)).of(lost);
  const double all = choose(nodes_, lost);
  if (all <= kMostEnumerated && all * steps_of(lost) <= kSteps) return {share_of_all(lost), 0};
  std::size_t fatal = 0;
  if (lost == survived_ + 1 && list_fatal(lost, fatal)) {
    return {static_cast<double>(fatal) / all, 0};
  }
  return estimate(lost);
}

// About what it takes to lose so many nodes.
double LossOdds::steps_of(std::uint32_t lost) const {
  return lost * (1 + static_cast<double>(of_node_.size()) / nodes_);
}

std::uint32_t LossOdds::trials_of(std::uint32_t lost) const {
  const double trials = kSteps / steps_of(lost);
  return static_cast<std::uint32_t>(std::clamp<double>(trials, kLeastTrials, kTrials));
}

double LossOdds::share_of_all(std::uint32_t lost) const {
  Trial trial(*this);
  std::uint64_t fatal = 0;
  std::uint64_t all = 0;
  for_each_choice(nodes_, lost, [&](std::span<const std::uint32_t> chosen) {
    trial.clear();
    for (const std::uint32_t node : chosen) trial.lose(static_cast<NodeIndex>(node));
    ++all;
    if (trial.fatal() > 0) ++fatal;
  });
  return static_cast<double>(fatal) / static_cast<double>(all);
}

// Of the least number of nodes whose loss is fatal at all: each loss is within one of the sets that
// so few can be fatal for.
bool LossOdds::list_fatal(std::uint32_t lost, std::size_t& count) const {
  double most = 0;
  for (const FatalSet& set : sets_) {
    if (set.least == lost) most += choose(static_cast<std::uint32_t>(set.nodes.size()), lost);
  }
  if (most > kMostListed) return false;
  std::vector<NodeSet> fatal;
  for (const FatalSet& set : sets_) {
    if (set.least != lost) continue;
    for_each_choice(static_cast<std::uint32_t>(set.nodes.size()), lost,
                    [&](std::span<const std::uint32_t> chosen) {
                      NodeSet& nodes = fatal.emplace_back();
                      for (const std::uint32_t i : chosen) nodes.push_back(set.nodes[i]);
                    });
  }
  std::sort(fatal.begin(), fatal.end());
  count = static_cast<std::size_t>(std::unique(fatal.begin(), fatal.end()) - fatal.begin());
  return true;
}

Odds LossOdds::estimate(std::uint32_t lost) const {
  std::map<std::pair<std::size_t, std::uint32_t>, double> known;
  std::vector<double> odds;  // of each set
  for (const FatalSet& set : sets_) {
    const auto [at, is_new] = known.try_emplace({set.nodes.size(), set.least}, 0);
    for (std::uint32_t hit = set.least;
         is_new && hit <= std::min<std::size_t>(lost, set.nodes.size()); ++hit) {
      at->second += hit_exactly(nodes_, static_cast<double>(set.nodes.size()), lost, hit);
    }
    odds.push_back(at->second);
  }
  if (std::accumulate(odds.begin(), odds.end(), 0.0) <= 1) return estimate_rare(lost, odds);
  std::mt19937_64 random(1);
  Trial trial(*this);
  std::uint32_t fatal = 0;
  const std::uint32_t trials = trials_of(lost);
  for (std::uint32_t i = 0; i < trials; ++i) {
    trial.clear();
    trial.lose_others({}, lost, random);
    if (trial.fatal() > 0) ++fatal;
  }
  const double share = static_cast<double>(fatal) / trials;
  // As if one more had been found of each kind: an estimate is never called exact.
  const double next = (fatal + 1.0) / (trials + 2.0);
  return {share, std::sqrt(next * (1 - next) / trials)};
}

// Losses are drawn that are fatal for a set, which is drawn by its odds; one that is fatal for n
// sets is drawn n times as often as it should be, and counts as one in n.
Odds LossOdds::estimate_rare(std::uint32_t lost, const std::vector<double>& odds) const {
  std::vector<double> up_to(odds.size());
  std::partial_sum(odds.begin(), odds.end(), up_to.begin());
  if (up_to.back() == 0) return {0, 0};  // too small for a double
  std::mt19937_64 random(1);
  Trial trial(*this);
  double sum = 0;
  double squares = 0;
  const auto draw = [&] { return std::ldexp(static_cast<double>(random() >> 11), -53); };
  const std::uint32_t trials = trials_of(lost);
  for (std::uint32_t i = 0; i < trials; ++i) {
    const auto at = std::upper_bound(up_to.begin(), up_to.end(), draw() * up_to.back());
    const auto which = std::min(static_cast<std::size_t>(at - up_to.begin()), odds.size() - 1);
    const FatalSet& set = sets_[which];
    const auto size = static_cast<std::uint32_t>(set.nodes.size());
    double left = draw() * odds[which];
    std::uint32_t hit = set.least;
    for (; hit < std::min(size, lost); ++hit) {
      left -= hit_exactly(nodes_, size, lost, hit);
      if (left < 0) break;
    }
    trial.clear();
    trial.lose_any(set.nodes, hit, random);
    trial.lose_others(set.nodes, lost - hit, random);
    const double part = 1.0 / trial.fatal();
    sum += part;
    squares += part * part;
  }
  const double mean = sum / trials;
  const double spread = std::sqrt(std::max(squares / trials - mean * mean, 0.0) / trials);
  return {up_to.back() * mean, up_to.back() * std::max(spread, mean / trials)};
}

}  // namespace dedup::plan
