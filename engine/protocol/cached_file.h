// Telling the stores that the base of a file is cached (store/cached.h).
#pragma once

#include "engine/protocol/job_file.h"
#include "store/real_path.h"

namespace dedup::engine {

// Collective; the file is open for writing. `plain`: of the plain file at its path that is its
// base. False if no store can remember that.
bool note_cached(const JobFile& file, const store::Stamp& plain);

}  // namespace dedup::engine
