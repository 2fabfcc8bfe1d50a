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
  OwnStore(service::Client& client, LocalFile& local, const Id128& identity)
      : client_(client), local_(local), identity_(identity) {}

 private:
  std::optional<std::vector<store::ChunkLocation>> locate(
      std::span<const Fingerprint> fingerprints) override {
    const service::Locate request{identity_, {fingerprints.begin(), fingerprints.end()}};
    const auto reply = client_.call(client_.self(), request);
    if (!reply.is_ok()) return std::nullopt;
    return reply->locations;
  }
  std::shared_ptr<const store::SegmentReader> segment(std::uint64_t number) override {
    const auto reader = local_.segment(number);
    return reader.is_ok() ? *reader : nullptr;
  }

  service::Client& client_;
  LocalFile& local_;
  const Id128& identity_;
};

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
  service::StripeDecoder decoder(*client_, identity_);
  for (const auto& [stripe, chunks] : by_unit) {
    std::vector<service::StripeDecoder::Target> targets;
    for (const std::size_t i : chunks) {
      targets.push_back({{wanted[i].fingerprint, wanted[i].length}, wanted[i].out});
    }
    for (const std::size_t k : decoder.make_chunks(stripe, targets)) left.push_back(chunks[k]);
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
  std::map<NodeIndex, std::span<const std::size_t>> rest;
  for (const auto& [node, which] : by_node) {
    asked.push_back(ask_service(node, wanted, rest[node] = which));
  }
  if (!own.empty()) try_own_store(wanted, own);
  left.insert(left.end(), own.begin(), own.end());
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

void ChunkSource::try_own_store(std::span<const WantedChunk> wanted,
                                std::vector<std::size_t>& which) const {
  std::vector<store::ChunkTarget> targets;
  targets.reserve(which.size());
  for (const std::size_t i : which) {
    targets.push_back({wanted[i].fingerprint, {wanted[i].out, wanted[i].length}, wanted[i].seal});
  }
  std::vector<std::size_t> failed = OwnStore(*client_, *local_, identity_).read(targets);
  for (std::size_t& position : failed) position = which[position];
  which = std::move(failed);
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
