// With what probability the loss of some nodes loses data, for ways of keeping it on many nodes.
//
//   losses LAYOUT NODES LOST...
//
// LAYOUT: ring-K, a node's data on it and the K - 1 after it; sets-K, on all of a set of K nodes;
// spread-K-S, on it and, in parts, each K - 1 that follow each other of the S after it; groups-K-G,
// as the driver deals it out to groups of G; stripes-K-M, any M + 1 nodes of a set of K + M.
// Without MPI. Prints a JSON object for each LOST.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "plan/deal.h"
#include "plan/odds.h"

using namespace dedup;

namespace {

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "losses: {}\n", why);
  std::exit(2);
}

unsigned number(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail("not a number: " + std::string(text));
  return value;
}

plan::FatalSet copies_on(NodeSet nodes) {
  return plan::fatal_set(plan::Placement::copies_on(std::move(nodes)));
}

// Nodes from `first` on, round.
NodeSet row(std::uint32_t first, std::uint32_t count, std::uint32_t nodes) {
  NodeSet set;
  for (std::uint32_t i = 0; i < count; ++i)
    set.push_back(static_cast<NodeIndex>((first + i) % nodes));
  return set;
}

std::vector<plan::FatalSet> rings(std::uint32_t nodes, std::uint32_t copies) {
  std::vector<plan::FatalSet> sets;
  for (std::uint32_t n = 0; n < nodes; ++n) sets.push_back(copies_on(row(n, copies, nodes)));
  return sets;
}

std::vector<plan::FatalSet> whole_sets(std::uint32_t nodes, std::uint32_t size,
                                       std::uint32_t least) {
  std::vector<plan::FatalSet> sets;
  for (std::uint32_t first = 0; first < nodes; first += size) {
    const NodeSet set = row(first, std::min(size, nodes - first), nodes);
    if (set.size() >= least) sets.push_back({set, least});
  }
  return sets;
}

std::vector<plan::FatalSet> spread(std::uint32_t nodes, std::uint32_t copies, std::uint32_t over) {
  std::vector<plan::FatalSet> sets;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    for (std::uint32_t s = 1; s + copies - 2 <= over; ++s) {
      NodeSet set = row(n + s, copies - 1, nodes);
      set.push_back(static_cast<NodeIndex>(n));
      sets.push_back(copies_on(std::move(set)));
    }
  }
  return sets;
}

std::vector<plan::FatalSet> groups(std::uint32_t nodes, std::uint32_t copies, std::uint32_t group) {
  constexpr std::uint64_t kChunks = 1 << 14;
  const plan::FrequentSet none;
  std::vector<plan::NodeState> states;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    states.push_back(
        {static_cast<NodeIndex>(n), std::uint64_t{1} << 50, kChunks, kChunks << 12, 0, 0});
  }
  const plan::Dealing dealing =
      plan::deal_all({copies, false, 0, states, &none, {}, group, 0, 4096});
  if (!dealing.feasible) fail("there is room, and no dealing");
  std::vector<plan::FatalSet> sets;
  for (const plan::NodeState& state : states) {
    for (std::uint32_t part = 0; part < dealing.dealer.parts(state.node, kChunks); ++part) {
      plan::Dealer::Deal deal;
      if (!dealing.dealer.deal_unique(state.node, false, part, deal))
        fail("a chunk cannot be dealt");
      sets.push_back(plan::fatal_set(deal.placement));
    }
  }
  return sets;
}

std::vector<plan::FatalSet> sets_of(std::string_view layout, std::uint32_t nodes) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= layout.size();) {
    const std::size_t end = std::min(layout.find('-', at), layout.size());
    words.push_back(layout.substr(at, end - at));
    at = end + 1;
  }
  const auto is = [&](std::string_view name, std::size_t numbers) {
    return words.front() == name && words.size() == 1 + numbers;
  };
  if (is("ring", 1)) return rings(nodes, number(words[1]));
  if (is("sets", 1)) return whole_sets(nodes, number(words[1]), number(words[1]));
  if (is("spread", 2)) return spread(nodes, number(words[1]), number(words[2]));
  if (is("groups", 2)) return groups(nodes, number(words[1]), number(words[2]));
  if (is("stripes", 2)) {
    return whole_sets(nodes, number(words[1]) + number(words[2]), number(words[2]) + 1);
  }
  fail("no layout " + std::string(layout));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: losses LAYOUT NODES LOST...");
  const std::uint32_t nodes = number(argv[2]);
  if (nodes == 0 || nodes >= kNoNode) fail("1 to 65534 nodes");
  const plan::LossOdds odds(static_cast<NodeIndex>(nodes), sets_of(argv[1], nodes));
  for (int i = 3; i < argc; ++i) {
    const std::uint32_t lost = number(argv[i]);
    const plan::Odds found = odds.of(lost);
    fmt::print(
        "{{\"layout\": \"{}\", \"nodes\": {}, \"lost\": {}, \"probability\": {:.9g}, \"error\": "
        "{:.3g}}}\n",
        argv[1], nodes, lost, found.probability, found.error);
  }
  return 0;
}
