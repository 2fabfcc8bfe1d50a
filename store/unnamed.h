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
// records name directories that are there and are those that were there at the commit (so a file
// system that is not mounted loses nothing), and of which no placeholder, nor a copy of it, is in
// any directory that the store knows (Store::directories), or that is one level above or below a
// record's. A directory that cannot be looked at as a whole may have it. A file with a damaged
// record stays: that may name another directory. Returns how many were dropped.
//
// A placeholder that was moved elsewhere, and not opened there since, looks the same as one that
// was removed.
//
// What was found is looked at again with the file locked: a job may have committed it, and put its
// placeholder, in between. Costs reading each such directory once, and once more for 64 files that
// are to go, and the 4 KiB of each placeholder in it.
Result<std::size_t> drop_unnamed(Store& store, const std::vector<Id128>& own);

}  // namespace dedup::store
