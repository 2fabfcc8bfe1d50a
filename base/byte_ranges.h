// Sets of a file's bytes, as ranges. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace dedup {

// The same bytes, ascending and disjoint, no range empty and none beside the next. `ranges`: in any
// order, may overlap.
std::vector<ByteRange> joined(std::vector<ByteRange> ranges);

// Adds a range; to the last one, if it begins where that ends.
void append(std::vector<ByteRange>& ranges, const ByteRange& range);

// What of a file of `size` bytes is in none of `ranges`; ascending.
std::vector<ByteRange> missing(std::vector<ByteRange> ranges, std::uint64_t size);

// What is in some range of either; ascending.
std::vector<ByteRange> common(std::vector<ByteRange> a, std::vector<ByteRange> b);

std::uint64_t bytes_of(std::span<const ByteRange> ranges);

}  // namespace dedup
