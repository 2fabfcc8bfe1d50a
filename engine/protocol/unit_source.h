// Where the units of stripes come from that are to be made (stripe_maker.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "plan/stripe_content.h"
#include "store/segment.h"

namespace dedup::engine {

// A unit of a node that this rank speaks for, on its way to who encodes it.
struct MovedUnit {
  NodeIndex node = kNoNode;
  std::uint32_t number = 0;  // of those of its node
  plan::UnitChunks chunks;   // none: the node does not give it
  std::vector<store::ChunkSeal> seals;
  std::byte* to = nullptr;  // as many bytes as the chunks have
};

// One thread.
class UnitSource {
 public:
  virtual ~UnitSource() = default;
  // Fills in what they consist of.
  virtual void list(std::span<MovedUnit> units) = 0;
  // Then: reads their bytes to where they go, and fills in a seal for each chunk. What cannot be
  // had as it was listed has no chunks any more.
  virtual void read(std::span<MovedUnit> units) = 0;
};

}  // namespace dedup::engine
