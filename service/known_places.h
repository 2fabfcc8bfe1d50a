// Where chunks of a generation are on nodes that were asked. As long as nobody can write to the
// file it stays so; and if it did not, what stands there would not be taken for the chunk.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/piece.h"
#include "base/types.h"
#include "plan/block.h"
#include "service/client.h"
#include "store/chunk_reader.h"
#include "store/segment.h"

namespace dedup::service {

// Of one file. At most about 2 MiB. Thread-safe.
class KnownPlaces {
 public:
  // What the recipe says of where somebody reads: of it more is likely to be wanted soon.
  using Around = std::span<const std::shared_ptr<const Block>>;

  // As Locate at `node`, which is asked for nothing, or for what is not known and for the first
  // chunks of stretches (store/chunk_reader.h) in `around` with it. Nothing if it does not answer.
  std::optional<std::vector<store::ChunkLocation>> locate(Client& client, const Id128& identity,
                                                          NodeIndex node,
                                                          std::span<const Fingerprint> wanted,
                                                          Around around);
  // Where reads at `node` have ended.
  std::shared_ptr<store::StretchEnds> ends(NodeIndex node);
  void clear();

 private:
  using OfNode = std::unordered_map<Fingerprint, store::ChunkLocation>;
  static constexpr std::size_t kMost = 16384;

  // False if there is one that is not known.
  bool find(NodeIndex node, std::span<const Fingerprint> wanted,
            std::vector<store::ChunkLocation>& out) const;
  void add_unknown(NodeIndex node, Around around, std::vector<Fingerprint>& names) const;

  mutable std::mutex mutex_;
  std::unordered_map<NodeIndex, OfNode> known_;
  std::unordered_map<NodeIndex, std::shared_ptr<store::StretchEnds>> ends_;
  std::size_t count_ = 0;
};

// Where chunks are on a node, as its service says; nothing if it does not answer.
std::optional<std::vector<store::ChunkLocation>> locate_at(Client& client, const Id128& identity,
                                                           NodeIndex node,
                                                           std::span<const Fingerprint> wanted);

}  // namespace dedup::service
