// Which nodes keep a chunk that several have, decided at the home of its name, which knows of all
// that do.
//
// Of more than K nodes those that hold the chunk already are designated first, since it costs
// nothing, and then K of the others by rendezvous hashing: whom a hash of the name and the node
// says, with a weight for each node. So it is a function of the name, the nodes that have it, and
// the weights alone: not of the order in which questions come, nor of how many homes there are.
// The weights are chosen so that nodes end up with equal loads, from sums over all homes. Pure; one
// thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/question.h"
#include "plan/settled.h"

namespace dedup::plan {

// How nodes are loaded; the sums over all homes are what weights are made of. A load is the number
// of chunks that a node keeps and does not hold already.
struct Loads {
  std::vector<std::uint64_t> fixed;   // without a choice, by node
  std::vector<std::uint64_t> chance;  // chunks that a node may be chosen for, by node
  std::uint64_t choices = 0;          // designations that there is a choice about

  explicit Loads(NodeIndex nodes) : fixed(nodes), chance(nodes) {}
};

// Of each node, how likely it is to be chosen. Whoever has the same sums has the same weights.
class Weights {
 public:
  // They are corrected so often, at most: then loads are as equal as they become.
  static constexpr int kMostCorrections = 4;

  // Aims at equal loads, as far as loads without a choice, and what nodes have, allow: as if who
  // has a chunk were not related.
  explicit Weights(Loads all);

  float operator[](NodeIndex node) const { return odds_[node]; }
  // `chosen`: how often each node was, over all homes. Whether loads are equal enough; if not,
  // weights are changed by how far they are from what they should be.
  bool correct(std::span<const std::uint64_t> chosen);
  // The load that no node should be above, if it has not more without a choice.
  double level() const { return level_; }

 private:
  Loads all_;
  double level_ = 0;
  std::vector<float> odds_;  // that it is chosen, to that it is not
};

// The home of names.
class NameCount {
 public:
  // `copies`: K, at most `nodes`, all of the job. `settled`: of earlier dumps, by
  // Questions::fingerprint(); who is on it holds the chunk.
  NameCount(const Questions& questions, unsigned copies, const SettledChunks& settled);

  // Whether another node has the name, or it was settled: else nobody is designated.
  bool is_shared(std::size_t i) const { return first_[i + 1] != first_[i]; }
  // Nodes that have it or are known to hold it, ascending; none if it is not shared.
  std::span<const Designated> candidates(std::size_t i) const {
    return {candidates_.data() + first_[i], first_[i + 1] - first_[i]};
  }

  void add_to(Loads& loads) const;
  // Those that are chosen with these weights, by node.
  void count_chosen(const Weights& weights, std::span<std::uint64_t> chosen);
  // `weights`: null if nowhere there is a choice.
  Answers answers(const Weights* weights);

 private:
  // How many of the candidates there is a choice about: all that do not hold it, if there are more
  // of them than are needed; `needed` of them.
  bool has_choice(std::size_t i, std::size_t& needed) const;
  void make_keys(const Questions& questions);
  // Has chosen_ be those that are, ascending.
  void choose(std::size_t i, std::size_t needed, const Weights& weights);
  void choose_of_few(std::size_t i, std::size_t needed, bool held, const Weights& weights);
  void choose_of_many(std::size_t i, std::size_t needed, bool held, const Weights& weights);
  // Of those that are held a key, of the others with the weight of the node.
  float weighted_key(std::uint32_t candidate, bool held, const Weights& weights) const {
    return held ? keys_[candidate] : keys_[candidate] / weights[candidates_[candidate].node];
  }

  unsigned copies_;
  std::vector<std::uint32_t> first_ = {0};
  std::vector<Designated> candidates_;
  std::vector<std::uint16_t> held_;    // candidates that hold it, K at most, by name
  std::vector<float> keys_;            // of candidates, where there is a choice
  std::vector<std::uint32_t> chosen_;  // candidates, by choose()
  struct Least {
    float key;
    std::uint32_t candidate;
  };
  std::vector<Least> least_;  // while choosing of many
};

// The level up to which nodes take all designations that there are: each takes what is missing to
// the level, if it is below it, and no more than there are chances.
double level_of(const Loads& all);

// What rendezvous hashing goes by, of a name and a node: u / (1 - u), where u is evenly distributed
// between 0 and 1. The `needed` nodes with the least key over weight are chosen (B. Rosén's Pareto
// sampling, 1997: if weights are odds that add up to `needed` chances, each node is chosen with
// nearly its chance).
float rendezvous_key(const Name& name, NodeIndex node);

}  // namespace dedup::plan
