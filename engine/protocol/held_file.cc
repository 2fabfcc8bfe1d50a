#include "engine/protocol/held_file.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/protocol/base_recipe.h"
#include "engine/protocol/chunk_source.h"
#include "service/messages/store_node.h"
#include "store/shard.h"

namespace dedup::engine {
namespace {

// Nodes of the job by their names, then numbers of its own for each store that no node of it has.
std::vector<NodeIndex> numbers_of(const service::Client& client,
                                  const std::vector<store::StoreEntry>& stores) {
  std::unordered_map<std::string, NodeIndex> by_name;
  for (NodeIndex node = 0; node < client.nodes(); ++node) by_name[client.node_name(node)] = node;
  std::vector<NodeIndex> numbers;
  NodeIndex next = client.nodes();
  for (const store::StoreEntry& entry : stores) {
    const auto found = by_name.find(entry.node);
    if (found == by_name.end()) {
      numbers.push_back(next++);
    } else {
      numbers.push_back(found->second);
      by_name.erase(found);
    }
  }
  return numbers;
}

}  // namespace

HeldFile::HeldFile(std::shared_ptr<service::Client> client, store::CommitRecord record,
                   std::vector<std::string> store_templates)
    : client_(std::move(client)),
      store_templates_(std::move(store_templates)),
      ticket_(Id128::random()),
      neighbours_(*client_, ticket_),
      generation_{std::move(record), {}} {
  generation_.store_of = numbers_of(*client_, generation_.record.stores);
}

HeldFile::~HeldFile() {
  std::vector<service::Client::Pending<service::LetGo>> pending;
  for (const NodeIndex node : asked_) {
    pending.push_back(client_->start(node, service::LetGo{ticket_}));
  }
  // Who is gone holds nothing any more.
  for (auto& one : pending) (void)one.wait();
}

void HeldFile::hold_at(const NodeSet& stores) {
  std::vector<service::Client::Pending<service::HoldGeneration>> pending;
  for (const NodeIndex position : stores) {
    const NodeIndex node = generation_.store_of[position];
    if (node >= client_->nodes() || !asked_.insert(node).second) continue;
    const store::CommitRecord& record = generation_.record;
    pending.push_back(client_->start(
        node, service::HoldGeneration{ticket_, record.identity, record.attempt,
                                      record.stores[position].uuid, store_templates_}));
  }
  // A node that does not have it answers what is asked of it with an error.
  for (auto& one : pending) (void)one.wait();
}

Result<Block> HeldFile::block(std::uint64_t number) {
  const auto& shards = generation_.record.shards;
  hold_at(shards[number % shards.size()].stores);
  const BaseRecipe recipe(*client_, ticket_, generation_);
  DEDUP_ASSIGN(const auto read, recipe.read_encoded({&number, 1}));
  if (read.front().bytes.empty()) return Block{};
  return store::decode_block(read.front().bytes);
}

std::vector<Bytes> HeldFile::read(std::span<const Wanted> wanted) {
  std::vector<Bytes> chunks;
  std::vector<plan::Placement> placements;
  chunks.reserve(wanted.size());
  placements.reserve(wanted.size());
  NodeSet involved;
  for (const Wanted& one : wanted) {
    chunks.emplace_back(one.chunk.length);
    plan::Placement& placement = placements.emplace_back(*one.placement);
    if (placement.remap(generation_.store_of)) {
      const NodeSet stores = one.placement->all_nodes();
      involved.insert(involved.end(), stores.begin(), stores.end());
    } else {
      placement.clear();  // it names stores that this file does not have
    }
  }
  std::ranges::sort(involved);
  involved.erase(std::unique(involved.begin(), involved.end()), involved.end());
  hold_at(involved);
  std::vector<WantedChunk> of_nodes;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const NamedChunk& chunk = wanted[i].chunk;
    of_nodes.push_back(
        {chunk.fingerprint, chunk.length, &placements[i], chunks[i].data(), nullptr});
  }
  const std::vector<std::size_t> lost = ChunkSource(*client_, neighbours_, ticket_).fetch(of_nodes);
  for (const std::size_t i : lost) chunks[i].clear();
  return chunks;
}

}  // namespace dedup::engine
