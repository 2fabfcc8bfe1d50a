#include "engine/protocol/base_recipe.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "service/base_block.h"

namespace dedup::engine {
namespace {

// ReadShard's limit: a block takes at most about 64 KiB of a reply.
constexpr std::size_t kBlocksAtOnce = service::kPayload / (std::size_t{64} << 10);

// Whether a node that answers like that does not have the recipe, or has a bad copy of it.
bool is_gone(const Status& status) {
  const Code code = status.code();
  return status.is_ok() || code == Code::kNoSuchFile || code == Code::kNotFound ||
         code == Code::kCorrupt || code == Code::kIo;
}

// Of two nodes' answers the one that counts: that something is gone is known when all say so.
Status weightier(const Status& before, const Status& status) {
  return is_gone(before) ? status : before;
}

}  // namespace

std::string range_text(std::uint64_t offset, std::uint64_t length) {
  return "bytes " + std::to_string(offset) + " to " + std::to_string(offset + length - 1);
}

std::vector<NodeIndex> BaseRecipe::nodes_of(std::uint32_t shard) const {
  std::vector<NodeIndex> nodes;
  for (const NodeIndex position : record_->shards[shard].stores) {
    const NodeIndex node = (*store_of_)[position];
    if (node < client_->nodes()) nodes.push_back(node);
  }
  const auto own = std::find(nodes.begin(), nodes.end(), client_->self());
  if (own != nodes.end()) std::rotate(nodes.begin(), own, own + 1);
  return nodes;
}

Status BaseRecipe::lost(std::uint32_t shard, std::uint64_t block, const Status& why) const {
  std::string stores;
  for (const NodeIndex position : record_->shards[shard].stores) {
    const store::StoreEntry& entry = record_->stores[position];
    if (!stores.empty()) stores += ", ";
    stores += "store " + entry.uuid.hex() + " of node " + entry.node;
  }
  std::string text = record_->path + ", " + place_of(block) + ": the recipe of these bytes is on " +
                     stores + ", none of which can give it";
  if (!why.is_ok()) text += ": " + why.message();
  return {is_gone(why) ? Code::kIo : why.code(), text};
}

std::string BaseRecipe::place_of(std::uint64_t block) const {
  const std::uint64_t begin = block * kBlockSpan;
  const std::uint64_t size = record_->size;
  if (begin >= size) return "bytes from " + std::to_string(begin) + " on";
  return range_text(begin, std::min(kBlockSpan, size - begin));
}

Status BaseRecipe::read_from(NodeIndex node, const service::ReadShard& request,
                             std::span<const std::size_t> where,
                             std::vector<BaseBlock>& out) const {
  DEDUP_ASSIGN(service::ReadShardReply reply, client_->call(node, request));
  const auto are_asked_for = [](const store::EncodedBlock& block, std::uint64_t number) {
    return block.number == number;
  };
  if (!std::equal(reply.blocks.begin(), reply.blocks.end(), request.blocks.begin(),
                  request.blocks.end(), are_asked_for)) {
    return {Code::kCorrupt, "a node answered with other blocks"};
  }
  for (std::size_t i = 0; i < where.size(); ++i) {
    BaseBlock& to = out[where[i]];
    to.encoded = std::move(reply.blocks[i]);
    DEDUP_ASSIGN(to.block, service::open_base_block(to.encoded, *store_of_));
  }
  return {};
}

Status BaseRecipe::read_shard(std::uint32_t shard, std::span<const std::uint64_t> blocks,
                              std::span<const std::size_t> where,
                              std::vector<BaseBlock>& out) const {
  service::ReadShard request{identity_, record_->attempt, shard, record_->shards[shard].digest, {}};
  for (const std::size_t i : where) request.blocks.push_back(blocks[i]);
  Status why;
  for (const NodeIndex node : nodes_of(shard)) {
    const Status status = read_from(node, request, where, out);
    if (status.is_ok()) return status;
    why = weightier(why, status);
  }
  return lost(shard, request.blocks.front(), why);
}

Result<std::vector<BaseRecipe::BaseBlock>> BaseRecipe::fetch(
    std::span<const std::uint64_t> blocks) const {
  std::vector<BaseBlock> out(blocks.size());
  const std::size_t shards = record_->shards.size();
  std::map<std::uint32_t, std::vector<std::size_t>> by_shard;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    by_shard[static_cast<std::uint32_t>(blocks[i] % shards)].push_back(i);
  }
  for (const auto& [shard, wanted] : by_shard) {
    for (std::size_t at = 0; at < wanted.size(); at += kBlocksAtOnce) {
      const std::size_t count = std::min(kBlocksAtOnce, wanted.size() - at);
      DEDUP_TRY(read_shard(shard, blocks, std::span(wanted).subspan(at, count), out));
    }
  }
  return out;
}

Result<std::vector<Block>> BaseRecipe::read(std::span<const std::uint64_t> blocks) const {
  DEDUP_ASSIGN(std::vector<BaseBlock> fetched, fetch(blocks));
  std::vector<Block> out;
  for (BaseBlock& one : fetched) out.push_back(std::move(one.block));
  return out;
}

Result<std::vector<store::EncodedBlock>> BaseRecipe::read_encoded(
    std::span<const std::uint64_t> blocks) const {
  DEDUP_ASSIGN(std::vector<BaseBlock> fetched, fetch(blocks));
  std::vector<store::EncodedBlock> out;
  for (BaseBlock& one : fetched) out.push_back(std::move(one.encoded));
  return out;
}

Result<std::vector<std::uint64_t>> BaseRecipe::list(std::uint32_t shard) const {
  Status why;
  for (const NodeIndex node : nodes_of(shard)) {
    std::vector<std::uint64_t> blocks;
    std::uint64_t cursor = 0;
    Status status;
    for (;;) {
      auto reply = client_->call(node, service::ListShard{identity_, record_->attempt, shard,
                                                          record_->shards[shard].digest, cursor});
      status = reply.status();
      if (!status.is_ok()) break;
      blocks.insert(blocks.end(), reply->blocks.begin(), reply->blocks.end());
      if (reply->done || reply->blocks.empty()) return blocks;
      cursor = blocks.back() + 1;
    }
    why = weightier(why, status);
  }
  return lost(shard, shard, why);
}

}  // namespace dedup::engine
