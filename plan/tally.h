// What a file consists of and how well it is held, added up block by block: a pure function of the
// recipe and of how many stores have each chunk.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/piece.h"
#include "base/types.h"

namespace dedup::plan {

class Tally {
 public:
  // `wanted`: on how many stores a chunk should be.
  Tally(std::uint64_t file_size, std::uint64_t wanted) : size_(file_size), wanted_(wanted) {}

  // Blocks in any order. copies[i]: how many stores have the chunk of piece i, sound; meaningless
  // for zeros.
  void add(std::uint64_t block_number, const Block& block, std::span<const std::uint64_t> copies);
  // Blocks of which nothing is known, as their recipe shard cannot be read.
  void add_unknown_blocks(std::uint64_t first, std::uint64_t step);

  std::uint64_t data_bytes() const { return data_bytes_; }  // covered by chunks; others are zeros
  // Pieces of chunks, each reference counted.
  std::uint64_t references() const { return references_; }
  // Of any chunk that the file refers to; `wanted` if it refers to none.
  std::uint64_t lowest_copies() const;
  // Bytes of the file with no copy, or with fewer than wanted but one at least.
  std::uint64_t lost_bytes() const { return lost_bytes_; }
  std::uint64_t short_bytes() const { return short_bytes_; }
  // What is lost, ascending, disjoint, not adjacent.
  std::vector<ByteRange> lost() const;

 private:
  void lose(std::uint64_t offset, std::uint64_t length);

  std::uint64_t size_;
  std::uint64_t wanted_;
  std::uint64_t data_bytes_ = 0;
  std::uint64_t references_ = 0;
  std::uint64_t lowest_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lost_bytes_ = 0;
  std::uint64_t short_bytes_ = 0;
  std::vector<ByteRange> lost_;  // in the order of blocks; adjacent ones of a block are joined
};

}  // namespace dedup::plan
