// The first stage of a round: a rank's data as chunks, each once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/chunk_namer.h"
#include "engine/chunks/dump_result.h"
#include "engine/chunks/first_error.h"
#include "plan/cut.h"

namespace dedup::engine {

// Walks a rank's runs chunk by chunk, over several rounds.
class RunCursor {
 public:
  // `runs` must outlive the cursor.
  RunCursor(std::span<const DumpRun> runs, std::uint32_t chunk_size);

  struct Chunk {
    std::uint64_t file_offset = 0;
    std::span<const std::byte> data;  // empty at the end
    bool zero = false;
  };
  Chunk next();
  // How many there are still, at most.
  std::uint64_t left() const { return left_; }

 private:
  std::span<const DumpRun> runs_;
  std::uint32_t chunk_size_;
  std::uint64_t left_ = 0;
  std::size_t next_ = 0;
  const DumpRun* run_ = nullptr;
  plan::ChunkCutter cutter_{{}, 1};
};

// A rank's chunks of a round that are not zeros, each once. What a chunk is called stands in the
// first piece that consists of it, so that a name takes memory once. 24 bytes a chunk.
class CutChunks {
 public:
  CutChunks() = default;

  std::uint32_t size() const { return static_cast<std::uint32_t>(chunks_.size()); }
  std::span<const std::byte> data(std::size_t i) const {
    return {chunks_[i].data, chunks_[i].length};
  }
  std::uint32_t length(std::size_t i) const { return chunks_[i].length; }
  // Of the data, when they were cut: the low half of fast_hash().
  std::uint64_t checksum(std::size_t i) const { return chunks_[i].checksum; }
  const Fingerprint& name(std::size_t i) const { return pieces_[chunks_[i].piece].fingerprint; }
  void rename(std::size_t i, const Fingerprint& name) {
    pieces_[chunks_[i].piece].fingerprint = name;
  }
  // The round's, in the order of the runs. Until the round's end `placement` of one that is not
  // zeros is the number of its chunk.
  std::span<DumpedPiece> pieces() const { return pieces_; }

  // Bytes.
  struct Sums {
    std::uint64_t cut = 0;
    std::uint64_t zero = 0;
    std::uint64_t unique = 0;
  };
  const Sums& sums() const { return sums_; }

 private:
  friend class ChunkCollector;

  struct Chunk {
    const std::byte* data = nullptr;
    std::uint32_t length = 0;
    std::uint32_t piece = 0;  // of pieces_, the first that consists of it
    std::uint64_t checksum = 0;
  };

  std::span<DumpedPiece> pieces_;
  std::vector<Chunk> chunks_;
  Sums sums_;
};

// Takes chunks from `cursor` until there were `most` that are not zeros, and appends their pieces
// to `pieces`, which is not to grow again before the round ends. Each is called by its content, and
// those that are called the same are one. At most 11 bytes for each of `most` while it runs. After
// an error nothing may come of this round.
CutChunks cut_distinct(RunCursor& cursor, std::uint64_t most, ChunkNamer& namer,
                       std::vector<DumpedPiece>& pieces, FirstError& error);

// The same without looking for equal ones (mode `none`): each is called by the next number.
CutChunks cut_numbered(RunCursor& cursor, std::uint64_t most, UniqueNumbers& numbers,
                       std::vector<DumpedPiece>& pieces);

}  // namespace dedup::engine
