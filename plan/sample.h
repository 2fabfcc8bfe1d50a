// What a sample of a file's data says of how well it could deduplicate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>

#include "plan/block.h"

namespace dedup::plan {

// Whether block `number` of `blocks` is in the sample: all of few, else about kSampledBlocks of
// them, at places that are as good as random, so that no layout of ranks' data comes in between.
// The same for the same file.
inline constexpr std::uint64_t kSampledBlocks = 32;
bool is_sampled(std::uint64_t number, std::uint64_t blocks);

// Bits a byte carries at most, by how often each value occurs: 8 if all do alike, 0 if one does.
double entropy(std::span<const std::byte> bytes);

// Of the bytes that are not zeros by the recipe, those that are zeros, or equal to what came before
// in the sample:
struct SampleFigures {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t as_cut = 0;     // cut as they are
  std::uint64_t in_halves = 0;  // with each chunk cut in two; 0 if chunks cannot be smaller
  // Cut where the content says, in chunks of about the same size: also what is equal but begins at
  // different places in its chunks.
  std::uint64_t anywhere = 0;
  // Of all bytes, those in chunks with values as evenly spread as in compressed or encrypted data.
  std::uint64_t dense = 0;

  SampleFigures& operator+=(const SampleFigures& other);
};

// Memory: some 40 bytes for each different chunk of the sample, of each way to cut. One thread at a
// time.
class Sample {
 public:
  explicit Sample(std::uint32_t chunk_size);

  // `content`: the block's, up to its or the file's end.
  void add(const Block& block, std::span<const std::byte> content);
  // A contiguous piece as a program writes it, which chunks are cut from the start of. What of it
  // is chunks of zeros counts as none of the figures' bytes.
  void add_written(std::span<const std::byte> piece);
  const SampleFigures& figures() const { return figures_; }

 private:
  // What was there, by its hash: a chance of one in 2^64 for each pair that are not equal.
  class Seen {
   public:
    // The bytes of it that need not be stored: all or none.
    std::uint64_t found(std::span<const std::byte> bytes);

   private:
    std::unordered_set<std::uint64_t> hashes_;
  };

  void add_chunk(std::span<const std::byte> chunk);
  // Bytes that follow each other in the file.
  void add_run(std::span<const std::byte> run);
  std::size_t cut(std::span<const std::byte> rest) const;

  std::uint32_t chunk_size_;
  std::array<std::uint64_t, 256> gear_{};
  SampleFigures figures_;
  Seen as_cut_;
  Seen in_halves_;
  Seen anywhere_;
};

}  // namespace dedup::plan
