// The second stage of a round: what each of a rank's chunks is called, and what of it this node's
// store has already (stored_chunks.h finds out).
#pragma once

#include <cstdint>
#include <vector>

#include "base/hasher.h"
#include "base/numbered.h"
#include "engine/chunks/cut_chunks.h"
#include "plan/placement.h"
#include "store/log.h"

namespace dedup::engine {

// As it travels between ranks of a node. 40 bytes.
struct ChunkRecord {
  static constexpr std::uint32_t kNotHeld = 0xffffffff;

  Fingerprint fingerprint;
  std::uint32_t length = 0;
  // If this node's store has it: which of the placements that travel with it that knows of it.
  std::uint32_t held = kNotHeld;
};

struct ChunkRecords {
  std::vector<ChunkRecord> list;
  Numbered<plan::Placement> placements;
};

// This rank's chunks under the names that they keep. 29 bytes a chunk.
class NamedChunks {
 public:
  enum class Kind : std::uint8_t {
    kOpen,    // not known yet which of these
    kShared,  // others may have it under the same name
    kSingle,  // nobody else has it, nor its name: its rank alone decides about it
  };

  NamedChunks() = default;
  NamedChunks(CutChunks chunks, Kind kind)
      : chunks_(std::move(chunks)),
        kinds_(chunks_.size(), kind),
        held_(chunks_.size(), ChunkRecord::kNotHeld),
        singles_(kind == Kind::kSingle ? size() : 0) {}

  std::uint32_t size() const { return chunks_.size(); }
  const Fingerprint& name(std::size_t i) const { return chunks_.name(i); }
  std::span<const std::byte> data(std::size_t i) const { return chunks_.data(i); }
  std::uint32_t length(std::size_t i) const { return chunks_.length(i); }
  std::uint64_t checksum(std::size_t i) const { return chunks_.checksum(i); }
  std::span<DumpedPiece> pieces() const { return chunks_.pieces(); }
  bool is_open(std::size_t i) const { return kinds_[i] == Kind::kOpen; }
  bool is_single(std::size_t i) const { return kinds_[i] == Kind::kSingle; }
  bool is_held(std::size_t i) const { return held_[i] != ChunkRecord::kNotHeld; }
  std::uint32_t singles() const { return singles_; }
  std::uint64_t held_bytes() const;

  // Of one that is not single: it keeps its name.
  void share(std::size_t i) { kinds_[i] = Kind::kShared; }
  void name_single(std::size_t i, const Fingerprint& name);
  // The same, and this node's store has it under this name, and knows that it is kept so (on no
  // node: only that it has it itself).
  void name_held(std::size_t i, const Fingerprint& name, const plan::Placement& placement);

  // Those that are not single, in order. Once.
  ChunkRecords take_records();

 private:
  CutChunks chunks_;
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> held_;  // numbers in placements_
  Numbered<plan::Placement> placements_;
  std::uint32_t singles_ = 0;
};

// Those of the open chunks that may have a twin, may_have_twin[i] is not 0, are shared.
void share_twins(NamedChunks& chunks, const std::vector<std::uint8_t>& may_have_twin);

// The chunks that are still open are single: each gets a number, so that nothing else is called the
// same. `log`: what some of them may stand in already, or null; numbers go on only where they stand
// one after the other there (doc/format.md, "Segment").
void name_the_rest(NamedChunks& chunks, SingleNumbers& numbers,
                   const store::AdoptedLog* log = nullptr);

}  // namespace dedup::engine
