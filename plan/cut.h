// Cutting contiguous data into chunks, and finding those that are equal.
//
// Chunks are cut from the start of each contiguous piece of a rank's data, whatever its place in
// the file, so that equal data at different file offsets gives equal chunks. No allocation but the
// table's; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace dedup::plan {

// True if all bytes are zero. Gives up at the first 64 bytes that are not, so that data costs next
// to nothing.
bool all_zero(std::span<const std::byte> bytes);

// How many chunks `length` bytes are cut into.
constexpr std::uint64_t chunk_count(std::uint64_t length, std::uint32_t chunk_size) {
  return length / chunk_size + (length % chunk_size != 0 ? 1 : 0);
}

// A chunk that is not all zeros, or chunks of zeros that follow each other. Empty at the end.
struct Cut {
  std::uint64_t offset = 0;  // from the start of the data
  std::uint32_t length = 0;  // of a chunk: at most chunk_size; of zeros: at most kBlockSpan
  bool zero = false;
};

// Walks contiguous data chunk by chunk: all chunk_size long but the last.
class ChunkCutter {
 public:
  // `data` must outlive the walk.
  ChunkCutter(std::span<const std::byte> data, std::uint32_t chunk_size)
      : data_(data), chunk_size_(chunk_size) {}

  Cut next();

 private:
  std::span<const std::byte> at(std::uint64_t offset) const;

  std::span<const std::byte> data_;
  std::uint32_t chunk_size_;
  std::uint64_t next_ = 0;
  bool known_not_zero_ = false;  // the chunk at next_ was looked at before
};

// Finds equal fingerprints among items that are kept elsewhere: a hash table of item numbers, 4
// bytes a slot, at most 3/4 full.
class FingerprintTable {
 public:
  // Room for `items` items; forgets what was there.
  void reset(std::size_t items);

  // The number of the item with this fingerprint; enters `number` if there is none.
  // `fingerprint_of` gives an entered item's fingerprint by its number. No more items than reset()
  // was told.
  template <typename FingerprintOf>
  std::uint32_t find_or_enter(const Fingerprint& fingerprint, std::uint32_t number,
                              FingerprintOf&& fingerprint_of) {
    return find_or_enter_if(fingerprint.prefix(), number, [&](std::uint32_t item) {
      return fingerprint_of(item) == fingerprint;
    });
  }
  // The same for items that are equal if `equal` says so of an entered one; equal items have equal
  // prefixes.
  template <typename Equal>
  std::uint32_t find_or_enter_if(std::uint64_t prefix, std::uint32_t number, Equal&& equal) {
    for (std::size_t i = start(prefix);; i = (i + 1) & mask_) {
      if (slots_[i] == kEmpty) {
        slots_[i] = number;
        return number;
      }
      if (equal(slots_[i])) return slots_[i];
    }
  }

 private:
  static constexpr std::uint32_t kEmpty = 0xffffffff;

  std::size_t start(std::uint64_t prefix) const {
    // Multiplied, since in mode `none` fingerprints are numbers.
    return static_cast<std::size_t>(prefix * 0x9e3779b97f4a7c15u >> 20) & mask_;
  }

  std::vector<std::uint32_t> slots_;
  std::size_t mask_ = 0;
};

}  // namespace dedup::plan
