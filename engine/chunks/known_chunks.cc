#include "engine/chunks/known_chunks.h"

namespace dedup::engine {

void KnownChunks::set(std::uint32_t i, What what, const plan::Placement& placement) {
  what_[i] = what;
  placements_[i] = distinct_.number(placement);
}

void KnownChunks::hold(std::uint32_t i, const plan::Placement& placement, NodeIndex self,
                       const plan::LiveNodes& live) {
  plan::Placement here = placement.surviving(live);
  // A stripe keeps it, on whichever node.
  if (here.stripe() == nullptr) here.add_copy(self);
  set(i, What::kHeld, here);
}

KnownChunks look_up(const NodeChunks& chunks, const plan::SettledChunks& settled, NodeIndex self,
                    const plan::LiveNodes& live) {
  KnownChunks known(chunks.size());
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    if (const plan::Placement* placement = settled.find(chunks[c].fingerprint)) {
      known.settle(c, *placement);
    } else if (const plan::Placement* held = chunks.held(c)) {
      known.hold(c, *held, self, live);
    }
  }
  return known;
}

}  // namespace dedup::engine
