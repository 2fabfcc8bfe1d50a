// What this process knows of an open file's committed state; replaced as a whole when a commit,
// possibly of another handle, makes a new generation.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "service/messages/file_info.h"
#include "store/commit_record.h"

namespace dedup::engine {

// Immutable once made: shared between threads without locks.
struct FileView {
  service::FileInfo info;
  bool committed = false;      // there is a base
  store::CommitRecord record;  // of the base
  // Position in record.stores -> position in info.stores.
  std::vector<NodeIndex> store_of;

  Id128 base() const { return committed ? record.attempt : Id128{}; }
  // store_of of that generation, which is the base or the donor's (kNoNode: a store that is not in
  // info.stores); none if it is neither.
  std::vector<NodeIndex> nodes_of(const Id128& generation) const;

  static Result<FileView> from(service::FileInfo info);
};

// The table of stores for a job whose nodes have `nodes`' stores: these first, then the stores of
// `record` that no node has.
std::vector<service::StoreRef> store_table(std::vector<service::StoreRef> nodes,
                                           const store::CommitRecord& record);

}  // namespace dedup::engine
