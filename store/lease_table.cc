#include "store/lease_table.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace dedup::store {
namespace {

struct Entry {
  std::atomic<std::uint32_t> begin;
  std::atomic<std::uint32_t> length;
  std::atomic<std::uint64_t> log_offset;

  // With release: whoever reads one of a lease that has the slot now sees at last that the lease it
  // looked for has it no more.
  void set(const LeasedWrite& write) {
    begin.store(write.begin, std::memory_order_release);
    length.store(write.length, std::memory_order_release);
    log_offset.store(write.log_offset, std::memory_order_release);
  }
  LeasedWrite get() const {
    return {begin.load(std::memory_order_acquire), length.load(),
            log_offset.load(std::memory_order_acquire)};
  }
};

}  // namespace

struct LeaseTable::Slot {
  // Twice the serial, and 1 if it has ended. 0: free.
  std::atomic<std::uint64_t> lease;
  std::atomic<std::uint32_t> count;
  std::uint32_t unused[5];
  Entry entries[kWrites];

  static bool has_ended(std::uint64_t lease) { return lease % 2 == 1; }

  std::vector<LeasedWrite> writes() const {
    const std::uint32_t there = std::min(count.load(), kWrites);
    std::vector<LeasedWrite> out;
    out.reserve(there);
    for (std::uint32_t i = 0; i < there; ++i) out.push_back(entries[i].get());
    return out;
  }
};

std::vector<LogPiece> log_pieces(std::span<const LeasedWrite> writes, NodeIndex node,
                                 std::uint64_t log) {
  std::vector<LogPiece> out;
  out.reserve(writes.size());
  for (const LeasedWrite& write : writes) {
    out.push_back({write.begin, write.length, node, log, write.log_offset});
  }
  return out;
}

LeaseTable::LeaseTable(std::shared_ptr<void> memory, std::span<std::byte> bytes)
    : memory_(std::move(memory)), bytes_(bytes) {
  static_assert(sizeof(Slot) * kSlots == kBytes);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
}

std::span<LeaseTable::Slot> LeaseTable::slots() const {
  return {reinterpret_cast<Slot*>(bytes_.data()), kSlots};
}

void LeaseTable::begin(std::uint32_t number, std::uint64_t serial) {
  Slot& slot = slots()[number];
  slot.count.store(0);
  slot.lease.store(2 * serial);
}

LeaseTable::Noted LeaseTable::note(std::uint32_t number, const LeasedWrite& write) {
  Slot& slot = slots()[number];
  const std::uint32_t count = slot.count.load(std::memory_order_relaxed);
  if (count > 0) {
    Entry& last = slot.entries[count - 1];
    const LeasedWrite before = last.get();
    if (before.begin + before.length == write.begin &&
        before.log_offset + before.length == write.log_offset) {
      last.length.store(before.length + write.length);
      return Slot::has_ended(slot.lease.load()) ? Noted::kRecalled : Noted::kYes;
    }
  }
  if (count == kWrites) return Noted::kFull;
  slot.entries[count].set(write);
  slot.count.store(count + 1);
  return Slot::has_ended(slot.lease.load()) ? Noted::kRecalled : Noted::kYes;
}

bool LeaseTable::end(std::uint32_t number) {
  return Slot::has_ended(slots()[number].lease.fetch_or(1));
}

std::vector<LeasedWrite> LeaseTable::writes(std::uint32_t number) const {
  return slots()[number].writes();
}

void LeaseTable::free(std::uint32_t number) {
  slots()[number].lease.store(0);
}

std::optional<std::vector<LeasedWrite>> LeaseTable::recall(std::uint32_t number,
                                                           std::uint64_t serial) const {
  if (number >= kSlots || serial == 0) return std::nullopt;
  Slot& slot = slots()[number];
  const std::uint64_t ended = 2 * serial + 1;
  std::uint64_t lease = 2 * serial;
  if (!slot.lease.compare_exchange_strong(lease, ended) && lease != ended) return std::nullopt;
  auto writes = slot.writes();
  // Meanwhile its process may have told the homes, and used the slot for another one.
  if (slot.lease.load() != ended) return std::nullopt;
  return writes;
}

}  // namespace dedup::store
