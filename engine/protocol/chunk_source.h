// Getting chunks from the nodes that hold them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/file_view.h"
#include "engine/protocol/local_file.h"
#include "plan/placement.h"
#include "service/client.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

// A chunk that is wanted, and where its bytes go.
struct WantedChunk {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  const plan::Placement* placement = nullptr;  // in terms of FileInfo::stores
  std::byte* out = nullptr;                    // `length` bytes
  store::ChunkSeal* seal = nullptr;            // as what it was read from has it, if it is wanted
};

// Reads chunks: from this node's store directly, and from those of other nodes of this host; from
// others through their services. If the nodes
// that should have a chunk do not, every other node of the job is asked. Every chunk is checked by
// its checksum where it is read.
class ChunkSource {
 public:
  ChunkSource(service::Client& client, LocalFile& local, const Id128& identity)
      : client_(&client), local_(&local), neighbours_(&local.neighbours()), identity_(identity) {}
  // For a process that is on no node of the job. `neighbours` must outlive it.
  ChunkSource(service::Client& client, service::Neighbours& neighbours, const Id128& identity)
      : client_(&client), neighbours_(&neighbours), identity_(identity) {}
  // Of a file that is settled: places that are known, or follow from what was read before, are not
  // asked for. `around` must outlive it.
  ChunkSource(service::Client& client, LocalFile& local, const Id128& identity,
              service::KnownPlaces::Around around)
      : client_(&client),
        local_(&local),
        neighbours_(&local.neighbours()),
        identity_(identity),
        around_(around) {}

  // Fills in every chunk that can be had. Returns the positions in `wanted` of those that cannot.
  std::vector<std::size_t> fetch(std::span<const WantedChunk> wanted) const;

  // Positions in `wanted`.
  using ByNode = std::map<NodeIndex, std::vector<std::size_t>>;
  // Tries all these at their nodes, at the same time; returns those that they did not give. Where
  // they should be does not matter.
  std::vector<std::size_t> try_nodes(std::span<const WantedChunk> wanted, ByNode by_node) const;

 private:
  // A request to a node's service, under way.
  struct Asked {
    NodeIndex node = kNoNode;
    std::span<const std::size_t> which;
    std::vector<NamedChunk> chunks;
    service::Client::Pending<service::GetChunks> pending;
  };

  // Those that cannot be made from the rest of their stripes; `which` ascends.
  std::vector<std::size_t> make_from_stripes(std::span<const WantedChunk> wanted,
                                             std::vector<std::size_t> which) const;
  // As many of `which` as are asked for at once; they are taken from its front.
  Asked ask_service(NodeIndex node, std::span<const WantedChunk> wanted,
                    std::span<const std::size_t>& which) const;
  static void take_answer(std::span<const WantedChunk> wanted, const Asked& asked,
                          const Result<service::ChunksReply>& reply,
                          std::vector<std::size_t>& left);

  // Where chunks are on a node of which this process reads the store itself.
  std::optional<std::vector<store::ChunkLocation>> locate(
      NodeIndex node, std::span<const Fingerprint> fingerprints) const;
  // Where reads there have ended; null if that is not kept.
  std::shared_ptr<store::StretchEnds> ends_at(NodeIndex node) const;

  service::Client* client_;
  LocalFile* local_ = nullptr;  // of this process's node, if it is on one
  service::Neighbours* neighbours_;
  Id128 identity_;
  std::optional<service::KnownPlaces::Around> around_;  // if the file is settled
};

}  // namespace dedup::engine
