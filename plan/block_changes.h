// What became of a block's chunks from one generation to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/block.h"

namespace dedup::plan {

// Indexes of pieces: a chunk, kept in some way, once.
struct BlockChanges {
  std::vector<std::uint32_t> fresh;  // of the block: `before` does not have it, kept alike
  std::vector<std::uint32_t> gone;   // of `before`: the block does not have it, kept alike
};

// Both in order of pieces (plan/block.h). A chunk that is repeated may be both, if only some of its
// places changed. Time: linear in the pieces where they are the same, n log n where they are not.
BlockChanges changes_between(const Block& before, const Block& block);

}  // namespace dedup::plan
