// Committing a generation (design: "Commit and recovery").
#pragma once

#include "base/status.h"
#include "engine/file_handle.h"

namespace dedup::engine {

// Collective. Makes chunks of what this handle's ranks have in their logs, then commits the file's
// chunks, of all handles, as a new generation on all nodes of the job; what ranks outside the
// communicator have in their logs stays uncommitted. Does nothing if no rank of this handle changed
// the file. On failure the previous generation stands, and what was written is still there to be
// committed by a later call. Synchronises.
//
// When it succeeds, every chunk of the file is on at least min(K, nodes of the job) nodes, also
// those that earlier generations wrote; a warning is printed for those of which no copy is left.
Status commit(FileHandle& file);

}  // namespace dedup::engine
