// Freeing the space of files that no name leads to any more: their placeholder was removed, or
// another file was renamed over it.
#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/store.h"

namespace dedup::store {

// Drops every file of the store, other than those in `own` and those that a job has open, whose
// newest record names a directory that is there, is the one that was there at the commit, and has
// no placeholder of the file. So a file system that is not mounted loses nothing, and nor does a
// placeholder that was renamed within its directory. Returns how many were dropped. Costs reading
// each such directory once, and the 4 KiB of each placeholder in it.
Result<std::size_t> drop_unnamed(Store& store, const std::vector<Id128>& own);

}  // namespace dedup::store
