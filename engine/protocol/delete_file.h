// Deleting a file, and taking away the name of one that is open.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "hints/hints.h"

namespace dedup::engine {

// Not collective. Deletes the file on all nodes of the job; stores that are not here get a mark. If
// this job has the file open, the last close deletes it.
Status delete_file(service::Client& client, const std::string& path, const hints::Hints& hints);

// On one rank: takes the name of an open file away (MPI_MODE_DELETE_ON_CLOSE), unless somebody has
// done so before. The last close deletes the file.
Status delete_name(JobFile& file);

}  // namespace dedup::engine
