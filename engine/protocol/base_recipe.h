// Reading a committed generation's recipe: blocks of its shards, from whichever node has them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/protocol/file_view.h"
#include "plan/block.h"
#include "service/client.h"
#include "service/messages/store_node.h"
#include "store/shard.h"

namespace dedup::engine {

// Cheap to make; holds references only.
class BaseRecipe {
 public:
  // Of the open file `identity`: its base, or the donor that it shares with.
  BaseRecipe(service::Client& client, const Id128& identity, const CommittedGeneration& generation)
      : client_(&client),
        identity_(identity),
        record_(&generation.record),
        store_of_(&generation.store_of) {}

  // A block, and as its shard has it.
  struct BaseBlock {
    store::EncodedBlock encoded;
    Block block;
  };
  // Blocks by number, any order; a block that was never written is empty. Placements are in terms
  // of FileInfo::stores. kIo, naming file, byte range and stores, if no node has a good copy of a
  // block; another code if a node that may have one cannot be asked.
  Result<std::vector<BaseBlock>> fetch(std::span<const std::uint64_t> blocks) const;
  // The same, of each one thing alone. What is encoded was checked like the others.
  Result<std::vector<Block>> read(std::span<const std::uint64_t> blocks) const;
  Result<std::vector<store::EncodedBlock>> read_encoded(
      std::span<const std::uint64_t> blocks) const;

  // Numbers of the blocks that shard `shard` of the record has, ascending.
  Result<std::vector<std::uint64_t>> list(std::uint32_t shard) const;

 private:
  // What is asked for at once: blocks of one shard, and at which positions they are wanted.
  struct Part {
    service::ReadShard request;
    std::vector<std::size_t> where;
  };
  std::vector<Part> parts_of(std::span<const std::uint64_t> blocks) const;
  Status fetch_parts(std::span<const Part> parts, std::vector<BaseBlock>& out) const;
  // What one node gives; kCorrupt if it is not what was asked for.
  Status take(Result<service::ReadShardReply> reply, const Part& part,
              std::vector<BaseBlock>& out) const;
  // Nodes of this job that have the shard, this process's own first.
  std::vector<NodeIndex> nodes_of(std::uint32_t shard) const;
  Status lost(std::uint32_t shard, std::uint64_t block, const Status& why) const;
  // "bytes 0 to 4194303": of a block, as far as the file has it.
  std::string place_of(std::uint64_t block) const;

  service::Client* client_;
  Id128 identity_;
  const store::CommitRecord* record_;
  const std::vector<NodeIndex>* store_of_;
};

// "bytes 4096 to 8191".
std::string range_text(std::uint64_t offset, std::uint64_t length);

}  // namespace dedup::engine
