// MPI_File_set_size.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/file_handle.h"

namespace dedup::engine {

// Collective. Shrinking drops what all ranks wrote beyond `size`, through whichever handle; what is
// added by growing reads as zeros. Effective at once, committed with the next commit.
Status set_size(FileHandle& file, std::uint64_t size);

}  // namespace dedup::engine
