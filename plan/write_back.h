// Who writes back what of a file. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace dedup::plan {

// Of `missing` (ascending, disjoint) every writer gets one part, long and contiguous, so that each
// stripe of a file system has few writers: about as many bytes each, cut at multiples of `unit` of
// the file, so that no two write to one unit. One entry a writer, empty for those that get nothing;
// in order of the file. (File domains; cf. papers/burst-buffer-2015, "two-phase I/O".)
std::vector<std::vector<ByteRange>> deal_to_writers(std::span<const ByteRange> missing,
                                                    std::size_t writers, std::uint64_t unit);

// The unit, of a file system that has blocks (stripes) of `block` bytes; 0: nobody knows. Whole
// blocks of the file's recipe, too, where `block` allows it.
std::uint64_t writing_unit(std::uint64_t block);

}  // namespace dedup::plan
