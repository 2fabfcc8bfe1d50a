#include "engine/chunks/own_chunks.h"

#include <vector>

namespace dedup::engine {

bool OwnChunks::store_some() {
  if (!error_.none()) return false;
  std::vector<StoredChunk> batch;
  std::uint64_t bytes = 0;
  for (; next_ < chunks_.size() && bytes < kAtOnce; ++next_) {
    const Verdict& verdict = verdicts_[next_];
    if (!verdict.keep) continue;
    bytes += chunks_.length(next_);
    // What no node gets as a copy several have by themselves: then one in memory is enough.
    const NodeSet& nodes = verdict.placement.nodes();
    const bool is_second = verdict.targets.empty() && !nodes.empty() && nodes[0] != writer_.node();
    batch.push_back({chunks_.name(next_), chunks_.data(next_),
                     writer_.placements().number(verdict.placement), chunks_.is_single(next_),
                     false, chunks_.checksum(next_), is_second});
  }
  bytes_ += bytes;
  error_.note(writer_.keep(batch));
  return next_ < chunks_.size();
}

}  // namespace dedup::engine
