// The exchange: copies of chunks go to the ranks of the nodes that are to hold them.
//
// Two forms of one thing, so that they can be compared where they run: `send` sends messages, from
// where the chunks are; `put` writes into the receivers' memory by MPI_Put, in rounds. Where a
// chunk goes follows from counts alone (plan/slots.h); nothing is agreed on on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "engine/chunks/copies.h"
#include "engine/chunks/sends.h"
#include "engine/mpi/topology.h"
#include "hints/hints.h"
#include "plan/slots.h"

namespace dedup::engine {

struct ExchangePlan {
  std::span<const SlotRange> ranges;  // by target, each once
  std::uint64_t incoming = 0;         // chunks that this rank's node receives, in all
  std::uint64_t rounds = 0;           // of `put`; the same on all ranks; more than 0
  std::size_t header_size = 0;        // bytes; the same on all ranks
  std::size_t longest = 0;            // bytes of the longest chunk of any rank
  // Writes the header of the `number`-th chunk for ranges[range] (header_size bytes). Returns its
  // bytes, which are to stay where they are until run() returns. In no particular order, each once.
  std::function<std::span<const std::byte>(std::size_t range, std::uint64_t number,
                                           std::byte* header)>
      fill;
  // Some of what this rank received, good during the call.
  std::function<void(std::span<const Parcel>)> drain;
  // Does a small part of what this rank has to do besides. False once nothing is left of it;
  // it is asked until then.
  std::function<bool()> meanwhile;
};

// One per Dumper. One thread at a time. Between two calls of run() all ranks agree on something, so
// that nobody begins the next one while others are in the last.
class Exchange {
 public:
  // Not collective. `topology` must outlive it. `window`: bytes that a rank receives at once.
  static std::unique_ptr<Exchange> create(hints::Exchange kind, const Topology& topology,
                                          std::size_t window, std::size_t staging);
  // Collective if run() was ever called.
  virtual ~Exchange() = default;

  // Collective over the topology's communicator. Uses at most `window` + `staging` bytes, and not
  // less than some chunks. All ranks go through all of it: errors in fill and drain are the
  // caller's to remember.
  virtual void run(const ExchangePlan& plan) = 0;

  // Collective if run() was ever called. Frees the memory until it is needed again.
  virtual void release() = 0;

  // Chunks that a rank receives in a round.
  std::uint64_t slots_per_round(std::size_t header_size, std::size_t longest) const {
    return plan::SlotGrid::round_down(window_size_ / slot_size(header_size, longest));
  }
  // Bytes that a chunk takes in the window: length, header, chunk.
  static std::size_t slot_size(std::size_t header_size, std::size_t longest) {
    return (sizeof(std::uint32_t) + header_size + longest + 7) / 8 * 8;
  }

 protected:
  Exchange(const Topology& topology, std::size_t window, std::size_t staging)
      : topology_(topology), window_size_(window), staging_size_(staging) {}

  const Topology& topology_;
  std::size_t window_size_;
  std::size_t staging_size_;
};

}  // namespace dedup::engine
