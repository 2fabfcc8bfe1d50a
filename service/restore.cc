#include "service/restore.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/fields.h"
#include "store/segment.h"

namespace dedup::service {
namespace {

constexpr std::size_t kAskAtOnce = std::size_t{512} << 10;  // bytes of chunks in one request
constexpr std::size_t kNodesAtOnce = 16;

// What is wanted one after the other mostly stands one after the other, on each node that has it:
// so many chunks of it are asked for at the same one.
constexpr std::uint32_t kTogether = 128;

}  // namespace

struct RestoreTask::Asked {
  NodeIndex node;
  std::vector<std::uint32_t> which;
  std::vector<NamedChunk> chunks;
  Client::Pending<GetChunks> pending;
};

RestoreTask::RestoreTask(Restore request, NodeIndex self, StoreNode& node,
                         std::unique_ptr<Responder> responder)
    : request_(std::move(request)),
      self_(self),
      node_(node),
      responder_(std::move(responder)),
      tried_(request_.chunks.size()) {
  reply_.lost.resize(request_.chunks.size());
}

RestoreTask::~RestoreTask() = default;

// In the order in which they are asked: those that should have it, from one on that differs from
// stretch to stretch and from node to node, so that all are busy; then all others.
NodeIndex RestoreTask::nth_source(std::uint32_t i, std::uint32_t n, const Client& services) {
  const plan::Placement& placement = request_.sources[request_.chunks[i].sources];
  const std::uint64_t together = request_.chunks[i - i % kTogether].fingerprint.prefix();
  placement.sources(services.live(), self_, together, sources_);
  std::erase(sources_, self_);
  if (n < sources_.size()) return sources_[n];
  std::size_t skip = n - sources_.size();
  for (const NodeIndex node : services.live().list()) {
    if (node == self_ || placement.is_on(node)) continue;
    if (skip-- == 0) return node;
  }
  return kNoNode;
}

void RestoreTask::ask_next(std::uint32_t i, const Client& services) {
  const NodeIndex node = nth_source(i, tried_[i]++, services);
  if (node == kNoNode) {
    reply_.lost[i] = 1;
  } else {
    to_ask_[node].push_back(i);
  }
}

// Some may have come in the meantime: by another shard's builder, or before a stop.
Status RestoreTask::find_lacking(Executor::Beside& beside) {
  DEDUP_ASSIGN(Client* const services, beside.services());
  Locate locate{request_.identity, {}};
  for (const RestoreChunk& chunk : request_.chunks)
    locate.fingerprints.push_back(chunk.fingerprint);
  Result<LocateReply> located = LocateReply{};
  DEDUP_TRY(beside.in_loop([&] { located = node_.on(locate); }));
  DEDUP_TRY(located.status());
  for (std::uint32_t i = 0; i < request_.chunks.size(); ++i) {
    if (located->locations[i].length == 0) ask_next(i, *services);
  }
  return Status::ok();
}

void RestoreTask::ask(Client& services) {
  for (auto& [node, which] : to_ask_) {
    if (asked_.size() >= kNodesAtOnce) return;
    const bool is_busy = std::any_of(asked_.begin(), asked_.end(),
                                     [&, at = node](const auto& a) { return a->node == at; });
    if (which.empty() || is_busy) continue;
    GetChunks request{request_.identity, {}};
    std::vector<std::uint32_t> now;
    std::size_t bytes = 0;
    while (!which.empty()) {
      const RestoreChunk& chunk = request_.chunks[which.front()];
      bytes += chunk.length;
      if (!now.empty() && bytes > kAskAtOnce) break;
      request.chunks.push_back({chunk.fingerprint, chunk.length});
      now.push_back(which.front());
      which.pop_front();
    }
    auto pending = services.start(node, request);
    asked_.push_back(std::make_unique<Asked>(
        Asked{node, std::move(now), std::move(request.chunks), std::move(pending)}));
  }
}

Status RestoreTask::take(Executor::Beside& beside, Asked& asked) {
  DEDUP_ASSIGN(Client* const services, beside.services());
  const auto reply = asked.pending.wait();
  std::vector<std::span<const std::byte>> chunks;
  std::vector<store::ChunkSeal> seals;
  if (reply.is_ok()) chunks = reply->chunks(asked.chunks);
  if (!chunks.empty()) seals = reply->seals(asked.chunks);
  PutChunks put{request_.identity, request_.placements, {}};
  for (std::size_t k = 0; k < asked.which.size(); ++k) {
    const std::uint32_t i = asked.which[k];
    const RestoreChunk& chunk = request_.chunks[i];
    const bool here = k < chunks.size() && chunks[k].size() == chunk.length;
    if (here && store::holds(seals[k], {chunk.fingerprint, chunks[k]})) {
      put.chunks.push_back(PutChunk::sealed(chunk.fingerprint, chunk.placement,
                                            Bytes(chunks[k].begin(), chunks[k].end())));
    } else {
      ask_next(i, *services);
    }
  }
  if (put.chunks.empty()) return Status::ok();
  Result<PutReply> stored = PutReply{};
  DEDUP_TRY(beside.in_loop([&] { stored = node_.on(put); }));
  DEDUP_TRY(stored.status());
  reply_.stored += stored->stored;
  return Status::ok();
}

Result<Executor::Progress> RestoreTask::step(Executor::Beside& beside) {
  if (!std::exchange(begun_, true)) DEDUP_TRY(find_lacking(beside));
  DEDUP_ASSIGN(Client* const services, beside.services());
  Executor::Progress progress;
  ask(*services);
  if (!asked_.empty()) {
    const std::unique_ptr<Asked> first = std::move(asked_.front());
    asked_.pop_front();
    for (const NamedChunk& chunk : first->chunks) progress.bytes += chunk.length;
    DEDUP_TRY(take(beside, *first));
  }
  progress.done = asked_.empty() && std::all_of(to_ask_.begin(), to_ask_.end(),
                                                [](const auto& e) { return e.second.empty(); });
  return progress;
}

void RestoreTask::ended(const Status& outcome) {
  // What is still under way is not waited for.
  asked_.clear();
  responder_->reply(outcome, outcome.is_ok() ? encoded(reply_) : Bytes());
}

}  // namespace dedup::service
