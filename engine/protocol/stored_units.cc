#include "engine/protocol/stored_units.h"

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "service/messages/store_node.h"

namespace dedup::engine {

void StoredUnits::list(std::span<MovedUnit> units) {
  std::map<NodeIndex, std::vector<MovedUnit*>> by_node;
  for (MovedUnit& unit : units) by_node[unit.node].push_back(&unit);
  std::deque<service::Client::Pending<service::ListUnits>> pending;
  for (const auto& [node, of_node] : by_node) {
    service::ListUnits request{identity_, attempt_, {}};
    for (const MovedUnit* const unit : of_node) request.units.push_back(unit->number);
    pending.push_back(client_.start(node, request));
  }
  for (const auto& [node, of_node] : by_node) {
    auto reply = pending.front().wait();
    pending.pop_front();
    if (!reply.is_ok() || reply->units.size() != of_node.size()) continue;
    for (std::size_t i = 0; i < of_node.size(); ++i) {
      of_node[i]->chunks = std::move(reply->units[i]);
    }
  }
}

void StoredUnits::read(std::span<MovedUnit> units) {
  std::vector<WantedChunk> wanted;
  std::vector<std::size_t> unit_of;
  ChunkSource::ByNode by_node;
  for (std::size_t u = 0; u < units.size(); ++u) {
    MovedUnit& unit = units[u];
    unit.seals.resize(unit.chunks.size());
    std::byte* to = unit.to;
    for (std::size_t i = 0; i < unit.chunks.size(); ++i) {
      const NamedChunk& chunk = unit.chunks[i];
      by_node[unit.node].push_back(wanted.size());
      wanted.push_back({chunk.fingerprint, chunk.length, nullptr, to, &unit.seals[i]});
      unit_of.push_back(u);
      to += chunk.length;
    }
  }
  for (const std::size_t i : source_.try_nodes(wanted, std::move(by_node))) {
    units[unit_of[i]].chunks.clear();
  }
}

}  // namespace dedup::engine
