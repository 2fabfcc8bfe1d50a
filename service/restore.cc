#include "service/restore.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/fields.h"
#include "base/hasher.h"
#include "plan/stripe_content.h"
#include "store/segment.h"

namespace dedup::service {
namespace {

constexpr std::size_t kAskAtOnce = std::size_t{512} << 10;  // bytes of chunks in one request
constexpr std::size_t kNodesAtOnce = 16;

// What is wanted one after the other mostly stands one after the other, on each node that has it:
// so many chunks of it are asked for at the same one.
constexpr std::uint32_t kTogether = 128;

bool is_part(const Fingerprint& name) {
  return kind_of(name) == NameKind::kStripePart;
}

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
// stretch to stretch and from node to node, so that all are busy; then its stripe; then all others.
void RestoreTask::ask_next(std::uint32_t i, const Client& services) {
  const RestoreChunk& chunk = request_.chunks[i];
  const plan::Placement& placement = request_.sources[chunk.sources];
  std::size_t next = tried_[i]++;
  sources_.clear();
  if (!is_part(chunk.fingerprint)) {
    const std::uint64_t together = request_.chunks[i - i % kTogether].fingerprint.prefix();
    placement.sources(services.live(), self_, together, sources_);
    std::erase(sources_, self_);
  }
  if (next < sources_.size()) return to_ask_[sources_[next]].push_back(i);
  next -= sources_.size();
  if (placement.stripe() != nullptr && next-- == 0) return to_make_[chunk.sources].push_back(i);
  for (const NodeIndex node : services.live().list()) {
    const bool was_asked = std::find(sources_.begin(), sources_.end(), node) != sources_.end();
    if (node == self_ || was_asked || next-- > 0) continue;
    return to_ask_[node].push_back(i);
  }
  reply_.lost[i] = 1;
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
    // A table that is here may name chunks that are not.
    if (located->locations[i].length == 0 || is_part(request_.chunks[i].fingerprint)) {
      ask_next(i, *services);
    }
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
      put.chunks.push_back(
          PutChunk::sealed(chunk.fingerprint, chunk.placement, ChunkBytes::of(chunks[k])));
    } else {
      ask_next(i, *services);
    }
  }
  return store(beside, put);
}

Status RestoreTask::store(Executor::Beside& beside, const PutChunks& put) {
  if (put.chunks.empty()) return Status::ok();
  Result<PutReply> stored = PutReply{};
  DEDUP_TRY(beside.in_loop([&] { stored = node_.on(put); }));
  DEDUP_TRY(stored.status());
  reply_.stored += stored->stored;
  return Status::ok();
}

// Of one stripe's unit, or of its parts.
Status RestoreTask::make(Executor::Beside& beside) {
  DEDUP_ASSIGN(Client* const services, beside.services());
  if (!decoder_) decoder_.emplace(*services, request_.identity);
  const auto first = to_make_.extract(to_make_.begin());
  const plan::StripeUnit& stripe = *request_.sources[first.key()].stripe();
  PutChunks put{request_.identity, request_.placements, {}};
  std::vector<std::uint32_t> of_unit;
  for (const std::uint32_t i : first.mapped()) {
    const RestoreChunk& chunk = request_.chunks[i];
    if (!is_part(chunk.fingerprint)) {
      of_unit.push_back(i);
      continue;
    }
    DEDUP_ASSIGN(const bool has_unit, make_unit(beside, stripe, chunk));
    auto part = has_unit ? decoder_->make_part(stripe, chunk.fingerprint) : std::nullopt;
    if (part) {
      put.chunks.push_back(PutChunk::sealed(chunk.fingerprint, chunk.placement, *std::move(part)));
    } else {
      ask_next(i, *services);
    }
  }
  std::vector<Bytes> bytes;
  std::vector<StripeDecoder::Target> targets;
  bytes.reserve(of_unit.size());
  for (const std::uint32_t i : of_unit) {
    const RestoreChunk& chunk = request_.chunks[i];
    bytes.emplace_back(chunk.length);
    targets.push_back({{chunk.fingerprint, chunk.length}, bytes.back().data()});
  }
  const std::vector<std::size_t> failed = decoder_->make_chunks(stripe, targets);
  for (std::size_t k = 0; k < of_unit.size(); ++k) {
    const std::uint32_t i = of_unit[k];
    if (std::binary_search(failed.begin(), failed.end(), k)) {
      ask_next(i, *services);
    } else {
      put.chunks.push_back(PutChunk::sealed(request_.chunks[i].fingerprint,
                                            request_.chunks[i].placement, std::move(bytes[k])));
    }
  }
  return store(beside, put);
}

// Whoever gets the table of his unit is to have all chunks in it. True also for other parts.
Result<bool> RestoreTask::make_unit(Executor::Beside& beside, const plan::StripeUnit& stripe,
                                    const RestoreChunk& part) {
  if (plan::part_of(part.fingerprint) != plan::Part::kUnitTable) return true;
  const unsigned slot = plan::slot_of(part.fingerprint);
  const auto units = decoder_->units_of(stripe);
  if (!units || slot >= units->size()) return false;
  plan::StripeUnit own = stripe;
  own.unit = static_cast<std::uint8_t>(slot);
  Locate locate{request_.identity, {}};
  for (const NamedChunk& chunk : (*units)[slot]) {
    locate.fingerprints.push_back(chunk.fingerprint);
  }
  Result<LocateReply> located = LocateReply{};
  DEDUP_TRY(beside.in_loop([&] { located = node_.on(locate); }));
  DEDUP_TRY(located.status());
  std::vector<Bytes> bytes;
  std::vector<StripeDecoder::Target> targets;
  bytes.reserve(locate.fingerprints.size());
  for (std::size_t i = 0; i < locate.fingerprints.size(); ++i) {
    const NamedChunk& chunk = (*units)[slot][i];
    if (located->locations[i].length != 0) continue;
    bytes.emplace_back(chunk.length);
    targets.push_back({chunk, bytes.back().data()});
  }
  if (!decoder_->make_chunks(own, targets).empty()) return false;
  // How they are kept then is what the table's placement says.
  const plan::StripeUnit* const after = request_.placements[part.placement].stripe();
  if (after == nullptr || slot >= after->data) return false;
  own.nodes = after->nodes;
  PutChunks put{request_.identity, {plan::Placement::in_stripe(own)}, {}};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    put.chunks.push_back(PutChunk::sealed(targets[i].chunk.fingerprint, 0, std::move(bytes[i])));
  }
  DEDUP_TRY(store(beside, put));
  return true;
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
  } else if (!to_make_.empty()) {
    for (const std::uint32_t i : to_make_.begin()->second) {
      progress.bytes += request_.chunks[i].length;
    }
    DEDUP_TRY(make(beside));
  }
  progress.done =
      asked_.empty() && to_make_.empty() &&
      std::all_of(to_ask_.begin(), to_ask_.end(), [](const auto& e) { return e.second.empty(); });
  return progress;
}

void RestoreTask::ended(const Status& outcome) {
  // What is still under way is not waited for.
  asked_.clear();
  responder_->reply(outcome, outcome.is_ok() ? encoded(reply_) : Bytes());
}

}  // namespace dedup::service
