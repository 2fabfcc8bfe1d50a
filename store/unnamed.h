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
// records name directories that are there, are those that were there at the commit, and have
// no placeholder of the file. So a file system that is not mounted loses nothing, and nor does a
// placeholder that was renamed within its directory. A file with a damaged record stays: that may
// name another directory. Returns how many were dropped.
//
// What was found is looked at again with the file locked: a job may have committed it, and put its
// placeholder, in between. Costs reading each such directory once, and once more for 64 files that
// are to go, and the 4 KiB of each placeholder in it.
Result<std::size_t> drop_unnamed(Store& store, const std::vector<Id128>& own);

}  // namespace dedup::store
