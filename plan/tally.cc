#include "plan/tally.h"

#include <algorithm>

#include "base/byte_ranges.h"

namespace dedup::plan {

void Tally::add(std::uint64_t block_number, const Block& block, std::span<const Redundancy> kept) {
  for (std::size_t i = 0; i < block.pieces.size(); ++i) {
    const Piece& piece = block.pieces[i];
    if (piece.is_zero()) continue;
    ++references_;
    data_bytes_ += piece.length;
    lowest_ = std::min(lowest_, kept[i]);
    if (kept[i].is_lost()) {
      lose(block_number * kBlockSpan + piece.begin, piece.length);
    } else if (kept[i] < wanted_) {
      short_bytes_ += piece.length;
    }
  }
}

void Tally::add_unknown_blocks(std::uint64_t first, std::uint64_t step) {
  for (std::uint64_t block = first; block * kBlockSpan < size_; block += step) {
    const std::uint64_t begin = block * kBlockSpan;
    lose(begin, std::min(kBlockSpan, size_ - begin));
    lowest_ = Redundancy::copies(0);
  }
}

void Tally::lose(std::uint64_t offset, std::uint64_t length) {
  lost_bytes_ += length;
  append(lost_, {offset, length});
}

std::vector<ByteRange> Tally::lost() const {
  return joined(lost_);
}

}  // namespace dedup::plan
