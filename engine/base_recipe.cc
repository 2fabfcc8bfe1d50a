#include "engine/base_recipe.h"

#include <algorithm>
#include <map>
#include <string>

#include "store/shard.h"

namespace dedup::engine {
namespace {

// ReadShard's limit: a block takes at most about 64 KiB of a reply.
constexpr std::size_t kBlocksAtOnce = service::kPayload / (std::size_t{64} << 10);

}  // namespace

std::string range_text(std::uint64_t offset, std::uint64_t length) {
  return "bytes " + std::to_string(offset) + " to " + std::to_string(offset + length - 1);
}

std::vector<NodeIndex> BaseRecipe::nodes_of(std::uint32_t shard) const {
  std::vector<NodeIndex> nodes;
  for (const NodeIndex position : view_->record.shards[shard].stores) {
    const NodeIndex node = view_->store_of[position];
    if (node < client_->nodes()) nodes.push_back(node);
  }
  const auto own = std::find(nodes.begin(), nodes.end(), client_->self());
  if (own != nodes.end()) std::rotate(nodes.begin(), own, own + 1);
  return nodes;
}

Status BaseRecipe::lost(std::uint32_t shard, std::uint64_t block, const Status& why) const {
  std::string stores;
  for (const NodeIndex position : view_->record.shards[shard].stores) {
    const store::StoreEntry& entry = view_->record.stores[position];
    if (!stores.empty()) stores += ", ";
    stores += "store " + entry.uuid.hex() + " of node " + entry.node;
  }
  std::string text = view_->record.path + ", " + range_text(block * kBlockSpan, kBlockSpan) +
                     ": the recipe of these bytes is on " + stores + ", none of which can give it";
  if (!why.is_ok()) text += ": " + why.message();
  return {why.code() == Code::kVersion ? Code::kVersion : Code::kIo, text};
}

Status BaseRecipe::read_shard(std::uint32_t shard, std::span<const std::uint64_t> blocks,
                              std::span<const std::size_t> where, std::vector<Block>& out) const {
  Status why;
  for (const NodeIndex node : nodes_of(shard)) {
    service::ReadShard request{view_->info.identity,
                               view_->record.attempt,
                               shard,
                               view_->record.shards[shard].digest,
                               {blocks.begin(), blocks.end()}};
    auto reply = client_->call(node, request);
    if (!reply.is_ok()) {
      why = reply.status();
      continue;
    }
    if (reply->blocks.size() != blocks.size()) {
      why = Status(Code::kCorrupt, "a node answered with another number of blocks");
      continue;
    }
    why = Status::ok();
    for (std::size_t i = 0; i < blocks.size() && why.is_ok(); ++i) {
      if (reply->blocks[i].empty()) {
        out[where[i]] = Block{};
        continue;
      }
      auto block = store::decode_block(reply->blocks[i]);
      if (!block.is_ok()) {
        why = block.status();
        break;
      }
      for (NodeSet& set : block->holder_sets) {
        for (NodeIndex& n : set) {
          if (n >= view_->store_of.size()) {
            why = Status(Code::kCorrupt, "a recipe names a store that its record does not");
            break;
          }
          n = view_->store_of[n];
        }
        std::sort(set.begin(), set.end());
      }
      out[where[i]] = std::move(*block);
    }
    if (why.is_ok()) return why;
  }
  return lost(shard, blocks.front(), why);
}

Result<std::vector<Block>> BaseRecipe::read(std::span<const std::uint64_t> blocks) const {
  std::vector<Block> out(blocks.size());
  const std::size_t shards = view_->record.shards.size();
  std::map<std::uint32_t, std::vector<std::size_t>> by_shard;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    by_shard[static_cast<std::uint32_t>(blocks[i] % shards)].push_back(i);
  }
  for (const auto& [shard, wanted] : by_shard) {
    for (std::size_t at = 0; at < wanted.size(); at += kBlocksAtOnce) {
      const std::size_t count = std::min(kBlocksAtOnce, wanted.size() - at);
      std::vector<std::uint64_t> numbers;
      for (std::size_t i = 0; i < count; ++i) numbers.push_back(blocks[wanted[at + i]]);
      DEDUP_TRY(read_shard(shard, numbers, std::span(wanted).subspan(at, count), out));
    }
  }
  return out;
}

Result<std::vector<std::uint64_t>> BaseRecipe::list(std::uint32_t shard) const {
  Status why;
  for (const NodeIndex node : nodes_of(shard)) {
    std::vector<std::uint64_t> blocks;
    std::uint64_t cursor = 0;
    for (;;) {
      auto reply =
          client_->call(node, service::ListShard{view_->info.identity, view_->record.attempt, shard,
                                                 view_->record.shards[shard].digest, cursor});
      why = reply.status();
      if (!why.is_ok()) break;
      blocks.insert(blocks.end(), reply->blocks.begin(), reply->blocks.end());
      if (reply->done || reply->blocks.empty()) return blocks;
      cursor = blocks.back() + 1;
    }
  }
  return lost(shard, shard, why);
}

}  // namespace dedup::engine
