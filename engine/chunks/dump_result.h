// What goes into a dump and what comes out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "plan/placement.h"

namespace dedup::engine {

// Contiguous bytes in file and memory. Chunks are cut from its start. Must stay readable until the
// dump returns: chunks are hashed, sent and stored from where they are.
struct DumpRun {
  std::uint64_t file_offset = 0;
  const std::byte* data = nullptr;
  std::uint64_t length = 0;
};

// One chunk of this rank's data, or a run of zeros, as it will stand in the recipe. 56 bytes.
struct DumpedPiece {
  std::uint64_t file_offset = 0;
  std::uint32_t length = 0;     // of a chunk: at most chunk_size; zeros: at most kBlockSpan
  std::uint32_t placement = 0;  // index into DumpResult::placements
  bool zero = false;
  Fingerprint fingerprint;
};
static_assert(sizeof(DumpedPiece) == 56);

// What a dump did on this rank; bytes of chunk data.
struct DumpStats {
  std::uint64_t bytes_written = 0;            // handed in
  std::uint64_t bytes_zero = 0;               // of these, in zero chunks
  std::uint64_t bytes_unique_local = 0;       // left after this rank's own deduplication
  std::uint64_t bytes_stored_before = 0;      // of these, what its node's store had already
  std::uint64_t bytes_fingerprinted = 0;      // that took a SHA-256
  std::uint64_t bytes_unique_collective = 0;  // of these, kept by this rank after the reduction
  std::uint64_t bytes_stored = 0;             // appended to this node's store by this rank
  std::uint64_t bytes_sent = 0;               // copies sent to other nodes by this rank
  std::uint64_t bytes_received = 0;           // copies received by this rank
  std::uint64_t bytes_reducing = 0;  // of the reduction's sets, sent and received by this rank
  std::uint64_t merges = 0;          // of two such sets, by this rank
  double seconds_hashing = 0;
  double seconds_reducing = 0;
  double seconds_exchanging = 0;
  double seconds_storing = 0;
  double seconds_writing = 0;  // in all calls that wrote and committed

  DumpStats& operator+=(const DumpStats& other);
};

struct DumpResult {
  std::vector<DumpedPiece> pieces;  // in the order of the runs
  std::vector<plan::Placement> placements;
  DumpStats stats;
};

}  // namespace dedup::engine
