#include "engine/protocol/referrals.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>

#include "base/hasher.h"
#include "plan/stripe_content.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kReferencesAtOnce = 32768;

// Of what a stripe has beside its chunks nobody but its nodes knows the length.
constexpr std::uint32_t kAnyLength = 1;

bool is_part(const Fingerprint& name) {
  return kind_of(name) == NameKind::kStripePart;
}

}  // namespace

// The number in batch.chunks of a chunk with this placement. If there is none it is `fresh`, under
// which the table knows the chunk from then on.
std::uint32_t Referrals::number_of(Batch& batch, const Fingerprint& fingerprint,
                                   std::uint32_t placement, std::uint32_t fresh) {
  return batch.table.find_or_enter_if(fingerprint.prefix(), fresh, [&](std::uint32_t n) {
    return batch.chunks[n].placement == placement && batch.chunks[n].fingerprint == fingerprint;
  });
}

void Referrals::make_room(Batch& batch, std::size_t chunks) {
  if (batch.chunks.size() + chunks <= batch.room) return;
  batch.room = std::max(kReferencesAtOnce, 2 * (batch.chunks.size() + chunks));
  batch.table.reset(batch.room);
  for (std::uint32_t i = 0; i < batch.chunks.size(); ++i) {
    number_of(batch, batch.chunks[i].fingerprint, batch.chunks[i].placement, i);
  }
}

// A chunk that is there often is referred to once.
void Referrals::add(Batch& batch, const Referred& chunk, std::span<const NodeIndex> nodes) {
  const auto fresh = static_cast<std::uint32_t>(batch.chunks.size());
  if (number_of(batch, chunk.fingerprint, chunk.placement, fresh) != fresh) return;
  batch.chunks.push_back(chunk);
  for (const NodeIndex node : nodes) {
    batch.by_node[node].push_back(fresh);
    ++batch.count;
  }
}

// What the nodes of a stripe keep of it beside its chunks stays as long as one of these is referred
// to, and so do the others of its chunks.
void Referrals::add_stripe(Batch& batch, const plan::StripeUnit& stripe) {
  make_room(batch, 2 * stripe.nodes.size());
  const std::uint32_t placement = batch.placements.number(plan::placement_of_parts(stripe));
  for (unsigned slot = 0; slot < stripe.nodes.size(); ++slot) {
    if (stripe.nodes[slot] == kNoNode) continue;
    for (const Fingerprint& part : plan::part_names(stripe, slot)) {
      add(batch, {part, kAnyLength, placement}, {&stripe.nodes[slot], 1});
    }
  }
}

void Referrals::refer(const Block& block) {
  std::vector<std::uint32_t> all(block.pieces.size());
  std::iota(all.begin(), all.end(), 0U);
  refer(block, all);
}

void Referrals::refer(const Block& block, std::span<const std::uint32_t> pieces) {
  make_room(batch_, pieces.size());
  std::vector<std::uint32_t> numbers;
  for (const plan::Placement& placement : block.placements) {
    numbers.push_back(batch_.placements.number(placement));
  }
  std::vector<bool> is_used(block.placements.size());
  for (const std::uint32_t i : pieces) {
    const Piece& piece = block.pieces[i];
    if (piece.is_zero()) continue;
    is_used[piece.placement] = true;
    add(batch_, {piece.fingerprint, piece.chunk_length, numbers[piece.placement]},
        block.placements[piece.placement].nodes());
  }
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    const plan::StripeUnit* const stripe = block.placements[i].stripe();
    if (!is_used[i] || stripe == nullptr || confirmed_.contains(stripe->stripe)) continue;
    add_stripe(batch_, *stripe);
  }
}

void Referrals::drop(NodeIndex node, std::uint64_t bytes) {
  dropped_[node] += bytes;
  batch_.by_node[node];  // is told of it, if of no chunk
}

Status Referrals::send_if_much() {
  return batch_.count < kReferencesAtOnce ? Status::ok() : round(Status::ok(), true);
}

