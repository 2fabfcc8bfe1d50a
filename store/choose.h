// Which generation an open takes: a pure function of what the stores say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/cached.h"
#include "store/commit_record.h"
#include "store/placeholder.h"
#include "store/real_path.h"
#include "store/shared_record.h"

namespace dedup::store {

// What one node's store says of a path.
struct StoreReport {
  NodeIndex node = kNoNode;
  Id128 store;
  std::string node_name;
  std::vector<SharedRecord> records;  // newest committed one of each identity, complete
  std::vector<Id128> deleted;         // identities that this store knows to be deleted
  std::vector<CachedNote> cached;     // of some of these records
};

// Something that an earlier job left to be done on a node.
struct Leftover {
  NodeIndex node = kNoNode;
  Id128 identity;
};

struct Choice {
  bool exists = false;
  CommitRecord record;              // if it exists
  std::vector<NodeIndex> adopt;     // nodes of `record` that lack it: the commit is finished there
  std::vector<Leftover> drop;       // deleted identities whose data a node still has
  std::vector<StoreEntry> missing;  // stores of `record` that no node of this job has
};

// The newest generation that all others descend to. kConflict, naming both, if there are two of
// which neither descends from the other, or two identities of which neither was deleted.
Result<Choice> choose_generation(const std::string& path, const std::vector<StoreReport>& reports);

// The same where a placeholder stands at the real path: the generation that it names, or the newest
// that was made from it (its commit was not finished). What else the stores have does not count:
// neither other identities, nor generations that lost against the placeholder's. kIo, saying what
// the placeholder names, if no store has it.
Result<Choice> choose_named(const std::string& path, const Placeholder& named,
                            const std::vector<StoreReport>& reports);

// The same where a plain file stands at the path: a generation that is cached as that one
// (store/cached.h). None if nobody has it any more as the newest of its file, if one of its stores
// that are here has dropped it, or if so many are gone that parts of it may be missing.
Choice choose_cached(const Stamp& plain, const std::vector<StoreReport>& reports);

// Opening for writing takes at least N - K + 1 of the record's N stores, so that two jobs on
// disjoint nodes cannot both go on from one generation, and so that no generation that is not the
// newest can be gone on from. kIo naming the missing stores otherwise.
Status check_quorum(const Choice& choice);

// "generation 3 (attempt 0123…) of identity 4567…", for messages.
std::string describe(const CommitRecord& record);
// "store 89ab… of node n1, store …", for messages; "none" if empty.
std::string describe(const std::vector<StoreEntry>& stores);

}  // namespace dedup::store
