// Frees the space of chunks that nobody refers to any more: what is left in segments that are less
// than half live is copied to a new segment. Of a segment that another file has, too, only this
// file's name goes, if less than a quarter of it is live: what the other one leaves of it some day
// is not kept for a few chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "service/file_chunks.h"
#include "service/live_chunks.h"
#include "store/index.h"
#include "store/store.h"

namespace dedup::service {

struct Compaction {
  std::uint64_t segment = 0;             // the new one; 0: nothing was moved
  std::vector<store::IndexEntry> moved;  // with their new places, in order of fingerprints
};

// Copies the live chunks, which take `space`, of sparse segments to a new one, which is complete
// and, with `flush`, on disk. Each chunk's checksum is checked on the way.
//
// This only saves space, so it never fails: of a segment with a chunk that cannot be read the rest
// stays where it is, and if the new one cannot be written (the disk is full), everything does.
// Reads and writes fewer bytes than it frees; memory: about 4 MiB, and 112 bytes for each chunk
// that is moved.
Compaction compact(store::Store& store, FileChunks& chunks, const Id128& identity, LiveChunks& live,
                   const LiveChunks::Space& space, bool flush);

}  // namespace dedup::service
