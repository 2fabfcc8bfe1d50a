// One rank's access to a file: which file bytes, and where they are in memory.
//
// Flattened datatypes are kept as they are (one repetition each), never multiplied out: walking an
// access takes constant memory whatever its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dedup::plan {

// One repetition of a datatype: piece i covers lengths[i] bytes at offsets[i]; the next repetition
// starts `extent` bytes further on. Pieces may be empty. `size` is the sum of the lengths.
struct FlatType {
  std::span<const std::int64_t> offsets;
  std::span<const std::int64_t> lengths;
  std::int64_t extent = 0;
  std::int64_t size = 0;
};

// File side: from data byte number `start` of a view that begins at file byte `displacement` and
// repeats `filetype`. Memory side: `memtype` repeated from `memory`. `bytes` bytes in all.
// Offsets of a filetype never decrease; those of a memtype may.
struct Access {
  std::int64_t displacement = 0;
  FlatType filetype;
  std::int64_t start = 0;
  std::byte* memory = nullptr;
  FlatType memtype;
  std::uint64_t bytes = 0;
};

// Bytes that are contiguous in the file and in memory.
struct Fragment {
  std::uint64_t file_offset = 0;
  std::byte* memory = nullptr;
  std::uint64_t length = 0;
};

// Walks an access in the order of its data, as maximal fragments: two that follow each other are
// not contiguous both in the file and in memory. The Access must outlive the walk. Starting takes
// time in the number of pieces of one repetition at most, each step constant time.
class FragmentWalk {
 public:
  explicit FragmentWalk(const Access& access);

  // The next fragment, or one of length 0 at the end.
  Fragment next();
  // The next bytes, cut to at most `limit`; what is left of the fragment comes next.
  Fragment next(std::uint64_t limit);

 private:
  // One datatype's position: repetition, piece, bytes into the piece.
  class Position {
   public:
    Position(const FlatType& type, std::int64_t start);
    std::int64_t offset() const;  // of the current byte, from the type's start
    std::uint64_t left() const;   // bytes left in the current piece; 0 if the type has no data
    void advance(std::uint64_t bytes);

   private:
    void skip_empty();

    const FlatType* type_;
    std::int64_t repetition_ = 0;
    std::size_t piece_ = 0;
    std::int64_t within_ = 0;
  };

  Fragment step(std::uint64_t limit);

  const Access* access_;
  Position file_;
  Position memory_;
  std::uint64_t left_;
  Fragment pending_;
};

}  // namespace dedup::plan
