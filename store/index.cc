#include "store/index.h"

#include <unordered_map>

namespace dedup::store {

std::vector<std::uint64_t> sparse_segments(const IndexReader& index,
                                           std::span<const SegmentSize> sizes) {
  std::unordered_map<std::uint64_t, std::uint64_t> size_of;
  for (const auto& size : sizes) size_of[size.segment] = size.bytes;
  std::vector<std::uint64_t> sparse;
  for (const auto& use : index.segments()) {
    const auto size = size_of.find(use.segment);
    if (size != size_of.end() && use.live_bytes < size->second / 2) sparse.push_back(use.segment);
  }
  return sparse;
}

}  // namespace dedup::store
