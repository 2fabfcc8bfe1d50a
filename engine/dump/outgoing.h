// Which slots of which ranks' windows a rank fills, batch by batch: for both ways of exchange.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "engine/dump/exchange.h"
#include "engine/mpi/topology.h"
#include "plan/slots.h"

namespace dedup::engine {

// Memory that is not touched before it is needed.
using Memory = std::unique_ptr<std::byte[]>;
inline Memory allocate(std::size_t size) {
  return Memory(new std::byte[size]);
}

// Chunks that follow each other in one rank's window.
struct Batch {
  int rank = 0;              // of the communicator
  std::uint64_t slot = 0;    // of the first
  std::size_t range = 0;     // of the plan's
  std::uint64_t number = 0;  // of the first, in its range
  std::uint64_t count = 0;
};

// Walks what this rank sends of slots [grid.first_of(round), grid.first_of(end_round)) of every
// node. Starts with the targets after this rank's node, so that not all ranks send to one at a
// time.
class Outgoing {
 public:
  Outgoing(const Topology& topology, const ExchangePlan& plan, std::uint64_t slots_per_round,
           std::uint64_t round, std::uint64_t end_round)
      : topology_(topology),
        plan_(plan),
        per_round_(slots_per_round),
        round_(round),
        end_round_(end_round) {
    const auto after =
        std::find_if(plan.ranges.begin(), plan.ranges.end(),
                     [&](const SlotRange& r) { return r.target > topology.my_node(); });
    start_ = static_cast<std::size_t>(after - plan.ranges.begin());
    enter();
  }

  // The next batch, of at most `most`; count 0 at the end.
  Batch next(std::uint64_t most) {
    for (; step_ < plan_.ranges.size(); ++step_, enter()) {
      if (slot_ >= end_) continue;
      const plan::SlotGrid grid = grid_of(range());
      const std::uint64_t end = std::min(end_, (slot_ / grid.block() + 1) * grid.block());
      const Batch batch{topology_.ranks_on(range().target)[grid.rank_of(slot_)], slot_,
                        range_index(), slot_ - range().first, std::min(most, end - slot_)};
      slot_ += batch.count;
      return batch;
    }
    return {};
  }

  // Where a slot stands in the window of the rank that receives it.
  std::uint64_t position_of(const Batch& batch) const {
    return grid_of(plan_.ranges[batch.range]).position_of(batch.slot);
  }

 private:
  std::size_t range_index() const { return (start_ + step_) % plan_.ranges.size(); }
  const SlotRange& range() const { return plan_.ranges[range_index()]; }
  plan::SlotGrid grid_of(const SlotRange& r) const {
    return {topology_.ranks_on(r.target).size(), per_round_};
  }

  void enter() {
    if (step_ == plan_.ranges.size()) return;
    const plan::SlotGrid grid = grid_of(range());
    slot_ = std::max(range().first, grid.first_of(round_));
    end_ = std::min(range().first + range().count, grid.first_of(end_round_));
  }

  const Topology& topology_;
  const ExchangePlan& plan_;
  std::uint64_t per_round_;
  std::uint64_t round_;
  std::uint64_t end_round_;
  std::size_t start_ = 0;
  std::size_t step_ = 0;
  std::uint64_t slot_ = 0;  // the next of the current range
  std::uint64_t end_ = 0;
};

// What is said of a chunk on its way: how long it is, and its header.
inline std::size_t entry_size(const ExchangePlan& plan) {
  return sizeof(std::uint32_t) + plan.header_size;
}
// Writes the entry of a batch's i-th chunk. Returns the chunk's bytes.
inline std::span<const std::byte> write_entry(const ExchangePlan& plan, const Batch& batch,
                                              std::uint64_t i, std::byte* entry) {
  const auto data = plan.fill(batch.range, batch.number + i, entry + sizeof(std::uint32_t));
  const auto length = static_cast<std::uint32_t>(data.size());
  std::memcpy(entry, &length, sizeof length);
  return data;
}
inline std::uint32_t length_in(const std::byte* entry) {
  std::uint32_t length = 0;
  std::memcpy(&length, entry, sizeof length);
  return length;
}
// The chunk that came into a slot, as its entry says. `data`: of as many bytes, or of the longest
// that a chunk can be, whatever the entry says: memory may hold something from before.
inline Parcel parcel_of(const ExchangePlan& plan, std::uint64_t slot, const std::byte* entry,
                        const std::byte* data) {
  return {slot,
          {entry + sizeof(std::uint32_t), plan.header_size},
          {data, std::min<std::size_t>(length_in(entry), plan.longest)}};
}

// Of what this rank's node receives.
inline plan::SlotGrid own_grid(const Topology& topology, std::uint64_t slots_per_round) {
  return {static_cast<std::uint64_t>(topology.node_size()), slots_per_round};
}

}  // namespace dedup::engine
