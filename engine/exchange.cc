#include "engine/exchange.h"

#include <algorithm>
#include <cstring>

#include "engine/failpoint.h"
#include "engine/pace.h"
#include "plan/slots.h"

namespace dedup::engine {
namespace {

// Memory that is not touched before it is needed.
using Memory = std::unique_ptr<std::byte[]>;
Memory allocate(std::size_t size) {
  return Memory(new std::byte[size]);
}

// Chunks of one round that follow each other in one rank's window.
struct Batch {
  int rank = 0;                // of the communicator
  std::uint64_t position = 0;  // of the first slot in that rank's window
  std::uint64_t count = 0;
};

// Walks what this rank sends in one round, in batches of at most `most` slots, and has each filled
// in. Starts with the targets after this rank's node, so that not all ranks send to one at a time.
class RoundSender {
 public:
  RoundSender(const Topology& topology, const ExchangePlan& plan, std::uint64_t round,
              std::uint64_t most)
      : topology_(topology), plan_(plan), round_(round), most_(most) {
    const auto after =
        std::find_if(plan.ranges.begin(), plan.ranges.end(),
                     [&](const SlotRange& r) { return r.target > topology.my_node(); });
    start_ = static_cast<std::size_t>(after - plan.ranges.begin());
    enter();
  }

  // The next batch, filled in at `out`; count 0 at the end.
  Batch next(std::byte* out) {
    while (step_ < plan_.ranges.size()) {
      const plan::SlotGrid grid = grid_of(range());
      if (member_ == grid.ranks) {
        ++step_;
        enter();
        continue;
      }
      if (slot_ >= end_) {
        start_member(member_ + 1);
        continue;
      }
      Batch batch;
      batch.rank = topology_.ranks_on(range().target)[grid.rank_of(slot_)];
      batch.position = grid.position_of(slot_);
      for (; slot_ < end_ && batch.count < most_; slot_ += grid.ranks) {
        plan_.fill(range_index(), slot_ - range().first, out + batch.count * plan_.slot_size);
        ++batch.count;
      }
      return batch;
    }
    return {};
  }

 private:
  std::size_t range_index() const { return (start_ + step_) % plan_.ranges.size(); }
  const SlotRange& range() const { return plan_.ranges[range_index()]; }
  plan::SlotGrid grid_of(const SlotRange& r) const {
    return {topology_.ranks_on(r.target).size(), plan_.slots_per_round};
  }

  void enter() {
    if (step_ == plan_.ranges.size()) return;
    const plan::SlotGrid grid = grid_of(range());
    begin_ = std::max(range().first, grid.first_of(round_));
    end_ = std::min(range().first + range().count, grid.first_of(round_ + 1));
    start_member(0);
  }

  void start_member(std::uint64_t member) {
    const std::uint64_t ranks = grid_of(range()).ranks;
    member_ = member;
    // The first slot from begin_ on that is this member's.
    slot_ = begin_ + (member + ranks - begin_ % ranks) % ranks;
  }

  const Topology& topology_;
  const ExchangePlan& plan_;
  std::uint64_t round_;
  std::uint64_t most_;
  std::size_t start_ = 0;
  std::size_t step_ = 0;
  std::uint64_t begin_ = 0;  // of the current range in this round
  std::uint64_t end_ = 0;
  std::uint64_t member_ = 0;  // of the target's ranks
  std::uint64_t slot_ = 0;
};

std::uint64_t expected_slots(const Topology& topology, const ExchangePlan& plan,
                             std::uint64_t round) {
  const plan::SlotGrid grid{static_cast<std::uint64_t>(topology.node_size()), plan.slots_per_round};
  return grid.expected(plan.incoming, static_cast<std::uint64_t>(topology.node_rank()), round);
}

// One window over the same memory for all exchanges, open to all ranks at all times. A round: put,
// flush, barrier; the window is the receiver's until the next barrier.
class PutExchange final : public Exchange {
 public:
  PutExchange(const Topology& topology, std::size_t window, std::size_t staging)
      : Exchange(topology, window, staging) {}

  ~PutExchange() override { free_window(); }
  void release() override { free_window(); }

