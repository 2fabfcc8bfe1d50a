#include "plan/count.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace dedup::plan {
namespace {

// Loads are equal enough if no node that was chosen is above the level by more than this part, or
// by more than so few chunks.
constexpr double kTolerance = 0.03;
constexpr double kFewChunks = 4;

// Chances that can still be told from 0 and from 1, when they are corrected.
constexpr double kLeastChance = 1e-4;

double odds_of(double chance) {
  const double bounded = std::clamp(chance, kLeastChance, 1 - kLeastChance);
  return bounded / (1 - bounded);
}

// The finalizer of splitmix64 (S. Vigna).
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

void add_candidate(std::vector<Designated>& candidates, std::size_t first, const Designated& one) {
  // They come nearly in order.
  if (candidates.size() == first || candidates.back().node < one.node) {
    candidates.push_back(one);
    return;
  }
  auto at = candidates.end();
  const auto begin = candidates.begin() + static_cast<std::ptrdiff_t>(first);
  while (at != begin && (at - 1)->node > one.node) --at;
  if (at == begin || (at - 1)->node != one.node) {
    candidates.insert(at, one);
    return;
  }
  (at - 1)->held = (at - 1)->held || one.held;
  (at - 1)->has_data = (at - 1)->has_data || one.has_data;
}

// Among so many candidates each is compared with each.
constexpr std::uint32_t kFewCandidates = 8;

double taken(const Loads& all, std::size_t node, double level) {
  return std::clamp(level - static_cast<double>(all.fixed[node]), 0.0,
                    static_cast<double>(all.chance[node]));
}

}  // namespace

// What all take grows with the level, and evenly where no node begins to take or comes to have all,
// which is at whole numbers. So the range of these is halved, and nodes that do neither in it are
// summed up once.
double level_of(const Loads& all) {
  std::vector<std::uint32_t> open;  // nodes that begin to take, or have all, in the range
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  for (std::uint32_t n = 0; n < all.fixed.size(); ++n) {
    if (all.chance[n] == 0) continue;
    open.push_back(n);
    high = std::max(high, all.fixed[n] + all.chance[n]);
  }
  double sum = 0;  // of those that have all, and less what those that take have without
  double takers = 0;
  while (true) {
    std::erase_if(open, [&](std::uint32_t n) {
      const std::uint64_t fixed = all.fixed[n];
      const std::uint64_t most = fixed + all.chance[n];
      if (fixed >= high) return true;
      if (most <= low) {
        sum += static_cast<double>(all.chance[n]);
        return true;
      }
      if (fixed > low || most < high) return false;
      sum -= static_cast<double>(fixed);
      ++takers;
      return true;
    });
    if (open.empty()) break;
    const std::uint64_t middle = low + (high - low) / 2;
    const auto level = static_cast<double>(middle);
    double taken_then = sum + takers * level;
    for (const std::uint32_t n : open) taken_then += taken(all, n, level);
    (taken_then < static_cast<double>(all.choices) ? low : high) = middle;
  }
  const double level = takers == 0 ? 0 : (static_cast<double>(all.choices) - sum) / takers;
  return std::clamp(level, static_cast<double>(low), static_cast<double>(high));
}

float rendezvous_key(const Name& name, NodeIndex node) {
  const std::uint64_t hash = mixed(name.low ^ mixed(name.high + node));
  // 24 bits, as many as a float has; in the middle of its part of the range, so that neither 0 nor
  // 1 comes.
  const double u = (static_cast<double>(hash >> 40) + 0.5) * 0x1p-24;
  return static_cast<float>(u / (1 - u));
}

Weights::Weights(Loads loads) : all_(std::move(loads)), odds_(all_.fixed.size(), 1) {
  const Loads& all = all_;
  if (all.choices == 0) return;
  level_ = level_of(all);
  for (std::size_t n = 0; n < odds_.size(); ++n) {
    if (all.chance[n] == 0) continue;
    odds_[n] =
        static_cast<float>(odds_of(taken(all, n, level_) / static_cast<double>(all.chance[n])));
  }
}

bool Weights::correct(std::span<const std::uint64_t> chosen) {
  bool are_equal = true;
  for (std::size_t n = 0; n < odds_.size(); ++n) {
    if (chosen[n] == 0) continue;
    const auto load = static_cast<double>(all_.fixed[n] + chosen[n]);
    if (load > std::max(level_ * (1 + kTolerance), level_ + kFewChunks)) are_equal = false;
  }
  if (are_equal) return true;
  for (std::size_t n = 0; n < odds_.size(); ++n) {
    if (all_.chance[n] == 0) continue;
    const auto chance = static_cast<double>(all_.chance[n]);
    const double wanted = std::max(level_ - static_cast<double>(all_.fixed[n]), 0.0) / chance;
    const double was = static_cast<double>(chosen[n]) / chance;
    odds_[n] =
        static_cast<float>(std::clamp(odds_[n] * odds_of(wanted) / odds_of(was), 1e-12, 1e12));
  }
  return false;
}

