// Deleting files: the data here goes at once, and a mark says which other stores still have to drop
// theirs.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/store.h"

namespace dedup::store {

// Removes a file, which `whole` locks, and its kept generations from a store and leaves a mark that
// names the stores which still have to. If it cannot be removed, the mark is as before. Returns the
// bytes freed.
Result<std::uint64_t> drop_with_mark(Store& store, const Id128& identity,
                                     const std::vector<Id128>& stores_left,
                                     std::unique_ptr<Store::Lock> whole);

// The same; takes that lock. kFileInUse if a job has the file open. A mark is left also if the file
// is not here.
Status drop_with_mark(Store& store, const Id128& identity, const std::vector<Id128>& stores_left);

// Removes a file that a mark here says was deleted. kFileInUse if a job has it open.
Status drop_marked(Store& store, const Id128& identity);

}  // namespace dedup::store
