#include "engine/protocol/chunk_source.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "service/stripe_decoder.h"
#include "store/chunk_reader.h"

namespace dedup::engine {
namespace {

// Bytes of chunks in one request: what fits into the processors' caches while it is passed on, and
// does not keep a service from others for long.
constexpr std::size_t kAskAtOnce = std::size_t{512} << 10;

// What is wanted one after the other mostly stands one after the other, on each node that has it:
// so many chunks of it are asked for at the same one.
constexpr std::size_t kTogether = 128;

// This node's store, read by this process itself.
class OwnStore : public store::ChunkReader {
 public:
  OwnStore(LocalFile& local, const service::Neighbours::Locate& locate, store::StretchEnds* ends)
      : ChunkReader(ends), local_(local), locate_(locate) {}

 private:
  std::optional<std::vector<store::ChunkLocation>> locate(
      std::span<const Fingerprint> fingerprints) override {
    return locate_(fingerprints);
  }
  std::shared_ptr<const store::SegmentReader> segment(std::uint64_t number) override {
    const auto reader = local_.segment(number);
    return reader.is_ok() ? *reader : nullptr;
  }

  LocalFile& local_;
  const service::Neighbours::Locate& locate_;
};

// `read` reads chunks of one store and returns the positions of those that it does not have. These
// are left in `which`.
template <typename Read>
void read_directly(std::span<const WantedChunk> wanted, std::vector<std::size_t>& which,
                   const Read& read) {
  if (which.empty()) return;
  std::vector<store::ChunkTarget> targets;
  targets.reserve(which.size());
  for (const std::size_t i : which) {
    targets.push_back({wanted[i].fingerprint, {wanted[i].out, wanted[i].length}, wanted[i].seal});
  }
  std::vector<std::size_t> failed = read(targets);
  for (std::size_t& position : failed) position = which[position];
  which = std::move(failed);
}

}  // namespace

std::vector<std::size_t> ChunkSource::fetch(std::span<const WantedChunk> wanted) const {
  std::vector<std::size_t> left(wanted.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  std::vector<NodeIndex> sources;
  for (std::size_t attempt = 0; !left.empty(); ++attempt) {
    ByNode by_node;
    std::vector<std::size_t> exhausted;
    for (const std::size_t i : left) {
      const std::uint64_t together = wanted[i - i % kTogether].fingerprint.prefix();
      wanted[i].placement->sources(client_->live(), client_->self(), together, sources);
      (attempt < sources.size() ? by_node[sources[attempt]] : exhausted).push_back(i);
    }
    if (by_node.empty()) break;
    left = try_nodes(wanted, std::move(by_node));
    left.insert(left.end(), exhausted.begin(), exhausted.end());
    std::sort(left.begin(), left.end());
  }
  if (!left.empty()) left = make_from_stripes(wanted, std::move(left));
  for (NodeIndex node = 0; node < client_->nodes() && !left.empty(); ++node) {
    left = try_nodes(wanted, {{node, std::move(left)}});
  }
  std::sort(left.begin(), left.end());
  return left;
}

std::vector<std::size_t> ChunkSource::make_from_stripes(std::span<const WantedChunk> wanted,
                                                        std::vector<std::size_t> which) const {
  std::vector<std::size_t> left;
  std::map<plan::StripeUnit, std::vector<std::size_t>> by_unit;
  for (const std::size_t i : which) {
    const plan::StripeUnit* const stripe = wanted[i].placement->stripe();
    (stripe == nullptr ? left : by_unit[*stripe]).push_back(i);
  }
  std::vector<service::StripeDecoder::LostUnit> units;
  for (const auto& [stripe, chunks] : by_unit) {
    service::StripeDecoder::LostUnit& unit =
        units.emplace_back(service::StripeDecoder::LostUnit{stripe, {}});
    for (const std::size_t i : chunks) {
      unit.targets.push_back({{wanted[i].fingerprint, wanted[i].length}, wanted[i].out});
    }
  }
  service::StripeDecoder decoder(*client_, identity_, neighbours_);
  const std::vector<std::vector<std::size_t>> failed = decoder.make_chunks(units);
  auto of_unit = failed.begin();
  for (const auto& [stripe, chunks] : by_unit) {
    for (const std::size_t k : *of_unit++) left.push_back(chunks[k]);
  }
  std::sort(left.begin(), left.end());
  return left;
}

std::vector<std::size_t> ChunkSource::try_nodes(std::span<const WantedChunk> wanted,
                                                ByNode by_node) const {
  std::vector<std::size_t> left;
  std::vector<std::size_t> own;
  if (local_ != nullptr) {
    if (const auto self = by_node.extract(client_->self())) own = std::move(self.mapped());
  }
  // All nodes read at the same time, each for one request of this rank. Of those on this host only
  // what it could not read itself is asked for.
  std::deque<Asked> asked;
  std::map<NodeIndex, std::span<const std::size_t>> rest;
  const auto ask = [&](NodeIndex node, std::span<const std::size_t> which) {
    if (!which.empty()) asked.push_back(ask_service(node, wanted, rest[node] = which));
  };
  std::vector<ByNode::iterator> near;
  for (auto it = by_node.begin(); it != by_node.end(); ++it) {
    if (neighbours_->has(it->first)) {
      near.push_back(it);
    } else {
      ask(it->first, it->second);
    }
  }
  const auto places_at = [this](NodeIndex node) {
    return [this, node](std::span<const Fingerprint> names) { return locate(node, names); };
  };
  read_directly(wanted, own, [&](std::span<const store::ChunkTarget> targets) {
    const service::Neighbours::Locate locate = places_at(client_->self());
    return OwnStore(*local_, locate, ends_at(client_->self()).get()).read(targets);
  });
  left.insert(left.end(), own.begin(), own.end());
  for (const auto it : near) {
    read_directly(wanted, it->second, [&](std::span<const store::ChunkTarget> targets) {
      return neighbours_->read(it->first, targets, places_at(it->first), ends_at(it->first).get());
    });
    ask(it->first, it->second);
  }
  for (; !asked.empty(); asked.pop_front()) {
    Asked& one = asked.front();
    const auto reply = one.pending.wait();
    if (!rest[one.node].empty()) {
      asked.push_back(ask_service(one.node, wanted, rest[one.node]));
    }
    take_answer(wanted, one, reply, left);
  }
  return left;
}

std::optional<std::vector<store::ChunkLocation>> ChunkSource::locate(
    NodeIndex node, std::span<const Fingerprint> fingerprints) const {
  if (!around_) return service::locate_at(*client_, identity_, node, fingerprints);
  return local_->settled().places().locate(*client_, identity_, node, fingerprints, *around_);
}

std::shared_ptr<store::StretchEnds> ChunkSource::ends_at(NodeIndex node) const {
  return around_ ? local_->settled().places().ends(node) : nullptr;
}

ChunkSource::Asked ChunkSource::ask_service(NodeIndex node, std::span<const WantedChunk> wanted,
                                            std::span<const std::size_t>& which) const {
  service::GetChunks request{identity_, {}};
  std::size_t bytes = 0;
  for (const std::size_t i : which) {
    bytes += wanted[i].length;
    if (!request.chunks.empty() && bytes > kAskAtOnce) break;
    request.chunks.push_back({wanted[i].fingerprint, wanted[i].length});
  }
  const auto now = which.first(request.chunks.size());
  which = which.subspan(now.size());
  auto pending = client_->start(node, request);
  return {node, now, std::move(request.chunks), std::move(pending)};
}

void ChunkSource::take_answer(std::span<const WantedChunk> wanted, const Asked& asked,
                              const Result<service::ChunksReply>& reply,
                              std::vector<std::size_t>& left) {
  std::vector<std::span<const std::byte>> chunks;
  std::vector<store::ChunkSeal> seals;
  if (reply.is_ok()) chunks = reply->chunks(asked.chunks);
  if (!chunks.empty()) seals = reply->seals(asked.chunks);
  for (std::size_t k = 0; k < asked.which.size(); ++k) {
    const WantedChunk& chunk = wanted[asked.which[k]];
    const bool here = k < chunks.size() && chunks[k].size() == chunk.length;
    if (here) std::memcpy(chunk.out, chunks[k].data(), chunk.length);
    if (here && chunk.seal != nullptr) *chunk.seal = seals[k];
    // By what it was stored with, and where it is delivered: whatever it went through.
    if (!here || !store::holds(seals[k], {chunk.fingerprint, {chunk.out, chunk.length}})) {
      left.push_back(asked.which[k]);
    }
  }
}

}  // namespace dedup::engine
