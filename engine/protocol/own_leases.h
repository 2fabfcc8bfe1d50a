// The leases that this process has on blocks of a file. What they are is said in
// service/messages/lease.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "service/messages/lease.h"
#include "store/lease_table.h"

namespace dedup::engine {

struct JobFile;

// Part of LocalFile. By one thread at a time.
class OwnLeases {
 public:
  // Whether there is a lease on `block` under which the write is made: then nobody needs to be told
  // of it. Gives back a lease that was recalled, or whose slot is full.
  Result<bool> note(const JobFile& file, std::uint64_t block, const store::LeasedWrite& write);

  // The home of `block` is to be told of a small write: a lease to ask it for, if it is the second
  // one in a row to that block; else none (serial 0). Whoever asks for it says whether it was
  // refused, or that some home may not know of it: then nothing is written under it.
  Result<service::Lease> wish(const JobFile& file, std::uint64_t block);
  void refused(const service::Lease& lease);
  void doubt(const service::Lease& lease);

  // The log that it was in is none any more. When there are no leases.
  void forget_table() { table_.reset(); }

  // When this returns the homes know what was written under leases, and there are none.
  Status give_back_all(const JobFile& file);

 private:
  using Leases = std::vector<service::Lease>;

  Status give_back(const JobFile& file, Leases::iterator lease);

  std::unique_ptr<store::LeaseTable> table_;
  bool unavailable_ = false;  // the file system cannot, or has no room
  Leases leases_;             // the oldest first
  std::uint64_t last_serial_ = 0;
  std::uint64_t last_block_ = UINT64_MAX;
};

}  // namespace dedup::engine
