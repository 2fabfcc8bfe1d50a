// Write-back (dedup_flush=close): the whole file as a plain file at its real path.
#pragma once

#include "base/status.h"
#include "engine/protocol/job_file.h"

namespace dedup::engine {

// Collective; nobody else in the job has the file open, and all of it is committed. Ranks write
// contiguous parts under a temporary name beside the path, which takes the placeholder's place when
// all are on disk. On failure the placeholder stands, and the data stays in the stores. Memory: 8
// MiB.
Status write_back(JobFile& file);

}  // namespace dedup::engine
