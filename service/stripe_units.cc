#include "service/stripe_units.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/hasher.h"
#include "base/numbered.h"

namespace dedup::service {
namespace {

// Of a node that has much less than this fills of units of full length.
constexpr std::uint64_t kUnitsAtLeast = 32;
constexpr std::uint64_t kLeastUnitBytes = std::uint64_t{32} << 10;

bool is_part(const Fingerprint& name) {
  return kind_of(name) == NameKind::kStripePart;
}

}  // namespace

// Whose placement asks for it that this node makes a unit of the chunk.
class StripeUnits::Choice {
 public:
  Choice(const MakeUnits& request, NodeIndex self, NodeIndex nodes)
      : live_(nodes),
        wanted_(plan::Redundancy::copies(request.wanted)),
        self_(self),
        sparse_(request.sparse.begin(), request.sparse.end()) {}

  bool operator()(const plan::Placement& placement) const {
    const plan::Placement left = placement.surviving(live_);
    const bool is_sparse = left.stripe() != nullptr && sparse_.contains(left.stripe()->stripe);
    return (is_sparse || !left.enough(live_, wanted_)) && left.keeper(live_) == self_;
  }

 private:
  plan::LiveNodes live_;
  plan::Redundancy wanted_;
  NodeIndex self_;
  std::set<Id128> sparse_;
};

// Of what is in an index each placement is asked for once, by its number there.
template <typename Ask>
class ByNumber {
 public:
  explicit ByNumber(const Ask& ask) : ask_(ask) {}
  template <typename Placement>
  bool operator()(std::uint32_t number, const Placement& placement) {
    if (answers_.size() <= number) answers_.resize(number + std::size_t{1});
    std::optional<bool>& answer = answers_[number];
    if (!answer) answer = ask_(placement());
    return *answer;
  }

 private:
  const Ask& ask_;
  std::vector<std::optional<bool>> answers_;
};

Result<std::vector<UnitShare>> StripeUnits::shares(const ListShares& request) {
  stores_ = request.stores;
  const store::IndexReader* const base = request.looks_at_all ? chunks_.base_index() : nullptr;
  if (base == nullptr) return chunks_.shares();
  std::map<std::uint32_t, std::uint64_t> live;  // by number of a placement
  for (std::uint64_t i = 0; i < base->size(); ++i) {
    // What cannot be read is as good as not there.
    const auto entry = base->at(i);
    if (entry.is_ok() && !is_part(entry->fingerprint)) {
      live[entry->placement] += entry->location.length;
    }
  }
  // Runs number the same placement by themselves.
  std::map<plan::StripeUnit, std::uint64_t> units;
  for (const auto& [number, bytes] : live) {
    const plan::StripeUnit* const stripe = base->placement(number).stripe();
    if (stripe != nullptr) units[*stripe] += bytes;
  }
  std::vector<UnitShare> shares;
  for (const auto& [stripe, bytes] : units) {
    const Fingerprint name = plan::part_name(stripe.stripe, plan::Part::kUnitTable, stripe.unit);
    const std::uint32_t length = chunks_.locate({&name, 1}).front().length;
    if (length == 0) continue;
    const auto unit = read_table({name, length});
    if (!unit.is_ok() || bytes >= plan::unit_length(*unit)) continue;
    shares.push_back(
        {stripe.stripe, stripe.data, static_cast<std::uint32_t>(bytes), plan::unit_length(*unit)});
  }
  return shares;
}

Result<MakeUnitsReply> StripeUnits::make_units(const MakeUnits& request, NodeIndex self,
                                               NodeIndex nodes) {
  units_.clear();
  committed_.clear();
  stores_ = request.stores;
  const Choice is_chosen(request, self, nodes);
  ByNumber is_one(is_chosen);
  std::vector<Candidate> candidates;
  const ChunkIndex& index = chunks_.index();
  index.for_each([&](std::uint32_t number) {
    const store::IndexEntry entry = index.at(number);
    const auto placement = [&] { return index.placement(entry.placement); };
    if (is_part(entry.fingerprint) || !is_one(entry.placement, placement)) return;
    candidates.push_back({{entry.fingerprint, entry.location.length}, entry.location});
  });
  if (request.looks_at_all || !request.sparse.empty()) {
    DEDUP_TRY(add_committed(request, is_chosen, candidates));
  }
  cut(std::move(candidates), request.data);
  return MakeUnitsReply{static_cast<std::uint32_t>(units_.size()), plan::longest_unit(units_)};
}

Status StripeUnits::add_committed(const MakeUnits& request, const Choice& is_chosen,
                                  std::vector<Candidate>& candidates) {
  const store::IndexReader* const base = chunks_.base_index();
  if (base == nullptr) return Status::ok();
  ByNumber is_one(is_chosen);
  std::vector<Candidate> committed;
  std::vector<Fingerprint> names;
  for (std::uint64_t i = 0; i < base->size(); ++i) {
    const auto read = base->at(i);
    if (!read.is_ok()) continue;
    const store::IndexEntry& entry = *read;
    const auto placement = [&] { return committed_placement(entry); };
    if (is_part(entry.fingerprint) || !is_one(entry.placement, placement)) continue;
    // A newer run, or what came since, may say otherwise.
    const auto newest = base->find(entry.fingerprint);
    if (!newest.is_ok() || newest->placement != entry.placement ||
        chunks_.index().find(entry.fingerprint, nullptr)) {
      continue;
    }
    committed.push_back({{entry.fingerprint, entry.location.length}, entry.location});
    names.push_back(entry.fingerprint);
  }
  // Of what is gone, or is known to be bad, no stripe can be made.
  const std::vector<store::ChunkLocation> locations = chunks_.locate(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (locations[i].length != 0) candidates.push_back(committed[i]);
  }
  chunks_.forget_shares(request.sparse);
  return Status::ok();
}

plan::Placement StripeUnits::committed_placement(const store::IndexEntry& entry) const {
  plan::Placement placement = chunks_.base_index()->placement(entry.placement);
  if (!placement.remap(stores_)) placement.clear();
  return placement;
}

// In stretches of even size, so that few parities are longer than most of their units; and in so
// many that few stripes have less than all units, as the last ones of a group may.
void StripeUnits::cut(std::vector<Candidate> candidates, unsigned data) {
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.location < b.location; });
  std::uint64_t left = 0;
  for (const Candidate& candidate : candidates) left += candidate.chunk.length;
  const std::uint64_t most =
      std::clamp<std::uint64_t>(left / kUnitsAtLeast, kLeastUnitBytes, plan::kUnitBytes);
  const std::size_t most_chunks = plan::most_unit_chunks(data);
  std::uint64_t target = 0;
  std::uint64_t length = 0;
  for (const Candidate& candidate : candidates) {
    if (units_.empty() || length + candidate.chunk.length > target ||
        units_.back().size() >= most_chunks) {
      units_.emplace_back();
      length = 0;
      const std::uint64_t units = (left + most - 1) / most;
      target = (left + units - 1) / units;
    }
    units_.back().push_back(candidate.chunk);
    length += candidate.chunk.length;
    left -= candidate.chunk.length;
  }
}