Status Referrals::finish(const Status& mine) {
  do {
    DEDUP_TRY(failed_);
    DEDUP_TRY(round(mine, false));
  } while (goes_on_);
  return Status::ok();
}

Status Referrals::round(const Status& mine, bool goes_on) {
  // In ascending order: the most of any rank is what is done.
  enum : std::uint64_t { kNothing, kSends, kSendsAndGoesOn };
  std::uint64_t work = batch_.by_node.empty() ? kNothing : kSends;
  if (goes_on) work = kSendsAndGoesOn;
  failed_ = file_.ranks().agree_max(mine, work, Waiting::kPatient);
  goes_on_ = work == kSendsAndGoesOn;
  if (failed_.is_ok() && work != kNothing) failed_ = send();
  return failed_;
}

// Collective; the same on all ranks.
Status Referrals::send() {
  const auto ask = [this](const Batch& batch, const ByNode& references, const Status& mine) {
    return ask_together(batch, references, mine);
  };
  DEDUP_ASSIGN(const Lacking lost, bring(batch_, ask));
  for (const auto& [chunk, lack] : lost) {
    if (is_part(chunk.first)) {
      has_lost_parts_ = true;
    } else {
      ++lost_chunks_;
    }
  }
  batch_ = {};
  return Status::ok();
}

Result<std::set<Id128>> Referrals::confirm(const std::vector<plan::StripeUnit>& stripes) {
  Batch batch;
  std::set<Id128> asked;
  for (const plan::StripeUnit& stripe : stripes) {
    if (confirmed_.contains(stripe.stripe) || !asked.insert(stripe.stripe).second) continue;
    add_stripe(batch, stripe);
  }
  const auto ask = [this](const Batch& some, const ByNode& references, const Status& mine) {
    return ask_alone(some, references, mine);
  };
  DEDUP_ASSIGN(const Lacking lost, bring(batch, ask));
  std::set<Id128> failed;
  for (const auto& [part, lack] : lost) {
    failed.insert(batch.placements[part.second].stripe()->stripe);
  }
  std::set_difference(asked.begin(), asked.end(), failed.begin(), failed.end(),
                      std::inserter(confirmed_, confirmed_.end()));
  return failed;
}

service::References Referrals::request_to(NodeIndex node, const Batch& batch,
                                          const std::vector<std::uint32_t>& chunks) {
  service::References request{file_.identity(), attempt_, {}, {}};
  if (const auto dropped = dropped_.extract(node)) request.dropped = dropped.mapped();
  NumberedInMessages numbers(batch.placements);
  request.chunks.reserve(chunks.size());
  for (const std::uint32_t chunk : chunks) {
    const Referred& referred = batch.chunks[chunk];
    request.chunks.push_back(
        {referred.fingerprint, numbers.number(referred.placement, request.placements)});
  }
  return request;
}

ReferencesByNode Referrals::requests_of(const Batch& batch, const ByNode& references) {
  ReferencesByNode requests;
  for (const auto& [node, chunks] : references) {
    requests.emplace(node, request_to(node, batch, chunks));
  }
  return requests;
}

Referrals::ByNode Referrals::lacking_of(const ByNode& references, const LackingByNode& lacking) {
  ByNode missing;
  for (const auto& [node, flags] : lacking) {
    const std::vector<std::uint32_t>& chunks = references.at(node);
    for (std::size_t k = 0; k < chunks.size(); ++k) {
      if (flags[k] != 0) missing[node].push_back(chunks[k]);
    }
  }
  return missing;
}

Result<Referrals::Missing> Referrals::ask_alone(const Batch& batch, const ByNode& references,
                                                const Status& mine) {
  DEDUP_TRY(mine);
  DEDUP_ASSIGN(const LackingByNode lacking,
               ask_nodes(file_.client(), requests_of(batch, references)));
  Missing missing{lacking_of(references, lacking), true, {}};
  missing.is_nothing = missing.references.empty();
  return missing;
}

