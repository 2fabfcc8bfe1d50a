// What a file consists of and how well it is held, added up block by block: a pure function of the
// recipe and of what the stores have of each chunk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "plan/block.h"
#include "plan/placement.h"

namespace dedup::plan {

class Tally {
 public:
  // `wanted`: how well each chunk should be kept.
  Tally(std::uint64_t file_size, Redundancy wanted) : size_(file_size), wanted_(wanted) {}

  // Blocks in any order. kept[i]: how well the chunk of piece i is, by what is sound; meaningless
  // for zeros.
  void add(std::uint64_t block_number, const Block& block, std::span<const Redundancy> kept);
  // Blocks of which nothing is known, as their recipe shard cannot be read.
  void add_unknown_blocks(std::uint64_t first, std::uint64_t step);

  std::uint64_t data_bytes() const { return data_bytes_; }  // covered by chunks; others are zeros
  // Pieces of chunks, each reference counted.
  std::uint64_t references() const { return references_; }
  // Of any chunk that the file refers to; `wanted` if it refers to none.
  Redundancy lowest() const { return lowest_.is_boundless() ? wanted_ : lowest_; }
  // Bytes of the file that are lost, or kept less well than is wanted but not lost.
  std::uint64_t lost_bytes() const { return lost_bytes_; }
  std::uint64_t short_bytes() const { return short_bytes_; }
  // What is lost, ascending, disjoint, not adjacent.
  std::vector<ByteRange> lost() const;

 private:
  void lose(std::uint64_t offset, std::uint64_t length);

  std::uint64_t size_;
  Redundancy wanted_;
  std::uint64_t data_bytes_ = 0;
  std::uint64_t references_ = 0;
  Redundancy lowest_ = Redundancy::boundless();
  std::uint64_t lost_bytes_ = 0;
  std::uint64_t short_bytes_ = 0;
  std::vector<ByteRange> lost_;  // in the order of blocks; adjacent ones of a block are joined
};

}  // namespace dedup::plan
