// How many items a call of MPI takes at once: it counts in int. What may be longer goes in pieces;
// what cannot be is bounded where it comes from, and says so by count_of().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace dedup::engine {

inline constexpr std::uint64_t kLargestCount = std::uint64_t{1} << 30;

// Calls each(first, count) for the pieces in which so many items go.
template <typename Each>
void in_pieces(std::uint64_t items, Each&& each) {
  for (std::uint64_t at = 0; at < items; at += kLargestCount) {
    each(at, static_cast<int>(std::min(kLargestCount, items - at)));
  }
}

// The same, where who receives them does not know how many they are: all pieces but the last are of
// kLargestCount items, and that one is of fewer, of none if need be.
template <typename Each>
void in_pieces_with_end(std::uint64_t items, Each&& each) {
  in_pieces(items, each);
  if (items % kLargestCount == 0) each(items, 0);
}

// Of items that are fewer than that for certain; ends the job if they are not.
int count_of(std::uint64_t items);

}  // namespace dedup::engine
