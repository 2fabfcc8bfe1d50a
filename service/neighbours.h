// Chunks of other nodes of this host, read by this process itself: their services say where they
// are, and lend the segments; the bytes go from the kernel to where they are wanted, in one copy,
// and keep no service from others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/lru.h"
#include "base/types.h"
#include "service/client.h"
#include "store/chunk_reader.h"
#include "store/segment.h"

namespace dedup::service {

// Of one file. Thread-safe.
class Neighbours {
 public:
  // `client` must outlive it.
  Neighbours(Client& client, const Id128& identity) : client_(client), identity_(identity) {}

  bool has(NodeIndex node);
  // As ChunkReader::read(), of the store of a node that it has; `locate`: where they are there;
  // `ends`: where reads there have ended, or null. What it did not give the node's service may
  // still give.
  using Locate =
      std::function<std::optional<std::vector<store::ChunkLocation>>(std::span<const Fingerprint>)>;
  std::vector<std::size_t> read(NodeIndex node, std::span<const store::ChunkTarget> chunks,
                                const Locate& locate, store::StretchEnds* ends = nullptr);
  // The same; its service is asked where they are.
  std::vector<std::size_t> read(NodeIndex node, std::span<const store::ChunkTarget> chunks);
  // A commit may have removed segments: lets go of those that were lent. What may move down is
  // kept for one read() only (Store::segment).
  void forget();

 private:
  class Store;
  static constexpr std::size_t kMostLent = 64;
  // Null if it is not to be had.
  std::shared_ptr<const store::SegmentReader> segment(NodeIndex node, std::uint64_t number);

  Client& client_;
  Id128 identity_;
  std::mutex mutex_;
  std::set<NodeIndex> lends_nothing_;
  Lru<std::pair<NodeIndex, std::uint64_t>, std::shared_ptr<const store::SegmentReader>> lent_{
      kMostLent};
};

}  // namespace dedup::service
