// MPI_File_close.
#pragma once

#include <memory>

#include "base/status.h"
#include "engine/file_handle.h"

namespace dedup::engine {

// Collective. Commits (unless read-only or delete-on-close), then lets go of the file; the last
// handle of the job to do so releases the stores. The file is closed whatever the result is; if it
// could not be committed, rank 0 says so on stderr, since ROMIO lets programs ignore it.
Status close_handle(std::unique_ptr<FileHandle> file);

}  // namespace dedup::engine
