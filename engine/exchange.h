// The exchange: copies of chunks go into the windows of the nodes that are to hold them.
//
// Two forms of one thing, so that they can be compared where they run: `put` writes into the
// receivers' memory by MPI_Put, in rounds, `send` sends messages. Where a chunk goes follows from
// counts alone (plan/slots.h); nothing is agreed on on the way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/topology.h"
#include "hints/hints.h"

namespace dedup::engine {

// This rank's chunks for one node: numbers [first, first + count) of those that the node receives.
struct SlotRange {
  NodeIndex target = kNoNode;  // represented in the communicator
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

struct ExchangePlan {
  std::span<const SlotRange> ranges;  // by target, each once
  std::uint64_t incoming = 0;         // chunks that this rank's node receives, in all
  std::uint64_t rounds = 0;           // of `put`; the same on all ranks; more than 0
  std::size_t slot_size = 0;          // bytes; the same on all ranks
  std::uint64_t slots_per_round = 0;  // of one rank, with `put`; the same on all ranks
  // Writes the `number`-th chunk for ranges[range] to `slot` (slot_size bytes). Chunks are asked
  // for in no particular order, each once.
  std::function<void(std::size_t range, std::uint64_t number, std::byte* slot)> fill;
  // What this rank received: slots of slot_size bytes each, which stand from `first` on among all
  // that it receives. Not called without any; in any order.
  std::function<void(std::uint64_t first, std::span<const std::byte> slots)> drain;
};

// One per Dumper: its memory is used again by every exchange. One thread at a time.
class Exchange {
 public:
  // Not collective. `topology` must outlive it. `window`: bytes that a rank receives at once.
  static std::unique_ptr<Exchange> create(hints::Exchange kind, const Topology& topology,
                                          std::size_t window, std::size_t staging);
  // Collective if run() was ever called.
  virtual ~Exchange() = default;

  // Collective over the topology's communicator. Uses at most `window` + `staging` bytes, and not
  // less than some slots. All ranks go through all of it: errors in fill and drain are the caller's
  // to remember.
  virtual void run(const ExchangePlan& plan) = 0;

  // Collective if run() was ever called. Frees the memory until it is needed again.
  virtual void release() = 0;

  // Slots of this size that fit into the window; at most what every MPI takes as a tag.
  std::uint64_t slots_per_round(std::size_t slot_size) const {
    return std::min<std::uint64_t>(window_size_ / slot_size, 32767);
  }

 protected:
  Exchange(const Topology& topology, std::size_t window, std::size_t staging)
      : topology_(topology), window_size_(window), staging_size_(staging) {}

  const Topology& topology_;
  std::size_t window_size_;
  std::size_t staging_size_;
};

}  // namespace dedup::engine
