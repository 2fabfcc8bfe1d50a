#include "engine/protocol/restores.h"

#include <utility>

#include "engine/protocol/failpoint.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kBytesAtOnce = std::size_t{1} << 20;  // of chunks in one request
constexpr std::size_t kUnderWay = 64;                       // requests

std::uint32_t number_of(const plan::Placement& placement,
                        std::map<plan::Placement, std::uint32_t>& numbers,
                        std::vector<plan::Placement>& placements) {
  const auto [entry, is_new] =
      numbers.emplace(placement, static_cast<std::uint32_t>(placements.size()));
  if (is_new) placements.push_back(placement);
  return entry->second;
}

}  // namespace

Restores::~Restores() {
  for (Sent& sent : sent_) (void)sent.pending.wait();
}

Result<std::shared_ptr<const Restores::Chunk>> Restores::begin(const Fingerprint& fingerprint,
                                                               std::uint32_t length,
                                                               const plan::Placement& sources,
                                                               const plan::Placement& after,
                                                               std::span<const NodeIndex> targets) {
  const auto chunk = std::make_shared<Chunk>();
  chunk->fingerprint = fingerprint;
  chunk->targets = chunk->waiting = static_cast<std::uint32_t>(targets.size());
  for (const NodeIndex node : targets) {
    Batch& batch = batches_[node];
    service::Restore& request = batch.request;
    const auto [entry, is_new] =
        batch.positions.emplace(fingerprint, static_cast<std::uint32_t>(request.chunks.size()));
    if (is_new) {
      request.chunks.push_back({fingerprint, length,
                                number_of(sources, batch.sources, request.sources),
                                number_of(after, batch.placements, request.placements)});
      batch.waiting.emplace_back();
      batch.bytes += length;
    }
    batch.waiting[entry->second].push_back(chunk);
    if (batch.bytes >= kBytesAtOnce) {
      DEDUP_TRY(send(node, std::move(batches_.extract(node).mapped())));
    }
  }
  return std::shared_ptr<const Chunk>(chunk);
}

std::shared_ptr<const Restores::Chunk> Restores::lost(const Fingerprint& fingerprint) {
  return std::make_shared<const Chunk>(Chunk{fingerprint, 1, 0, 1});
}

Status Restores::send(NodeIndex node, Batch batch) {
  while (sent_.size() >= kUnderWay) DEDUP_TRY(take_first());
  batch.request.identity = file_.identity();
  // Who heals has time; an application that commits waits.
  batch.request.in_background = file_.on_loss != OnLoss::kGoOn;
  batch.request.bytes_per_second = file_.hints.heal_rate;
  sent_.push_back({node, std::move(batch.waiting), file_.client().start(node, batch.request)});
  failpoint("commit.restoring");
  return Status::ok();
}

Status Restores::take_first() {
  Sent first = std::move(sent_.front());
  sent_.pop_front();
  DEDUP_ASSIGN(const service::RestoreReply reply, first.pending.wait());
  if (reply.lost.size() != first.waiting.size()) {
    return {Code::kInternal, "node " + file_.client().node_name(first.node) +
                                 " answered for other chunks than it was to restore"};
  }
  copies_made_ += reply.stored;
  for (std::size_t i = 0; i < first.waiting.size(); ++i) {
    for (const std::shared_ptr<Chunk>& chunk : first.waiting[i]) {
      --chunk->waiting;
      chunk->lost += reply.lost[i];
    }
  }
  return Status::ok();
}

Status Restores::finish(const Chunk& chunk) {
  if (chunk.is_done()) return Status::ok();
  for (auto& [node, batch] : std::exchange(batches_, {})) {
    DEDUP_TRY(send(node, std::move(batch)));
  }
  while (!chunk.is_done()) {
    if (sent_.empty()) return {Code::kInternal, "a chunk that nobody was asked to restore"};
    DEDUP_TRY(take_first());
  }
  return Status::ok();
}

}  // namespace dedup::engine
