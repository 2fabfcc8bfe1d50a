// The writes that a process makes under leases: what it did to which bytes of a block, in memory
// that it shares with its node's service, so that a write needs no message.
//
// The table is part of the process's log (doc/format.md) and has a slot for each lease that the
// process may have at a time. The process notes its writes there; the service recalls a lease for
// whoever wants the block. Either ends it, and then its writes no longer change. A write that is
// noted after a recall has looked is told so: what one side misses the other sees. (Dekker's rule,
// after E. W. Dijkstra, "Cooperating sequential processes", 1965, 2.1: each sets its own mark
// before it looks at the other's.)
//
// What a lease is, and who may have one, is said in service/messages/lease.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/piece.h"
#include "base/types.h"

namespace dedup::store {

// Bytes of a block, and where they stand in the log.
struct LeasedWrite {
  std::uint32_t begin = 0;  // relative to the block
  std::uint32_t length = 0;
  std::uint64_t log_offset = 0;
};

// The same, as the block's home is told of them: `log` is the number of the log, on `node`.
std::vector<LogPiece> log_pieces(std::span<const LeasedWrite> writes, NodeIndex node,
                                 std::uint64_t log);

class LeaseTable {
 public:
  static constexpr std::uint32_t kSlots = 16;
  static constexpr std::uint32_t kWrites = 254;  // that do not continue each other, in a slot
  static constexpr std::size_t kBytes = std::size_t{kSlots} * 4096;

  // `bytes`: kBytes of a log, zeros at first, that `memory` holds.
  LeaseTable(std::shared_ptr<void> memory, std::span<std::byte> bytes);

  // --- The process that writes the log: one thread at a time ------------------------------------
  // A slot that is free gets lease `serial`, never used before in this table, nor 0.
  void begin(std::uint32_t slot, std::uint64_t serial);
  // kRecalled: whoever recalled the lease may or may not have seen this write.
  enum class Noted { kYes, kFull, kRecalled };
  Noted note(std::uint32_t slot, const LeasedWrite& write);
  // From here on it is as recalled. Whether it was before.
  bool end(std::uint32_t slot);
  std::vector<LeasedWrite> writes(std::uint32_t slot) const;
  // When nobody needs to know of the lease any more.
  void free(std::uint32_t slot);

  // --- The service ------------------------------------------------------------------------------
  // Ends the lease; its writes in the order in which they were made. Nothing if the slot has
  // another one, or none: the process has told the homes. Any number of threads and processes.
  std::optional<std::vector<LeasedWrite>> recall(std::uint32_t slot, std::uint64_t serial) const;

 private:
  struct Slot;
  std::span<Slot> slots() const;

  std::shared_ptr<void> memory_;
  std::span<std::byte> bytes_;
};

}  // namespace dedup::store