Result<Referrals::Missing> Referrals::ask_together(const Batch& batch, const ByNode& references,
                                                   const Status& mine) {
  DEDUP_ASSIGN(const ReferenceExchange::Answer answer,
               exchange_.ask(mine, requests_of(batch, references)));
  has_lacked_ = has_lacked_ || !answer.lack_nothing;
  return Missing{lacking_of(references, answer.lacking), answer.lack_nothing, answer.heard};
}

// As often as `ask` says that something is missing on some rank, all ask again.
Result<Referrals::Lacking> Referrals::bring(const Batch& batch, const Ask& ask) {
  DEDUP_ASSIGN(const Missing missing, ask(batch, batch.by_node, Status::ok()));
  Lacking lost;
  if (missing.is_nothing) return lost;
  ByNode again;
  Status status = missing.heard;
  if (status.is_ok()) status = make_up(batch, missing.references, lost, again);
  DEDUP_ASSIGN(const Missing still, ask(batch, again, status));
  if (still.is_nothing) return lost;
  // A third time, for what this rank makes of it.
  status = still.heard;
  if (status.is_ok()) status = check(batch, still.references, lost);
  DEDUP_TRY(ask(batch, {}, status).status());
  return lost;
}

Status Referrals::make_up(const Batch& batch, const ByNode& missing, Lacking& lost, ByNode& again) {
  Lacking wanted;
  for (const auto& [node, chunks] : missing) {
    for (const std::uint32_t i : chunks) {
      Lack& lack = wanted[{batch.chunks[i].fingerprint, batch.chunks[i].placement}];
      lack.length = batch.chunks[i].length;
      lack.nodes.push_back(node);
    }
  }
  DEDUP_ASSIGN(Outcome first, restore(batch, wanted));
  // By now some node has each of these.
  DEDUP_ASSIGN(Outcome second, restore(batch, first.partly));
  lost = std::move(first.lost);
  lost.merge(second.lost);
  for (const auto& [node, chunks] : missing) {
    for (const std::uint32_t i : chunks) {
      if (!lost.contains({batch.chunks[i].fingerprint, batch.chunks[i].placement})) {
        again[node].push_back(i);
      }
    }
  }
  return Status::ok();
}

Status Referrals::check(const Batch& batch, const ByNode& still, Lacking& lost) const {
  for (const auto& [node, chunks] : still) {
    for (const std::uint32_t i : chunks) {
      const Referred& chunk = batch.chunks[i];
      if (is_part(chunk.fingerprint)) {
        lost[{chunk.fingerprint, chunk.placement}].nodes.push_back(node);
        continue;
      }
      return {Code::kIo, "node " + file_.client().node_name(node) + " does not have chunk " +
                             chunk.fingerprint.hex() +
                             ", which it has just been sent: the generation would have "
                             "fewer copies than it says"};
    }
  }
  return Status::ok();
}

Result<Referrals::Outcome> Referrals::restore(const Batch& batch, const Lacking& wanted) {
  std::vector<std::shared_ptr<const Restores::Chunk>> chunks;
  for (const auto& [chunk, lack] : wanted) {
    const auto& [fingerprint, placement] = chunk;
    const plan::Placement& said = batch.placements[placement];
    plan::Placement after = said;
    for (const NodeIndex node : lack.nodes) {
      if (!after.involves(node)) after.add_copy(node);
    }
    DEDUP_ASSIGN(auto begun, restores_.begin(fingerprint, lack.length, said, after, lack.nodes));
    chunks.push_back(std::move(begun));
  }
  Outcome outcome;
  auto next = wanted.begin();
  for (const auto& chunk : chunks) {
    const auto& entry = *next++;
    DEDUP_TRY(restores_.finish(*chunk));
    if (chunk->is_lost()) {
      outcome.lost.insert(entry);
    } else if (chunk->lost > 0) {
      outcome.partly.insert(entry);
    }
  }
  return outcome;
}

}  // namespace dedup::engine
