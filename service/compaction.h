// Frees the space of chunks that nobody refers to any more: what is left in segments that are less
// than half live is copied to a new segment.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"
#include "service/file_chunks.h"
#include "store/index.h"
#include "store/store.h"

namespace dedup::service {

// Moves the chunks of sparse segments, so that nothing in `entries` (all live chunks) refers to
// these segments any more, and returns the number of the new segment, which is complete and, with
// `flush`, on disk; 0 if there is nothing to move. Each chunk's checksum is checked on the way.
//
// This only saves space, so it never fails: of a segment with a chunk that cannot be read the rest
// stays where it is, and if the new one cannot be written (the disk is full), everything does.
// Reads and writes fewer bytes than it frees; memory: about 4 MiB, and 36 bytes for each chunk that
// is moved.
std::uint64_t compact(store::Store& store, FileChunks& chunks, const Id128& identity,
                      std::span<store::IndexEntry> entries, bool flush);

}  // namespace dedup::service
