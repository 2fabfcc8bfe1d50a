// Opening and closing files.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "engine/open_file.h"
#include "hints/hints.h"

namespace dedup::engine {

// Collective over `comm`. `mine`: this rank's verdict on its own arguments so far; if it is an
// error on any rank, all ranks fail with it. `amode`: MPI_MODE_… flags.
Result<std::unique_ptr<OpenFile>> open_file(MPI_Comm comm, const std::string& path, int amode,
                                            const Status& mine, const hints::Hints& hints);

// Collective. Commits (unless read-only or delete-on-close), then lets go of the file; the last
// handle of the job to do so releases the stores. The file is closed whatever the result is; if it
// could not be committed, rank 0 says so on stderr, since ROMIO lets programs ignore it.
Status close_file(std::unique_ptr<OpenFile> file);

}  // namespace dedup::engine
