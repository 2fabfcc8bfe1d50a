// The third stage of a round: what is known already of the node's chunks that this rank decides
// about. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/numbered.h"
#include "engine/chunks/node_chunks.h"
#include "plan/placement.h"
#include "plan/settled.h"

namespace dedup::engine {

// By chunk of a NodeChunks. 5 bytes a chunk.
class KnownChunks {
 public:
  KnownChunks() = default;
  // Nothing is known yet.
  explicit KnownChunks(std::uint32_t chunks) : what_(chunks, What::kNew), placements_(chunks) {}

  bool is_new(std::uint32_t i) const { return what_[i] == What::kNew; }
  // In this node's store already.
  bool is_held(std::uint32_t i) const { return what_[i] == What::kHeld; }
  // An earlier dump of this generation decided who holds it.
  bool is_settled(std::uint32_t i) const { return what_[i] == What::kSettled; }
  // Of a chunk that is not new.
  const plan::Placement& placement(std::uint32_t i) const { return distinct_[placements_[i]]; }

  void settle(std::uint32_t i, const plan::Placement& placement) {
    set(i, What::kSettled, placement);
  }
  // `placement`: as the service of node `self` knows it. Only nodes of the job, `live`, count.
  void hold(std::uint32_t i, const plan::Placement& placement, NodeIndex self,
            const plan::LiveNodes& live);

 private:
  enum class What : std::uint8_t { kNew, kHeld, kSettled };
  void set(std::uint32_t i, What what, const plan::Placement& placement);

  std::vector<What> what_;
  std::vector<std::uint32_t> placements_;  // numbers in distinct_
  Numbered<plan::Placement> distinct_;
};

// What earlier dumps settled, and what the node's ranks found in its store. `self`, `live`: this
// node, and those of the job.
KnownChunks look_up(const NodeChunks& chunks, const plan::SettledChunks& settled, NodeIndex self,
                    const plan::LiveNodes& live);

}  // namespace dedup::engine
