// Finding what an open is about, and attaching it to the job's nodes.
#pragma once

#include <functional>

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
// `begin` is then called on each rank, for what it needs of the file itself. `created`: there was
// nothing before. On failure, also of some rank's `begin`, nothing is left behind.
Status find_and_attach(JobFile& file, const OpenMode& mode, const std::function<Status()>& begin,
                       bool& created);

}  // namespace dedup::engine
