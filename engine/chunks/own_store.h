// What a dump does in its own node's store by itself, without the node's service.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "store/index.h"
#include "store/segment.h"

namespace dedup::engine {

// Of one file. One thread at a time.
struct OwnStore {
  // A segment to append to, of a number that the service gave.
  std::function<Result<std::unique_ptr<store::SegmentWriter>>(std::uint64_t number)> create_segment;
  std::function<Result<std::shared_ptr<const store::SegmentReader>>(std::uint64_t number)> segment;
  // Of the generation that dumps add to; as store::Store::index() fails if it has none here.
  std::function<Result<std::unique_ptr<store::IndexReader>>()> index;
};

}  // namespace dedup::engine
