// The second stage of a round: what each of a rank's chunks is called.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hasher.h"
#include "engine/chunks/cut_chunks.h"
#include "engine/chunks/first_error.h"
#include "engine/chunks/single_chunks.h"

namespace dedup::engine {

// As it travels between ranks of a node. 36 bytes.
struct ChunkRecord {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
};

// This rank's chunks under the names that they keep. 24 bytes and a bit a chunk.
class NamedChunks {
 public:
  NamedChunks() = default;
  // All of them are single, or none is.
  NamedChunks(CutChunks chunks, bool single)
      : chunks_(std::move(chunks)),
        single_(chunks_.size(), single),
        singles_(single ? size() : 0) {}

  std::uint32_t size() const { return chunks_.size(); }
  const Fingerprint& name(std::size_t i) const { return chunks_.name(i); }
  std::span<const std::byte> data(std::size_t i) const { return chunks_.data(i); }
  std::uint32_t length(std::size_t i) const { return chunks_.length(i); }
  std::uint64_t checksum(std::size_t i) const { return chunks_.checksum(i); }
  std::span<DumpedPiece> pieces() const { return chunks_.pieces(); }
  // Whether nobody else has it, nor its name: its rank alone decides about it.
  bool is_single(std::size_t i) const { return single_[i]; }
  std::uint32_t singles() const { return singles_; }
  // The others, in order.
  std::vector<ChunkRecord> shared_records() const;

  void rename(std::size_t i, const Fingerprint& name) { chunks_.rename(i, name); }
  void rename_single(std::size_t i, const Fingerprint& name);

 private:
  CutChunks chunks_;
  std::vector<bool> single_;
  std::uint32_t singles_ = 0;
};

// What becomes of the fast hashes that the chunks are called by. twin[i]: whether chunk i came more
// than once among the ranks (twins.h). `stored`: what this node's store has (single_chunks.h). A
// chunk is called by the name that it has in the store if it was single there, and is the same; by
// its strong fingerprint if there may be a twin of it among the ranks or in the store; else by its
// fast hash and a number. `fingerprinted`: bytes that took the strong hash. What could not be
// hashed keeps its fast hash, which proves nothing: nothing may come of this round.
NamedChunks name_chunks(CutChunks chunks, const std::vector<std::uint8_t>& twin,
                        const SingleChunks::Known& stored, Hasher& hasher, SingleNumbers& numbers,
                        std::uint64_t& fingerprinted, FirstError& error);

}  // namespace dedup::engine
