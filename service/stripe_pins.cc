#include "service/stripe_pins.h"

#include <algorithm>

#include "base/hasher.h"

namespace dedup::service {

StripePins::StripePins(FileChunks& chunks, const StripeUnits& units,
                       std::span<const FingerprintNumbers::Item> carried)
    : chunks_(chunks),
      units_(units),
      carried_(carried),
      unplaced_(chunks.intern(plan::Placement())) {}

Status StripePins::pin() {
  Status status;
  chunks_.index().for_each_marked([&](std::uint32_t number) {
    if (status.is_ok()) status = pin_unit(chunks_.index().at(number));
  });
  DEDUP_TRY(status);
  std::vector<Fingerprint> names;
  std::vector<std::uint32_t> placements;
  for (const auto& [name, placement] : carried_) {
    if (kind_of(name) != NameKind::kStripePart) continue;
    names.push_back(name);
    placements.push_back(placement);
  }
  const std::vector<store::ChunkLocation> locations = chunks_.locate(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    DEDUP_TRY(pin_unit({names[i], locations[i], placements[i]}));
  }
  std::sort(fresh_.begin(), fresh_.end());
  fresh_.erase(std::unique(fresh_.begin(), fresh_.end()), fresh_.end());
  return Status::ok();
}

bool StripePins::is_carried(const Fingerprint& name) const {
  const auto found = std::lower_bound(
      carried_.begin(), carried_.end(), name,
      [](const auto& item, const Fingerprint& wanted) { return item.fingerprint < wanted; });
  return found != carried_.end() && found->fingerprint == name;
}

Status StripePins::pin_unit(const store::IndexEntry& part) {
  if (kind_of(part.fingerprint) != NameKind::kStripePart) return Status::ok();
  DEDUP_ASSIGN(const auto chunks, units_.read_table({part.fingerprint, part.location.length}));
  UnitShare share;
  for (const NamedChunk& chunk : chunks) {
    share.bytes += chunk.length;
    switch (chunks_.pin(chunk.fingerprint, unplaced_)) {
      case ChunkIndex::Pinned::kNot:
        if (is_carried(chunk.fingerprint)) {
          share.live += chunk.length;
        } else {
          fresh_.push_back(chunk.fingerprint);
        }
        break;
      case ChunkIndex::Pinned::kOnly:
        break;
      case ChunkIndex::Pinned::kReferredTo:
        share.live += chunk.length;
        break;
    }
  }
  const plan::StripeUnit* const stripe = chunks_.index().placement(part.placement).stripe();
  if (stripe == nullptr || share.live == share.bytes) return Status::ok();
  share.stripe = stripe->stripe;
  share.data = stripe->data;
  shares_.push_back(share);
  return Status::ok();
}

}  // namespace dedup::service
