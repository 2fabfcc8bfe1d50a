#include "engine/chunks/own_chunks.h"

#include <vector>

namespace dedup::engine {
namespace {

constexpr std::size_t kClaimAtOnce = 2048;  // chunks; asking costs little if it is for many
// Bytes stored at once while others' chunks are on their way: little, since meanwhile nothing is
// received, and nothing more is sent.
constexpr std::uint64_t kStoreAtOnce = std::uint64_t{1} << 20;

}  // namespace

bool OwnChunks::store_some() {
  if (!writer_.has_claimed()) claim_some();
  if (!error_.none()) return false;
  error_.note(writer_.store_claimed(kStoreAtOnce));
  return writer_.has_claimed() || next_ < chunks_.size();
}

void OwnChunks::claim_some() {
  std::vector<StoredChunk> batch;
  for (; next_ < chunks_.size() && batch.size() < kClaimAtOnce; ++next_) {
    const Verdict& verdict = verdicts_[next_];
    if (!verdict.keep) continue;
    bytes_ += chunks_.length(next_);
    batch.push_back({chunks_.name(next_), chunks_.data(next_),
                     writer_.placements().number(verdict.placement), chunks_.is_single(next_),
                     chunks_.checksum(next_)});
  }
  if (error_.none()) error_.note(writer_.claim(batch));
}

}  // namespace dedup::engine
