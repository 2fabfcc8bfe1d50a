// Stage-in: a plain file is brought into the stores, and stays at its path (store/cached.h).
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "engine/file_handle.h"
#include "hints/hints.h"

namespace dedup::engine {

// Collective over `comm`. Reads the plain file at `path`, each byte on one rank, and commits it as
// a generation that is cached. Nothing is done if it is one already. `mine`: this rank's verdict on
// its own arguments so far. Memory: as a dump.
//
// kConflict if it is no plain file, or was changed meanwhile; otherwise the errors of opening for
// writing and of a commit, but that neither the file nor its directory need be writable.
Status fetch(MPI_Comm comm, const std::string& path, const Status& mine, const hints::Hints& hints);

// Collective. For a file that was just opened to be read: if its data is a plain file's alone, and
// the hints want it in the stores (dedup_fetch), the same file, opened once it is there. If it
// cannot be brought there, that is said, and it is read where it is.
Result<std::unique_ptr<FileHandle>> open_fetched(MPI_Comm comm, std::unique_ptr<FileHandle> file,
                                                 int amode);

}  // namespace dedup::engine
