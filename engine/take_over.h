// The first commit of a file that was opened as a plain one.
#pragma once

#include "base/status.h"
#include "engine/file_handle.h"

namespace dedup::engine {

// Collective; the caller has the file's commit lock. Dumps what is still the plain file's into
// uncommitted chunks, below what was written since, so that a commit has all of the file. Costs
// reading what nobody has overwritten, and dumping it; memory: a quarter of dedup_buffer.
Status take_over(FileHandle& file);

}  // namespace dedup::engine
