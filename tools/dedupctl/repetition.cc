#include "tools/dedupctl/repetition.h"

#include <algorithm>
#include <bit>
#include <map>

namespace dedup::ctl {

void Repetition::add(const Piece& piece) {
  if (!is_counted(piece.fingerprint)) return;
  Occurring& chunk = chunks_[piece.fingerprint];
  chunk.bytes += piece.length;
  chunk.length = piece.chunk_length;
  while (chunks_.size() > most_counted_) {
    mask_ = 2 * mask_ + 1;
    std::erase_if(chunks_, [&](const auto& one) { return !is_counted(one.first); });
  }
}

std::vector<Repetition::Row> Repetition::rows() const {
  std::map<std::uint64_t, std::uint64_t> bytes;  // by the most times of a row
  std::uint64_t all = 0;
  for (const auto& [name, chunk] : chunks_) {
    // What is left of a chunk that was overwritten in part counts as often as its bytes do.
    const std::uint64_t times =
        std::max<std::uint64_t>(1, (chunk.bytes + chunk.length / 2) / chunk.length);
    bytes[std::bit_ceil(times)] += chunk.bytes;
    all += chunk.bytes;
  }
  std::vector<Row> rows;
  for (const auto& [most, sum] : bytes) {
    rows.push_back({most <= 2 ? most : most / 2 + 1, most,
                    static_cast<double>(sum) / static_cast<double>(all)});
  }
  return rows;
}

}  // namespace dedup::ctl
