// Which copies a rank sends to which node, and which numbers they have among those that the node
// receives. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "engine/chunks/first_error.h"
#include "engine/chunks/judge.h"

namespace dedup::engine {

struct Send {
  NodeIndex target = kNoNode;
  std::uint32_t chunk = 0;  // of this rank's
};

// This rank's copies by target, and for one target in the order of the chunks. 8 bytes a copy.
std::vector<Send> list_sends(const Verdicts& verdicts);

// What of the dealing concerns one pair of nodes: the numbers [first, first + chunks) of this
// node's chunks among those that `node` receives through the exchange.
struct Target {
  NodeIndex node = kNoNode;
  std::uint64_t first = 0;
  std::uint64_t chunks = 0;
};

// This rank's chunks for one node: numbers [first, first + count) of those that the node receives.
struct SlotRange {
  NodeIndex target = kNoNode;  // represented in the communicator
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  bool operator==(const SlotRange&) const = default;
};

// A rank's copies as they go to other nodes.
struct Sends {
  std::vector<Send> list;
  std::vector<SlotRange> ranges;         // of those that go through the exchange
  std::vector<std::size_t> first_sends;  // for each range the first of its sends

  // The chunk that is the `number`-th of a range; kNone if the range has more than there is to
  // send.
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t chunk_of(std::size_t range, std::uint64_t number) const;
};

// How many of `list`, which is sorted, go to each target.
std::vector<std::uint64_t> count_sends(std::span<const Send> list, std::span<const Target> targets);

// `before[t]`: how many chunks this node's lower ranks send to targets[t]; `last`: whether no rank
// of the node comes after this one. What is announced is never exceeded, since it would go over
// what others send, nor fallen short of, since it is waited for: kInternal if the counts are not
// what the leader announced.
Sends number_sends(std::vector<Send> list, std::span<const Target> targets,
                   std::span<const std::uint64_t> before, bool last, FirstError& error);

}  // namespace dedup::engine
