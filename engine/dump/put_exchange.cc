#include "engine/dump/put_exchange.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/dump/outgoing.h"
#include "engine/mpi/counts.h"
#include "engine/mpi/pace.h"
#include "engine/protocol/failpoint.h"

namespace dedup::engine {
namespace {

// One window over the same memory for all exchanges, open to all ranks at all times. A round: put,
// flush, barrier; the window is the receiver's until the next barrier.
class PutExchange final : public Exchange {
 public:
  PutExchange(const Topology& topology, std::size_t window, std::size_t staging)
      : Exchange(topology, window, staging) {}

  ~PutExchange() override { free_window(); }
  void release() override { free_window(); }

  void run(const ExchangePlan& plan) override {
    while (plan.meanwhile()) {
    }
    if (!window_memory_) open();
    const std::size_t slot_size = Exchange::slot_size(plan.header_size, plan.longest);
    const std::uint64_t per_round = slots_per_round(plan.header_size, plan.longest);
    const std::uint64_t most = std::max<std::uint64_t>(1, staging_size_ / slot_size);
    const Memory staging = allocate(most * slot_size);
    const plan::SlotGrid grid = own_grid(topology_, per_round);
    const auto me = static_cast<std::uint64_t>(topology_.node_rank());
    for (std::uint64_t round = 0; round < plan.rounds; ++round) {
      if (round > 0) PMPI_Barrier(topology_.comm());
      const std::uint64_t expected = grid.expected(plan.incoming, me, round);
      PacedLink link(expected * slot_size);
      Outgoing outgoing(topology_, plan, per_round, round, round + 1);
      bool any = false;
      for (Batch batch = outgoing.next(most); batch.count != 0; batch = outgoing.next(most)) {
        for (std::uint64_t i = 0; i < batch.count; ++i) {
          std::byte* const slot = staging.get() + i * slot_size;
          const auto data = write_entry(plan, batch, i, slot);
          std::memcpy(slot + entry_size(plan), data.data(), data.size());
        }
        put(batch.rank, outgoing.position_of(batch) * slot_size,
            {staging.get(), batch.count * slot_size});
        link.send(batch.count * slot_size);
        any = true;
      }
      if (any) PMPI_Win_flush_all(window_);
      link.wait();
      failpoint("dump.exchanging");
      PMPI_Barrier(topology_.comm());
      PMPI_Win_sync(window_);
      std::vector<Parcel> parcels;
      for (std::uint64_t position = 0; position < expected; ++position) {
        const std::byte* const slot = window_memory_.get() + position * slot_size;
        parcels.push_back(parcel_of(plan, grid.slot_at(me, round * per_round + position), slot,
                                    slot + entry_size(plan)));
      }
      if (expected != 0) plan.drain(parcels);
    }
  }

 private:
  void open() {
    window_memory_ = allocate(window_size_);
    PMPI_Win_create(window_memory_.get(), static_cast<MPI_Aint>(window_size_), 1, MPI_INFO_NULL,
                    topology_.comm(), &window_);
    PMPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  }

  void free_window() {
    if (!window_memory_) return;
    PMPI_Win_unlock_all(window_);
    PMPI_Win_free(&window_);
    window_memory_.reset();
  }

  // Returns once `data` may be used again.
  void put(int rank, std::uint64_t at, std::span<const std::byte> data) {
    const int bytes = count_of(data.size());
    PMPI_Put(data.data(), bytes, MPI_BYTE, rank, static_cast<MPI_Aint>(at), bytes, MPI_BYTE,
             window_);
    PMPI_Win_flush_local(rank, window_);
  }

  Memory window_memory_;
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace

std::unique_ptr<Exchange> make_put_exchange(const Topology& topology, std::size_t window,
                                            std::size_t staging) {
  return std::make_unique<PutExchange>(topology, window, staging);
}

}  // namespace dedup::engine