NameCount::NameCount(const Questions& questions, unsigned copies, const SettledChunks& settled)
    : copies_(copies) {
  first_.reserve(questions.size() + 1);
  candidates_.reserve(questions.askers());
  held_.reserve(questions.size());
  const NodeSet nobody;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Placement* const placement =
        settled.empty() ? nullptr : settled.find(questions.fingerprint(i));
    const std::span<const Asker> askers = questions.askers(i);
    std::size_t held = 0;
    if (askers.size() > 1 || placement != nullptr) {
      const std::size_t first = candidates_.size();
      for (const Asker& asker : askers) {
        const bool holds = asker.holders != Asker::kNotHeld;
        add_candidate(candidates_, first, {asker.node, holds, true});
        if (!holds) continue;
        for (const NodeIndex node : questions.holders(asker)) {
          add_candidate(candidates_, first, {node, true, false});
        }
      }
      for (const NodeIndex node : placement == nullptr ? nobody : placement->nodes()) {
        add_candidate(candidates_, first, {node, true, false});
      }
      for (std::size_t c = first; c < candidates_.size(); ++c) held += candidates_[c].held ? 1 : 0;
    }
    held_.push_back(static_cast<std::uint16_t>(std::min<std::size_t>(held, copies)));
    first_.push_back(static_cast<std::uint32_t>(candidates_.size()));
  }
  make_keys(questions);
}

bool NameCount::has_choice(std::size_t i, std::size_t& needed) const {
  needed = copies_ - held_[i];
  return candidates(i).size() > copies_;
}

void NameCount::make_keys(const Questions& questions) {
  std::size_t needed = 0;
  bool any = false;
  for (std::size_t i = 0; i < questions.size() && !any; ++i) any = has_choice(i, needed);
  if (!any) return;
  keys_.resize(candidates_.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (!has_choice(i, needed)) continue;
    for (std::uint32_t c = first_[i]; c < first_[i + 1]; ++c) {
      keys_[c] = rendezvous_key(questions.name(i), candidates_[c].node);
    }
  }
}

void NameCount::add_to(Loads& loads) const {
  std::size_t needed = 0;
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) {
    const bool choice = has_choice(i, needed);
    if (choice && needed == 0) continue;  // of those that hold it
    if (choice) loads.choices += needed;
    for (const Designated& d : candidates(i)) {
      if (!d.held) ++(choice ? loads.chance : loads.fixed)[d.node];
    }
  }
}

// Those with the least keys.
void NameCount::choose(std::size_t i, std::size_t needed, const Weights& weights) {
  // Those that hold it are enough: some of them, at no cost to anybody.
  const bool held = needed == 0;
  if (held) needed = copies_;
  if (candidates(i).size() <= kFewCandidates) {
    choose_of_few(i, needed, held, weights);
  } else {
    choose_of_many(i, needed, held, weights);
  }
}

// By how many are before each: without branches, since nobody can foretell them.
void NameCount::choose_of_few(std::size_t i, std::size_t needed, bool held,
                              const Weights& weights) {
  std::array<float, kFewCandidates> keys;
  const std::uint32_t first = first_[i];
  const std::uint32_t count = first_[i + 1] - first;
  for (std::uint32_t c = 0; c < count; ++c) {
    keys[c] = candidates_[first + c].held == held ? weighted_key(first + c, held, weights)
                                                  : std::numeric_limits<float>::infinity();
  }
  chosen_.resize(needed + 1);  // one is written and not kept
  std::size_t chosen = 0;
  for (std::uint32_t c = 0; c < count; ++c) {
    std::size_t before = 0;
    for (std::uint32_t o = 0; o < c; ++o) before += keys[o] <= keys[c] ? 1 : 0;
    for (std::uint32_t o = c + 1; o < count; ++o) before += keys[o] < keys[c] ? 1 : 0;
    chosen_[chosen] = first + c;
    chosen += before < needed ? 1 : 0;
  }
  chosen_.resize(needed);
}

// By insertion: K is small, and most nodes are behind the last one.
void NameCount::choose_of_many(std::size_t i, std::size_t needed, bool held,
                               const Weights& weights) {
  least_.clear();
  for (std::uint32_t c = first_[i]; c < first_[i + 1]; ++c) {
    if (candidates_[c].held != held) continue;
    const float key = weighted_key(c, held, weights);
    if (least_.size() == needed) {
      if (key >= least_.back().key) continue;
      least_.pop_back();
    }
    auto at = least_.end();
    while (at != least_.begin() && (at - 1)->key > key) --at;
    least_.insert(at, {key, c});
  }
  chosen_.clear();
  for (const Least& one : least_) chosen_.push_back(one.candidate);
  std::sort(chosen_.begin(), chosen_.end());
}

void NameCount::count_chosen(const Weights& weights, std::span<std::uint64_t> chosen) {
  std::size_t needed = 0;
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) {
    if (!has_choice(i, needed) || needed == 0) continue;
    choose(i, needed, weights);
    for (const std::uint32_t c : chosen_) ++chosen[candidates_[c].node];
  }
}

Answers NameCount::answers(const Weights* weights) {
  Answers out;
  out.reserve(first_.size() - 1, candidates_.size());
  std::vector<Designated> designated;
  std::size_t needed = 0;
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) {
    if (!has_choice(i, needed)) {
      out.add(candidates(i));
      continue;
    }
    choose(i, needed, *weights);
    designated.clear();
    for (const std::uint32_t c : chosen_) designated.push_back(candidates_[c]);
    if (needed != 0 && needed != copies_) {
      for (const Designated& d : candidates(i)) {
        if (d.held) designated.push_back(d);
      }
      std::sort(designated.begin(), designated.end(),
                [](const Designated& a, const Designated& b) { return a.node < b.node; });
    }
    out.add(designated);
  }
  return out;
}

}  // namespace dedup::plan
