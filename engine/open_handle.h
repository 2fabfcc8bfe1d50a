// MPI_File_open.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "engine/file_handle.h"
#include "hints/hints.h"

namespace dedup::engine {

enum class Purpose { kAccess, kHealing, kFetching };

// Collective over `comm`. `mine`: this rank's verdict on its own arguments so far; if it is an
// error on any rank, all ranks fail with it. `amode`: MPI_MODE_… flags.
Result<std::unique_ptr<FileHandle>> open_handle(MPI_Comm comm, const std::string& path, int amode,
                                                const Status& mine, const hints::Hints& hints,
                                                Purpose purpose = Purpose::kAccess);

}  // namespace dedup::engine
