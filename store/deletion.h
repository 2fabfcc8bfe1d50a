// Deleting files: the data here goes at once, and a mark says which other stores still have to drop
// theirs.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/store.h"

namespace dedup::store {

// Removes a file from a store and leaves a mark that names the stores which still have to. If it
// cannot be removed (kFileInUse), the mark is as before.
Status drop_with_mark(Store& store, const Id128& identity, const std::vector<Id128>& stores_left);

}  // namespace dedup::store
