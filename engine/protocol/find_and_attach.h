// Finding what an open is about, and attaching it to the job's nodes.
#pragma once

#include "base/status.h"
#include "engine/protocol/job_file.h"

namespace dedup::engine {

// Of MPI's access modes, beside what `file` has.
struct OpenMode {
  bool create = false;
  bool exclusive = false;
};

// Collective. Decides which file stands at `file`'s path, or makes it (doc/design.md, "Opening"),
// has every node attach it, and registers the handle with the path's home. Fills file.view();
// `created`: there was nothing before. On failure nothing is left behind.
Status find_and_attach(JobFile& file, const OpenMode& mode, bool& created);

}  // namespace dedup::engine
