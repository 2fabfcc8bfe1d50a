#include "service/base_block.h"

#include <algorithm>

namespace dedup::service {

Result<Block> open_base_block(const store::EncodedBlock& encoded,
                              std::span<const NodeIndex> stores) {
  if (!store::holds(encoded)) {
    return Status(Code::kCorrupt, "a recipe's block was damaged after it was read from its shard");
  }
  if (encoded.bytes.empty()) return Block{};
  DEDUP_ASSIGN(Block block, store::decode_block(encoded.bytes));
  for (NodeSet& set : block.holder_sets) {
    for (NodeIndex& node : set) {
      if (node >= stores.size()) {
        return Status(Code::kCorrupt, "a recipe names a store that its record does not");
      }
      node = stores[node];
    }
    std::sort(set.begin(), set.end());
    if (std::adjacent_find(set.begin(), set.end()) != set.end()) {
      return Status(Code::kCorrupt, "a recipe names a store twice");
    }
  }
  return block;
}

}  // namespace dedup::service
