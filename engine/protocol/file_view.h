// What this process knows of an open file's committed state; replaced as a whole when a commit,
// possibly of another handle, makes a new generation.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "service/messages/file_info.h"
#include "store/commit_record.h"

namespace dedup::engine {

struct CommittedGeneration {
  store::CommitRecord record;
  // Position in record.stores -> position in FileInfo::stores. kNoNode: not in there; of a donor.
  std::vector<NodeIndex> store_of;

  // Whether its stores are those of a job's `nodes`, in the same order.
  bool is_numbered_like(NodeIndex nodes) const;
};

// Whether no node can have so many of a generation's chunks that parts of its index and recipe are
// worth keeping.
bool is_small(const store::CommitRecord& record);

// Immutable once made: shared between threads without locks.
struct FileView {
  service::FileInfo info;
  std::optional<CommittedGeneration> committed;  // the base
  std::optional<CommittedGeneration> donor;      // if there is no base: what it shares

  Id128 base() const { return committed ? committed->record.attempt : Id128{}; }
  // What the next generation is made from: the base, or the donor; null: neither.
  const CommittedGeneration* origin() const;
  // store_of of that generation; none if it is neither the base nor the donor's.
  std::vector<NodeIndex> nodes_of(const Id128& generation) const;

  static Result<FileView> from(service::FileInfo info);
};

// The table of stores for a job whose nodes have `nodes`' stores: these first, then the stores of
// `record` that no node has.
std::vector<service::StoreRef> store_table(std::vector<service::StoreRef> nodes,
                                           const store::CommitRecord& record);

}  // namespace dedup::engine
