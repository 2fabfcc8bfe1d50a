#include "service/known_places.h"

#include <unordered_set>
#include <utility>

#include "service/messages/store_node.h"

namespace dedup::service {

std::optional<std::vector<store::ChunkLocation>> locate_at(Client& client, const Id128& identity,
                                                           NodeIndex node,
                                                           std::span<const Fingerprint> wanted) {
  auto reply = client.call(node, Locate{identity, {wanted.begin(), wanted.end()}});
  if (!reply.is_ok() || reply->locations.size() != wanted.size()) return std::nullopt;
  return std::move(reply->locations);
}

std::optional<std::vector<store::ChunkLocation>> KnownPlaces::locate(
    Client& client, const Id128& identity, NodeIndex node, std::span<const Fingerprint> wanted,
    Around around) {
  std::vector<store::ChunkLocation> out;
  if (find(node, wanted, out)) return out;
  std::vector<Fingerprint> names(wanted.begin(), wanted.end());
  add_unknown(node, around, names);
  auto locations = locate_at(client, identity, node, names);
  if (!locations) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (count_ + names.size() > kMost) known_.clear();
  if (known_.empty()) count_ = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (known_[node].emplace(names[i], (*locations)[i]).second) ++count_;
  }
  locations->resize(wanted.size());
  return locations;
}

std::shared_ptr<store::StretchEnds> KnownPlaces::ends(NodeIndex node) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<store::StretchEnds>& ends = ends_[node];
  if (!ends) ends = std::make_shared<store::StretchEnds>();
  return ends;
}

void KnownPlaces::clear() {
  const std::lock_guard lock(mutex_);
  known_.clear();
  ends_.clear();
  count_ = 0;
}

bool KnownPlaces::find(NodeIndex node, std::span<const Fingerprint> wanted,
                       std::vector<store::ChunkLocation>& out) const {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(node);
  if (known == known_.end()) return wanted.empty();
  for (const Fingerprint& name : wanted) {
    const auto at = known->second.find(name);
    if (at == known->second.end()) return false;
    out.push_back(at->second);
  }
  return true;
}

void KnownPlaces::add_unknown(NodeIndex node, Around around,
                              std::vector<Fingerprint>& names) const {
  std::unordered_set<Fingerprint> asked(names.begin(), names.end());
  std::vector<NamedChunk> chunks;
  for (const auto& block : around) {
    for (const Piece& piece : block->pieces) {
      if (piece.is_zero() || !block->placements[piece.placement].is_on(node)) continue;
      chunks.push_back({piece.fingerprint, piece.chunk_length});
    }
  }
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(node);
  for (const Fingerprint& name : store::firsts_of_stretches(chunks)) {
    const bool is_known = known != known_.end() && known->second.contains(name);
    if (!is_known && asked.insert(name).second) names.push_back(name);
  }
}

}  // namespace dedup::service
