// What a dump does in its own node's store by itself, without the node's service.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/index.h"
#include "store/segment.h"
#include "store/store.h"

namespace dedup::engine {

// What this node's store has of the committed generation.
struct OwnIndex {
  std::unique_ptr<store::IndexReader> reader;
  // By number of a store in the generation's record: the job's node with that store, or one beyond
  // the job's. Empty: not known.
  std::vector<NodeIndex> nodes;
};

// Of one file. One thread at a time.
struct OwnStore {
  // A segment to append to, of a number that the service gave.
  std::function<Result<std::unique_ptr<store::SegmentWriter>>(std::uint64_t number,
                                                              store::SegmentUse use)>
      create_segment;
  bool has_tiers = false;  // what is kept for others goes into segments of its own
  std::function<Result<std::uint64_t>(std::uint64_t number)> segment_size;  // bytes
  // Of the generation that dumps add to; as store::Store::index() fails if it has none here.
  std::function<Result<OwnIndex>()> index;
};

}  // namespace dedup::engine
