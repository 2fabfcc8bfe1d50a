// Write-back (dedup_flush): the whole file as a plain file at its real path.
//
// It is written to a copy beside the path by several writers (part_writer.h), each of which has a
// part of it, and notes in its node's store what of that is on the target's disk. Who comes after a
// kill goes on with what is missing; when nothing is, the copy takes the placeholder's place.
// design.md, "The real path".
#pragma once

#include <optional>

#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/job_file.h"
#include "store/real_path.h"

namespace dedup::engine {

// A copy that has all of a generation.
struct WholeCopy {
  Id128 id;
  Id128 attempt;
};

struct WriteBackResult {
  // The plain file stands at the path. Else the file stays open, for writers in the background of
  // these ranks' processes (flusher.h), the last of which closes it.
  bool is_done = false;
  // Of the plain file, if by it that can be told to be unchanged, and the hints want it
  // (dedup_flushed).
  std::optional<store::Stamp> plain;
};

// Collective; nobody else in the job has the file open, all of it is committed, and rank 0 has the
// path's turn. On failure the
// placeholder stands, no copy of this one stays beside it, and the data stays in the stores.
// Memory: 8 MiB. `known`: a copy that is put there if the file is that generation. `goes_on`:
// copies that were begun before are gone on with; else writers of this job may still be at them.
//
// Costs, of N nodes: N requests for what was written before, a gather and a broadcast of that; and
// a flush of a small file in a store for each 64 MiB that a writer writes.
Result<WriteBackResult> write_back(JobFile& file, const WholeCopy& known, bool goes_on);

// Removes a copy that nobody will go on with.
void discard_copy(const JobFile& file, const Id128& copy);

}  // namespace dedup::engine