Result<plan::UnitChunks> StripeUnits::unit(std::uint32_t number) const {
  if (number < units_.size()) return units_[number];
  return Status(Code::kArgument,
                "unit " + std::to_string(number) + " of stripes, which this node does not have");
}

Status StripeUnits::join(const JoinStripes& request) {
  PutChunks tables{identity_, {}, {}};
  for (const JoinedUnit& joined : request.units) {
    DEDUP_ASSIGN(const plan::UnitChunks chunks, unit(joined.unit));
    const plan::StripeUnit& stripe = joined.stripe;
    tables.chunks.push_back(
        PutChunk::sealed(plan::part_name(stripe.stripe, plan::Part::kUnitTable, stripe.unit),
                         static_cast<std::uint32_t>(tables.placements.size()),
                         plan::encode_stripe_table({&chunks, 1})));
    tables.placements.push_back(plan::placement_of_parts(stripe));
  }
  DEDUP_TRY(chunks_.put(tables).status());
  for (const JoinedUnit& joined : request.units) {
    const auto placement = plan::Placement::in_stripe(joined.stripe);
    for (const NamedChunk& chunk : units_[joined.unit]) {
      if (!chunks_.place(chunk.fingerprint, placement)) committed_[chunk.fingerprint] = placement;
    }
  }
  return Status::ok();
}

FindPlacementsReply StripeUnits::placements_of(std::span<const Fingerprint> fingerprints) {
  const store::IndexReader* const base = chunks_.base_index();
  Numbered<plan::Placement> placements;
  FindPlacementsReply reply;
  for (const Fingerprint& name : fingerprints) {
    plan::Placement before;
    const plan::Placement* placement = &before;
    if (const auto joined = committed_.find(name); joined != committed_.end()) {
      placement = &joined->second;
    } else if (!chunks_.index().find(name, nullptr, &placement) && base != nullptr) {
      if (const auto entry = base->find(name); entry.is_ok()) before = committed_placement(*entry);
    }
    reply.of.push_back(placements.number(*placement));
  }
  reply.placements = placements.list();
  return reply;
}

Result<plan::UnitChunks> StripeUnits::read_table(const NamedChunk& part) const {
  if (plan::part_of(part.fingerprint) != plan::Part::kUnitTable) return plan::UnitChunks{};
  DEDUP_ASSIGN(const ChunksReply reply, chunks_.read({&part, 1}));
  const auto bytes = reply.chunks({&part, 1});
  std::optional<std::vector<plan::UnitChunks>> table;
  if (!bytes.empty()) table = plan::decode_stripe_table(bytes[0], 1);
  if (!table) {
    return Status(Code::kCorrupt, "the table of a stripe's unit (" + part.fingerprint.hex() +
                                      ") cannot be read: what the stripe needs is not known");
  }
  return std::move(table->front());
}

}  // namespace dedup::service
