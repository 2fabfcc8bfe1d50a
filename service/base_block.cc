#include "service/base_block.h"

namespace dedup::service {

Result<Block> open_base_block(const store::EncodedBlock& encoded,
                              std::span<const NodeIndex> stores) {
  if (!store::holds(encoded)) {
    return Status(Code::kCorrupt, "a recipe's block was damaged after it was read from its shard");
  }
  if (encoded.bytes.empty()) return Block{};
  DEDUP_ASSIGN(Block block, store::decode_block(encoded.bytes));
  for (plan::Placement& placement : block.placements) {
    const plan::Redundancy before = placement.redundancy();
    if (!placement.remap(stores)) {
      return Status(Code::kCorrupt, "a recipe names a store that its record does not");
    }
    if (placement.redundancy() != before) {
      return Status(Code::kCorrupt, "a recipe names a store twice");
    }
  }
  return block;
}

}  // namespace dedup::service
