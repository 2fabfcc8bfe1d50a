// What many nodes put into a reduction, and the messages that they make of it.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "plan/reduce.h"

namespace beyond {

inline constexpr std::uint32_t kChunk = 4096;  // bytes

using Random = std::mt19937_64;

// Every node has F chunks: the first `shared` of them all nodes have, the others nobody else.
struct Data {
  Data(std::uint32_t nodes, std::uint32_t threshold, std::uint32_t copies, std::uint32_t in_common);
  std::uint32_t unique() const { return limits.threshold - shared; }

  dedup::plan::ReduceLimits limits;
  std::uint32_t shared;
  std::vector<dedup::Fingerprint> common;  // the shared ones
};

// What one node puts in.
dedup::plan::FrequentSet leaf(const Data& data, std::uint32_t node);

// What `count` nodes from `first` on make together, by merging.
dedup::plan::FrequentSet merged(const Data& data, std::uint32_t first, std::uint32_t count);

// The message that carries the same, drawn: as many fingerprints as the threshold lets through, the
// smallest of so many random ones, each of a random node. For data that is all unique this is the
// distribution that merging gives. A chunk that all nodes have is designated to nodes in turn,
// where merging would look at their load.
dedup::Bytes drawn(const Data& data, std::uint32_t first, std::uint32_t count);

}  // namespace beyond
