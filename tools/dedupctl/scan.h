// What would come of a file's content in the stores, for several sizes of chunks at once, from the
// bytes alone. No file and no store is known here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "hints/hints.h"

namespace dedup::ctl {

// How chunks are to be kept: on K nodes; with parities, what fewer nodes have is in stripes.
struct Way {
  unsigned copies = 2;
  unsigned data = 0;
  unsigned parities = 0;
};

// Bytes that a file would take. Estimates.
struct ScanCost {
  double stored = 0;  // of chunks and parities, on all nodes
  double sent = 0;    // between nodes
  double lists = 0;   // of recipes and indexes

  double disk() const { return stored + lists; }
  ScanCost& operator+=(const ScanCost& other);
};

// Bytes of a file. Estimates, but for `data`.
struct ScanFigures {
  std::uint64_t data = 0;     // without chunks of zeros
  double different = 0;       // each different chunk once
  double different_here = 0;  // once for each node that has it
  double before = 0;          // of the different ones: in files before it

  // Of the data, the share that is equal to other data of it; that each node finds by itself.
  double found() const { return share_left(different); }
  double found_alone() const { return share_left(different_here); }
  double found_before() const { return different == 0 ? 0 : before / different; }
  ScanFigures& operator+=(const ScanFigures& other);

 private:
  double share_left(double bytes) const {
    return data == 0 ? 0 : 1 - bytes / static_cast<double>(data);
  }
};

// The file is taken as written by `nodes` nodes, each a contiguous part of it. Chunks are counted
// all, or if there are too many those whose hashes have some bits zero, which is as good as drawing
// them by lot. Memory: some 10 MiB for each size. One thread at a time.
class Scan {
 public:
  // At most kMostNodes nodes. Sizes: ascending, each a part of the last.
  static constexpr unsigned kMostNodes = 64;
  Scan(std::vector<std::uint32_t> chunk_sizes, unsigned nodes,
       std::size_t most_counted = std::size_t{1} << 17);

  // Begins the next file, of that many bytes. What the files before it had is taken to be in the
  // stores already.
  void begin(std::uint64_t size);
  // Its bytes from there on. What is left out is zeros. `offset`: a multiple of the last size.
  void add(std::uint64_t offset, std::span<const std::byte> bytes);

  std::span<const std::uint32_t> chunk_sizes() const { return sizes_; }
  unsigned nodes() const { return nodes_; }

  // Of the file that was begun last, with chunks of sizes()[size].
  ScanFigures figures(std::size_t size) const;
  ScanCost cost(std::size_t size, const Way& way, hints::Mode mode) const;

 private:
  struct Chunk {
    std::uint64_t nodes = 0;  // a bit for each that has it
    std::uint64_t times = 0;
    std::uint32_t length = 0;
    bool before = false;
  };
  struct Counted {
    std::uint64_t data = 0;
    std::uint64_t mask = 0;
    std::unordered_map<std::uint64_t, Chunk> chunks;  // by hash
  };

  void add_chunk(Counted& counted, unsigned node, std::span<const std::byte> chunk) const;
  // What the counted chunks' bytes are to be multiplied with for the file's.
  static double scale(const Counted& counted);

  std::vector<std::uint32_t> sizes_;
  unsigned nodes_;
  std::size_t most_counted_;
  std::uint64_t parts_ = 1;  // of the file, each as long as the longest chunk
  std::vector<Counted> counted_;
};

}  // namespace dedup::ctl
