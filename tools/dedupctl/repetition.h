// How often the chunks of a file occur in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/piece.h"

namespace dedup::ctl {

// Chunks are counted all, or if there are too many those whose names have some bits zero, which is
// as good as drawing them by lot. Memory: some 80 bytes for each that is counted. One thread at a
// time.
class Repetition {
 public:
  explicit Repetition(std::size_t most_counted = std::size_t{1} << 18)
      : most_counted_(most_counted) {}

  void add(const Piece& piece);  // not of zeros

  // Of the file's data, what is in chunks that occur so many times.
  struct Row {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    double share = 0;
  };
  // 1, 2, 3 to 4, 5 to 8 and so on, as far as there are any.
  std::vector<Row> rows() const;

 private:
  struct Occurring {
    std::uint64_t bytes = 0;  // of the file
    std::uint32_t length = 0;
  };

  bool is_counted(const Fingerprint& name) const { return (name.leading() & mask_) == 0; }

  std::size_t most_counted_;
  std::uint64_t mask_ = 0;
  std::unordered_map<Fingerprint, Occurring> chunks_;
};

}  // namespace dedup::ctl
