// A rank's own data as runs that are contiguous in file and memory, in rounds of bounded memory.
//
// A stretch is data that is contiguous in the file. Chunks are cut from the start of each stretch;
// where memory has gaps within a chunk, the chunk is gathered in a buffer, everything else stays
// where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/access.h"

namespace dedup::plan {

// A FragmentWalk that shows the fragment it is at, and the one after it.
class FragmentCursor {
 public:
  // `access` must outlive the cursor and its copies.
  explicit FragmentCursor(const Access& access)
      : walk_(access), current_(walk_.next()), following_(walk_.next()) {}

  // Of length 0 at the end.
  const Fragment& current() const { return current_; }
  // Whether the file's next bytes come after the current fragment.
  bool goes_on() const {
    return following_.length != 0 &&
           following_.file_offset == current_.file_offset + current_.length;
  }
  // Moves on by `bytes` of the current fragment.
  void consume(std::uint64_t bytes) {
    if (bytes < current_.length) {
      current_.file_offset += bytes;
      current_.memory += bytes;
      current_.length -= bytes;
      return;
    }
    current_ = following_;
    following_ = walk_.next();
  }

 private:
  FragmentWalk walk_;
  Fragment current_;
  Fragment following_;
};

// How many stretches an access has, judged by its first `most` fragments.
std::uint64_t count_stretches(const Access& access, std::uint64_t most);

// Contiguous in file and memory.
struct MemoryRun {
  std::uint64_t file_offset = 0;
  const std::byte* data = nullptr;
  std::uint64_t length = 0;
};

class StretchRounds {
 public:
  struct Limits {
    std::uint64_t staging = 0;  // bytes; at least a chunk is taken
    std::size_t runs = 1;       // in a round
    std::uint64_t chunks = 1;   // in a round
  };
  // `access` must outlive this.
  StretchRounds(const Access& access, std::uint32_t chunk_size, const Limits& limits);

  // False if there was no memory for the buffer.
  bool ok() const { return staging_ != nullptr; }
  // The next round's runs, in the order of the access, valid until the next call. A stretch that
  // does not end in this round ends here at a multiple of the chunk size from its start. Returns
  // whether there is more.
  bool next(std::vector<MemoryRun>& runs);

 private:
  void add(std::vector<MemoryRun>& runs, const MemoryRun& run);
  MemoryRun gather();

  FragmentCursor cursor_;
  std::uint32_t chunk_size_;
  Limits limits_;
  std::unique_ptr<std::byte[]> staging_;
  std::uint64_t staged_ = 0;
  std::uint64_t chunks_ = 0;
};

}  // namespace dedup::plan
