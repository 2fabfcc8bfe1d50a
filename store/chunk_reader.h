// Reading many chunks of one store.
//
// Chunks that are wanted one after the other mostly stand one after the other, since writers append
// them in the file's order; and a chunk says by its header which one it is. So only the first of a
// stretch is looked up, and those after it are read from where they would follow it. How many at
// once depends on how the guesses before went: twice as many as last time after one that held, as
// many as held after one that did not, so that data in any order cost few reads for nothing. What
// is not found like that is looked up, and read in the order in which it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/segment.h"

namespace dedup::store {

// A chunk that is wanted, and where its bytes go: as many as it has.
struct ChunkTarget {
  Fingerprint fingerprint;
  std::span<std::byte> out;
};

// One thread.
class ChunkReader {
 public:
  virtual ~ChunkReader() = default;

  // Every chunk is checked by its checksum. The positions of those that cannot be had, ascending.
  std::vector<std::size_t> read(std::span<const ChunkTarget> chunks);

 private:
  // Where each of them is; length 0: not here. Empty if nothing can be found out.
  virtual std::vector<ChunkLocation> locate(std::span<const Fingerprint> fingerprints) = 0;
  // Null if it cannot be read. Needed until the next call.
  virtual const SegmentReader* segment(std::uint64_t number) = 0;

  std::vector<std::size_t> read_stretches(std::span<const ChunkTarget> chunks,
                                          const std::vector<std::size_t>& which);
  std::vector<std::size_t> read_located(std::span<const ChunkTarget> chunks,
                                        const std::vector<std::size_t>& which);
  std::vector<ChunkLocation> locate(std::span<const ChunkTarget> chunks,
                                    const std::vector<std::size_t>& which);

  std::size_t guess_ = 0;  // chunks
};

}  // namespace dedup::store
