// Writing the index of a generation on one node: whole, or as what is new beside runs of the
// base's.
//
// Runs of the base stay if nearly all of what they name is live, and if they are more than what
// would be written in their place: so an index has few runs, a chunk's entry is written a bounded
// number of times as the index grows (as levels of a log-structured merge tree are), and what a
// commit writes goes with what is new. What is dead in a run that stays keeps its segment: that is
// at most 1/8 of what the index names.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "service/compaction.h"
#include "service/file_chunks.h"
#include "service/live_chunks.h"
#include "store/index.h"
#include "store/store.h"

namespace dedup::service {

// Of one attempt. References only. One thread.
class IndexWriting {
 public:
  IndexWriting(store::Store& store, FileChunks& chunks, const Id128& identity, const Id128& attempt)
      : store_(store), chunks_(chunks), identity_(identity), attempt_(attempt) {}

  // See WriteIndex in messages/store_node.h; `generation`: its base. All that is live was referred
  // to, and takes `space`.
  Status write_all(LiveChunks& live, const LiveChunks::Space& space, const Compaction& compaction,
                   const Id128& generation);
  // What was referred to is live, and so is what the base's index names but for `dropped` bytes
  // more. False, and nothing is written, if the base's cannot stay.
  Result<bool> write_changes(LiveChunks& live, const Id128& generation, std::uint64_t dropped);

  // After that: segments that have live chunks, ascending, and the number of chunks named.
  const std::vector<std::uint64_t>& live_segments() const { return live_segments_; }
  std::uint64_t chunks() const { return chunks_named_; }

 private:
  enum class Base { kAsReferredTo, kAllLive };

  // Null if it is not here, or another.
  const store::IndexReader* index_of(const Id128& base);
  // Whether each segment that the base names is here, with all that it names.
  bool has_segments_of(const store::IndexReader& base) const;
  // One part in so many of what the base names may be dead, if the nodes were told of changes only.
  std::uint64_t dead_part() const;
  // Of the base's runs the oldest so many stay; none if what they name cannot be relied on, or if
  // of its bytes more than one in `part` is `dead`.
  std::size_t runs_that_stay(const store::IndexReader& base, LiveChunks& live, std::uint64_t dead,
                             std::uint64_t part) const;
  Status write_whole(LiveChunks& live, const Compaction& compaction);
  // What is live of the base's other runs, and what is new.
  Status write_rest(LiveChunks& live, const store::IndexReader& base, std::size_t stay, Base what,
                    store::IndexWriter& index);

  store::Store& store_;
  FileChunks& chunks_;
  Id128 identity_;
  Id128 attempt_;
  std::vector<std::uint64_t> live_segments_;
  std::uint64_t chunks_named_ = 0;
};

}  // namespace dedup::service
