// Letting go of an open file.
#pragma once

#include "base/status.h"
#include "engine/protocol/job_file.h"

namespace dedup::engine {

// Collective. What the handle did not commit is dropped, unless others have the file open; the last
// handle of the job writes the file back if some handle wanted that, and releases the stores.
Status leave(JobFile& file);

}  // namespace dedup::engine
