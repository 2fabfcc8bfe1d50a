// Blocks of the committed recipe, on their way from a shard to who uses them.
#pragma once

#include <span>

#include "base/status.h"
#include "base/types.h"
#include "plan/block.h"
#include "store/shard.h"

namespace dedup::service {

// The block, if its checksum is the one that was made with it, with nodes in terms of
// FileInfo::stores: `stores` has them by their positions in the commit record. kCorrupt if it
// cannot be used.
Result<Block> open_base_block(const store::EncodedBlock& encoded,
                              std::span<const NodeIndex> stores);

}  // namespace dedup::service
