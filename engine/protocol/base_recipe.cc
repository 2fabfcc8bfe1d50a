#include "engine/protocol/base_recipe.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "service/base_block.h"

namespace dedup::engine {
namespace {

// ReadShard's limit: a block takes at most about 64 KiB of a reply.
constexpr std::size_t kBlocksAtOnce = service::kPayload / (std::size_t{64} << 10);
// Requests under way at the same time.
constexpr std::size_t kPartsAtOnce = 8;

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

Status BaseRecipe::take(Result<service::ReadShardReply> reply, const Part& part,
                        std::vector<BaseBlock>& out) const {
  DEDUP_TRY(reply.status());
  const auto are_asked_for = [](const store::EncodedBlock& block, std::uint64_t number) {
    return block.number == number;
  };
  if (!std::equal(reply->blocks.begin(), reply->blocks.end(), part.request.blocks.begin(),
                  part.request.blocks.end(), are_asked_for)) {
    return {Code::kCorrupt, "a node answered with other blocks"};
  }
  for (std::size_t i = 0; i < part.where.size(); ++i) {
    BaseBlock& to = out[part.where[i]];
    to.encoded = std::move(reply->blocks[i]);
    DEDUP_ASSIGN(to.block, service::open_base_block(to.encoded, *store_of_));
  }
  return {};
}

std::vector<BaseRecipe::Part> BaseRecipe::parts_of(std::span<const std::uint64_t> blocks) const {
  std::map<std::uint32_t, std::vector<std::size_t>> by_shard;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    by_shard[static_cast<std::uint32_t>(blocks[i] % record_->shards.size())].push_back(i);
  }
  std::vector<Part> parts;
  for (const auto& [shard, wanted] : by_shard) {
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (k % kBlocksAtOnce == 0) {
        parts.push_back(
            {{identity_, record_->attempt, shard, record_->shards[shard].digest, {}}, {}});
      }
      parts.back().request.blocks.push_back(blocks[wanted[k]]);
      parts.back().where.push_back(wanted[k]);
    }
  }
  return parts;
}

// The first node of each is asked at the same time as the others'.
Status BaseRecipe::fetch_parts(std::span<const Part> parts, std::vector<BaseBlock>& out) const {
  std::vector<std::vector<NodeIndex>> nodes;
  std::vector<std::optional<service::Client::Pending<service::ReadShard>>> pending(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    nodes.push_back(nodes_of(parts[p].request.shard));
    if (!nodes[p].empty()) pending[p] = client_->start(nodes[p].front(), parts[p].request);
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    Status why;
    bool is_here = false;
    for (std::size_t n = 0; n < nodes[p].size() && !is_here; ++n) {
      auto reply = n == 0 ? pending[p]->wait() : client_->call(nodes[p][n], part.request);
      const Status status = take(std::move(reply), part, out);
      is_here = status.is_ok();
      if (!is_here) why = weightier(why, status);
    }
    if (!is_here) return lost(part.request.shard, part.request.blocks.front(), why);
  }
  return {};
}

Result<std::vector<BaseRecipe::BaseBlock>> BaseRecipe::fetch(
    std::span<const std::uint64_t> blocks) const {
  std::vector<BaseBlock> out(blocks.size());
  const std::vector<Part> parts = parts_of(blocks);
  for (std::span<const Part> rest = parts; !rest.empty();) {
    const std::size_t now = std::min(rest.size(), kPartsAtOnce);
    DEDUP_TRY(fetch_parts(rest.first(now), out));
    rest = rest.subspan(now);
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
