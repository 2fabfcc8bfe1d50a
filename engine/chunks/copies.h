// Copies of chunks on their way from one node to another: what is said of each, and what the
// receiver makes of it.
#pragma once

#include <cstdint>
#include <span>

#include "base/numbered.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/chunks/chunk_writer.h"
#include "plan/placement.h"

namespace dedup::engine {

// A copy that arrived: its number among those that the node receives, what its sender says of it,
// and the chunk.
struct Parcel {
  std::uint64_t slot = 0;
  std::span<const std::byte> header;
  std::span<const std::byte> data;
};

// What is said of a copy, together with the nodes that hold it in the end.
struct CopyHeader {
  Fingerprint fingerprint;
  std::uint32_t exchange = 0;  // whatever is left in a window from before does not pass for this
  std::uint32_t slot = 0;      // the low half of it
  bool single = false;
  std::uint64_t checksum = 0;  // of the data, when they were cut

  // Bytes that headers take: all are alike.
  static std::size_t size(unsigned copies);
  // `placement`: copies on at most as many nodes as size() was told.
  void write(const plan::Placement& placement, std::span<std::byte> out) const;
  // kIo if it is not what was written.
  static Result<CopyHeader> read(std::span<const std::byte> in, plan::Placement& placement);
};

// In place of the header of a copy that is not there: what nobody takes for one.
void write_no_copy(std::span<std::byte> out);

// The chunk, as it is to be stored; its data stay where they are. kIo if it, or what was said of
// it, is not what was sent in this exchange at this place.
Result<StoredChunk> read_parcel(const Parcel& parcel, std::uint32_t exchange,
                                Numbered<plan::Placement>& placements);

}  // namespace dedup::engine
