// Leases. A rank that goes on writing small pieces to one block asks for a lease with WriteLog.
// From then on the home lets nobody else read or write the block, and the rank notes its writes in
// its log's table, where its node's service sees them. Whoever meets the lease has it recalled:
// takes the writes from that service (RecallLease), tells the file home how long they made the file
// (ExtendSize), gives them to the block home (ReturnLease), and asks again. The rank itself does
// the same, but for the first step, when it commits or finds its lease recalled; the one who is
// late changes nothing. The file home knows the leases too, since they make the file longer without
// telling it.
#pragma once

#include <compare>
#include <cstdint>

#include "base/piece.h"
#include "base/types.h"

namespace dedup::service {

// Leave to write to a block without telling anybody. One at a time for a block.
struct Lease {
  std::uint64_t block = 0;
  NodeIndex node = kNoNode;  // whose log it is …
  std::uint64_t log = 0;     // … of that number
  std::uint32_t slot = 0;    // of the log's table (store/lease_table.h)
  std::uint64_t serial = 0;  // 0: no lease

  auto operator<=>(const Lease&) const = default;  // by block first
  bool possible() const { return block < kBlocks && (serial == 0) == (node == kNoNode); }
};

}  // namespace dedup::service
