#include "engine/chunk_source.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace dedup::engine {
namespace {

// Bytes of chunks in one request: what fits into the processors' caches while it is passed on, and
// does not keep a service from others for long.
constexpr std::size_t kAskAtOnce = std::size_t{512} << 10;

// In which order to ask the holders of a chunk: one's own node first, then from a position that
// differs from chunk to chunk and from node to node, so that readers spread over the copies.
NodeIndex nth_choice(const WantedChunk& chunk, NodeIndex self, NodeIndex nodes, std::size_t n,
                     bool& none_left) {
  none_left = false;
  if (n == 0 && std::binary_search(chunk.holders->begin(), chunk.holders->end(), self)) return self;
  NodeSet live;
  for (const NodeIndex node : *chunk.holders) {
    if (node < nodes) live.push_back(node);
  }
  none_left = n >= live.size();
  if (none_left) return kNoNode;
  const auto own = std::find(live.begin(), live.end(), self);
  if (own != live.end()) {
    std::rotate(live.begin(), own, own + 1);
    std::rotate(
        live.begin() + 1,
        live.begin() + 1 +
            static_cast<std::ptrdiff_t>((chunk.fingerprint.prefix() + self) % (live.size() - 1)),
        live.end());
    return live[n];
  }
  return live[(chunk.fingerprint.prefix() + self + n) % live.size()];
}

}  // namespace

std::vector<std::size_t> ChunkSource::fetch(std::span<const WantedChunk> wanted) const {
  std::vector<std::size_t> left(wanted.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  for (std::size_t attempt = 0; !left.empty(); ++attempt) {
    ByNode by_node;
    std::vector<std::size_t> exhausted;
    for (const std::size_t i : left) {
      bool none_left;
      const NodeIndex node =
          nth_choice(wanted[i], client_->self(), client_->nodes(), attempt, none_left);
      (none_left ? exhausted : by_node[node]).push_back(i);
    }
    if (by_node.empty()) break;
    left = try_nodes(wanted, std::move(by_node));
    left.insert(left.end(), exhausted.begin(), exhausted.end());
  }
  for (NodeIndex node = 0; node < client_->nodes() && !left.empty(); ++node) {
    left = try_nodes(wanted, {{node, std::move(left)}});
  }
  std::sort(left.begin(), left.end());
  return left;
}

std::vector<std::size_t> ChunkSource::try_nodes(std::span<const WantedChunk> wanted,
                                                ByNode by_node) const {
  std::vector<std::size_t> left;
  std::vector<std::size_t> own;
  if (const auto self = by_node.extract(client_->self())) own = std::move(self.mapped());
  // All nodes read at the same time, each for one request of this rank.
  std::deque<Asked> asked;
  for (auto& [node, which] : by_node) asked.push_back(ask_service(node, wanted, which));
  if (!own.empty()) try_own_store(wanted, own);
  left.insert(left.end(), own.begin(), own.end());
  for (; !asked.empty(); asked.pop_front()) {
    Asked& one = asked.front();
    const auto reply = one.pending.wait();
    if (std::vector<std::size_t>& rest = by_node[one.node]; !rest.empty()) {
      asked.push_back(ask_service(one.node, wanted, rest));
    }
    take_answer(wanted, one.which, reply, left);
  }
  return left;
}

void ChunkSource::try_own_store(std::span<const WantedChunk> wanted,
                                std::vector<std::size_t>& which) const {
  service::Locate request{identity_, {}};
  for (const std::size_t i : which) request.fingerprints.push_back(wanted[i].fingerprint);
  const auto reply = client_->call(client_->self(), request);
  if (!reply.is_ok() || reply->locations.size() != which.size()) return;

  struct Found {
    store::ChunkLocation location;
    std::size_t index;
  };
  std::vector<Found> found;
  std::vector<std::size_t> failed;
  for (std::size_t k = 0; k < which.size(); ++k) {
    const store::ChunkLocation& location = reply->locations[k];
    if (location.length == wanted[which[k]].length && location.length != 0) {
      found.push_back({location, which[k]});
    } else {
      failed.push_back(which[k]);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.location < b.location; });
  for (std::size_t begin = 0; begin < found.size();) {
    std::size_t end = begin;
    std::vector<store::ChunkLocation> locations;
    std::vector<Fingerprint> fingerprints;
    std::vector<std::span<std::byte>> outs;
    while (end < found.size() && found[end].location.segment == found[begin].location.segment) {
      const WantedChunk& chunk = wanted[found[end].index];
      locations.push_back(found[end].location);
      fingerprints.push_back(chunk.fingerprint);
      outs.emplace_back(chunk.out, chunk.length);
      ++end;
    }
    const std::uint64_t segment = found[begin].location.segment;
    if (!local_->read_chunks(segment, locations, fingerprints, outs).is_ok()) {
      // One by one, so that a damaged chunk costs that chunk only.
      for (std::size_t k = 0; k < locations.size(); ++k) {
        const Status one = local_->read_chunks(segment, std::span(locations).subspan(k, 1),
                                               std::span(fingerprints).subspan(k, 1),
                                               std::span(outs).subspan(k, 1));
        if (!one.is_ok()) failed.push_back(found[begin + k].index);
      }
    }
    begin = end;
  }
  which = std::move(failed);
}

ChunkSource::Asked ChunkSource::ask_service(NodeIndex node, std::span<const WantedChunk> wanted,
                                            std::vector<std::size_t>& which) const {
  service::GetChunks request{identity_, {}};
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < which.size() &&
         (count == 0 || bytes + wanted[which[count]].length <= kAskAtOnce)) {
    request.fingerprints.push_back(wanted[which[count]].fingerprint);
    bytes += wanted[which[count]].length;
    ++count;
  }
  const auto end = which.begin() + static_cast<std::ptrdiff_t>(count);
  Asked asked{node, {which.begin(), end}, client_->start(node, request)};
  which.erase(which.begin(), end);
  return asked;
}

void ChunkSource::take_answer(std::span<const WantedChunk> wanted,
                              const std::vector<std::size_t>& which,
                              const Result<service::ChunksReply>& reply,
                              std::vector<std::size_t>& left) {
  const bool usable = reply.is_ok() && reply->chunks.size() == which.size();
  for (std::size_t k = 0; k < which.size(); ++k) {
    const WantedChunk& chunk = wanted[which[k]];
    if (usable && reply->chunks[k].size() == chunk.length) {
      std::memcpy(chunk.out, reply->chunks[k].data(), chunk.length);
    } else {
      left.push_back(which[k]);
    }
  }
}

}  // namespace dedup::engine