  void run(const ExchangePlan& plan) override {
    if (!window_memory_) open();
    const std::uint64_t batch_slots = std::max<std::uint64_t>(1, staging_size_ / plan.slot_size);
    const Memory staging = allocate(batch_slots * plan.slot_size);
    for (std::uint64_t round = 0; round < plan.rounds; ++round) {
      if (round > 0) PMPI_Barrier(topology_.comm());
      RoundSender sender(topology_, plan, round, batch_slots);
      const std::uint64_t expected = expected_slots(topology_, plan, round);
      PacedLink link(expected * plan.slot_size);
      std::uint64_t filled = 0;
      for (;;) {
        const Batch batch = sender.next(staging.get());
        if (batch.count == 0) break;
        put(batch, staging.get(), plan.slot_size);
        // The staging memory is needed for the next batch.
        PMPI_Win_flush_local(batch.rank, window_);
        link.send(batch.count * plan.slot_size);
        filled += batch.count;
      }
      if (filled > 0) PMPI_Win_flush_all(window_);
      link.wait();
      failpoint("dump.exchanging");
      PMPI_Barrier(topology_.comm());
      PMPI_Win_sync(window_);
      if (expected == 0) continue;
      plan.drain(round * plan.slots_per_round, {window_memory_.get(), expected * plan.slot_size});
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

  void put(const Batch& batch, const std::byte* data, std::size_t slot_size) {
    const auto bytes = static_cast<int>(batch.count * slot_size);
    PMPI_Put(data, bytes, MPI_BYTE, batch.rank, static_cast<MPI_Aint>(batch.position * slot_size),
             bytes, MPI_BYTE, window_);
  }

  Memory window_memory_;
  MPI_Win window_ = MPI_WIN_NULL;
};

// The same as messages, without rounds: each is stored as it comes, so that nothing is waited for
// but messages, and little memory is used over and over. The receiver knows how many slots come,
// not from whom; a message says where its slots stand among them. Its tag is the exchange's number,
// so that a fast rank's next exchange is left alone.
class SendExchange final : public Exchange {
 public:
  SendExchange(const Topology& topology, std::size_t window, std::size_t staging)
      : Exchange(topology, window, staging) {}

  ~SendExchange() override {
    if (comm_ != MPI_COMM_NULL) PMPI_Comm_free(&comm_);
  }
  void release() override {}

  void run(const ExchangePlan& given) override {
    if (comm_ == MPI_COMM_NULL) {
      // Of its own, since it receives from anybody.
      PMPI_Comm_dup(topology_.comm(), &comm_);
    }
    ++exchanges_;
    ExchangePlan plan = given;
    plan.slots_per_round = kNoRounds;
    const std::uint64_t slots =
        std::max<std::uint64_t>(1, staging_size_ / (kParts + 1) / plan.slot_size);
    const std::size_t part = kPositionSize + slots * plan.slot_size;
    const Memory memory = allocate((kParts + 1) * part);
    std::byte* const incoming = memory.get() + kParts * part;
    RoundSender sender(topology_, plan, 0, slots);
    const std::uint64_t expected = expected_slots(topology_, plan, 0);
    PacedLink link(expected * plan.slot_size);
    MPI_Request requests[kParts];
    std::fill(std::begin(requests), std::end(requests), MPI_REQUEST_NULL);
    std::uint64_t received = 0;
    bool sending = true;
    while (sending || received < expected) {
      if (sending) sending = send(sender, plan, memory.get(), part, requests, link);
      if (received < expected) received += receive(plan, incoming, part);
    }
    failpoint("dump.exchanging");
    PMPI_Waitall(kParts, requests, MPI_STATUSES_IGNORE);
    link.wait();
  }

 private:
  static constexpr int kParts = 8;  // of the staging memory, each for a message under way
  static constexpr std::size_t kPositionSize = sizeof(std::uint64_t);
  static constexpr std::uint64_t kNoRounds = std::uint64_t{1} << 40;  // slots in one

  int tag() const { return static_cast<int>(exchanges_ % 32768); }  // what every MPI takes

  // Starts as many messages as there are free parts. False once there are no more.
  bool send(RoundSender& sender, const ExchangePlan& plan, std::byte* staging, std::size_t part,
            MPI_Request* requests, PacedLink& link) {
    for (int i = 0; i < kParts; ++i) {
      int done = 1;
      PMPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
      if (done == 0) continue;
      std::byte* const message = staging + static_cast<std::size_t>(i) * part;
      const Batch batch = sender.next(message + kPositionSize);
      if (batch.count == 0) return false;
      std::memcpy(message, &batch.position, kPositionSize);
      PMPI_Isend(message, static_cast<int>(kPositionSize + batch.count * plan.slot_size), MPI_BYTE,
                 batch.rank, tag(), comm_, &requests[i]);
      link.send(batch.count * plan.slot_size);
    }
    return true;
  }

  // Takes one message if there is one, and stores it; returns its slots.
  std::uint64_t receive(const ExchangePlan& plan, std::byte* memory, std::size_t size) {
    int found = 0;
    MPI_Message message;
    MPI_Status status;
    PMPI_Improbe(MPI_ANY_SOURCE, tag(), comm_, &found, &message, &status);
    if (found == 0) return 0;
    PMPI_Mrecv(memory, static_cast<int>(size), MPI_BYTE, &message, &status);
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    const std::uint64_t slots = (static_cast<std::size_t>(bytes) - kPositionSize) / plan.slot_size;
    std::uint64_t position = 0;
    std::memcpy(&position, memory, kPositionSize);
    plan.drain(position, {memory + kPositionSize, slots * plan.slot_size});
    return slots;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::uint64_t exchanges_ = 0;  // the same on all ranks
};

}  // namespace

std::unique_ptr<Exchange> Exchange::create(hints::Exchange kind, const Topology& topology,
                                           std::size_t window, std::size_t staging) {
  // Counts of MPI are int.
  window = std::min(window, std::size_t{1} << 30);
  staging = std::min(staging, std::size_t{1} << 28);
  if (kind == hints::Exchange::kSend) {
    return std::make_unique<SendExchange>(topology, window, staging);
  }
  return std::make_unique<PutExchange>(topology, window, staging);
}

}  // namespace dedup::engine
