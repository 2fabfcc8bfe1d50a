// Letting go of an open file, and taking its name away.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "hints/hints.h"

namespace dedup::engine {

// Collective. What the handle did not commit is dropped, unless others have the file open; the last
// handle of the job writes the file back if some handle wanted that, and releases the stores.
Status leave(JobFile& file);

// Not collective. Deletes the file on all nodes of the job; stores that are not here get a mark. If
// this job has the file open, the last close deletes it.
Status delete_file(service::Client& client, const std::string& path, const hints::Hints& hints);

// On one rank: takes the name of an open file away (MPI_MODE_DELETE_ON_CLOSE), unless somebody has
// done so before. The last close deletes the file.
Status delete_name(JobFile& file);

}  // namespace dedup::engine
