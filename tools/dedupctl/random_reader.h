// Any bytes of a generation in any order, as programs ask a file system for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/lru.h"
#include "base/status.h"
#include "plan/tally.h"
#include "tools/dedupctl/elsewhere.h"
#include "tools/dedupctl/generation.h"

namespace dedup::ctl {

// What was read of some generations and is likely to be asked for again: a program reads on in the
// middle of a chunk, and of a block's recipe many times.
class ReadCache {
 public:
  ReadCache() = default;
  ReadCache(const ReadCache&) = delete;
  ReadCache& operator=(const ReadCache&) = delete;

 private:
  friend class RandomReader;
  using Blocks = Lru<std::pair<std::uint64_t, std::uint64_t>, NumberedBlock>;  // reader, block
  using Chunks = Lru<std::pair<std::uint64_t, Fingerprint>, Bytes>;            // reader, chunk

  static constexpr std::size_t kBytesOfRecipes = std::size_t{32} << 20;
  static constexpr std::size_t kBytesOfChunks = std::size_t{64} << 20;

  std::uint64_t readers_ = 0;  // that there have been
  Blocks blocks_{kBytesOfRecipes};
  Chunks chunks_{kBytesOfChunks};
};

class RandomReader {
 public:
  // A generation that this process has opened alone (OneRank). `elsewhere`: what is asked for what
  // the stores here do not have, or null. The cache outlives the reader, and serves one thread.
  RandomReader(std::unique_ptr<Generation> generation, ReadCache& cache,
               std::unique_ptr<Elsewhere> elsewhere)
      : generation_(std::move(generation)),
        elsewhere_(std::move(elsewhere)),
        cache_(cache),
        number_(++cache.readers_) {}
  RandomReader(const RandomReader&) = delete;
  RandomReader& operator=(const RandomReader&) = delete;
  ~RandomReader();

  const Generation& generation() const { return *generation_; }
  // Whether others than the stores here are asked now.
  bool asks_others() const { return elsewhere_ && elsewhere_->is_there(); }

  // These bytes of the file, which must be within it: every chunk checked, a bad copy replaced by
  // another store's, what no store has as a whole made from its stripe, and what is then missing
  // asked for elsewhere. The ranges that cannot be had, ascending; `out` is zeros there. An error
  // says that the recipe cannot be read. Memory: 16 MiB of chunks beside the cache.
  Result<std::vector<ByteRange>> read(std::uint64_t offset, std::span<std::byte> out);

 private:
  Status read_block(std::uint64_t number, std::uint32_t begin, std::span<std::byte> out,
                    std::vector<ByteRange>& lost);
  // Some pieces that are in [begin, begin + out.size()) of the block.
  void read_pieces(const NumberedBlock& block, std::span<const Piece> pieces, std::uint32_t begin,
                   std::span<std::byte> out, std::vector<ByteRange>& lost);
  // Good until the next call.
  Result<const NumberedBlock*> block(std::uint64_t number);
  std::vector<Bytes> read_chunks(const NumberedBlock& block, std::span<const Piece> wanted);

  std::unique_ptr<Generation> generation_;
  std::unique_ptr<Elsewhere> elsewhere_;
  NumberedBlock unknown_;  // a block that is nowhere, as far as could be found out now
  ReadCache& cache_;
  std::uint64_t number_;
};

}  // namespace dedup::ctl
