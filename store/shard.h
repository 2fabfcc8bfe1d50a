// Recipe shards: shard s of S holds the blocks b with b % S == s. Format in doc/format.md.
//
// A shard is made of blocks that come whole and of blocks that stay as an earlier generation's
// shard of the same number has them. Where each stands is the store's own matter; what the shard
// says, and so its digest, is the same wherever that is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/codec.h"
#include "base/status.h"
#include "base/types.h"
#include "plan/block.h"
#include "store/commit_record.h"

namespace dedup::store {

// One block as bytes (Block::encode(), but compact: adjacent pieces that continue a chunk or a run
// of zeros are joined, placements stored once) and back.
Bytes encode_block(const Block& block);
// kVersion, naming it, for a kind of placement that this software does not know; kCorrupt for
// everything else that does not hold.
Result<Block> decode_block(std::span<const std::byte> bytes);

// A block as a shard has it: encoded, with the checksum that was made with it. Without bytes it was
// never written.
struct EncodedBlock {
  std::uint64_t number = 0;
  Bytes bytes;
  std::uint64_t checksum = 0;
  bool possible() const { return number < kBlocks; }
};
EncodedBlock with_checksum(std::uint64_t number, Bytes bytes);
bool holds(const EncodedBlock& block);

// What tells a block from every other one, without its bytes.
struct BlockSummary {
  std::uint64_t number = 0;
  std::uint32_t length = 0;  // encoded, in bytes
  std::uint64_t checksum = 0;
  bool possible() const { return number < kBlocks; }
  auto operator<=>(const BlockSummary&) const = default;
};
BlockSummary summary_of(const EncodedBlock& block);

// Makes what the commit record names a shard by. Memory: 20 bytes a block.
class ShardDigest {
 public:
  ShardDigest(const Id128& identity, const Id128& attempt, std::uint32_t shard);

  void add(const BlockSummary& block);  // in ascending order
  Digest digest() const;

 private:
  Encoder named_;
};

// An earlier generation, whose blocks of a shard may stay as they are.
struct ShardBase {
  Id128 attempt;  // zero: none
  Digest digest{};
};

// Writes a shard. Blocks may come in any order, each once. Memory: 80 bytes a block, and a
// few MiB for what it has not written yet. One thread.
class ShardWriter {
 public:
  virtual ~ShardWriter() = default;

  // Whether the base is here, as far as that can be told without reading its blocks.
  virtual bool can_carry() const = 0;
  // A block that comes whole.
  virtual Status add(const EncodedBlock& block) = 0;
  // A block that stays as the base has it. False, and nothing is done, if no sound block that is
  // just this one can be read there.
  virtual Result<bool> carry(const BlockSummary& block) = 0;
  // All blocks are there. Nothing may be called afterwards.
  virtual Status finish() = 0;
};

// Reads blocks of a shard. One thread at a time.
class ShardReader {
 public:
  virtual ~ShardReader() = default;

  // The block as encode_block() made it (checked against its checksum); empty bytes if the shard
  // has no such block, which means that it was never written.
  Result<Bytes> read(std::uint64_t block_number) const;
  virtual Result<EncodedBlock> read_encoded(std::uint64_t block_number) const = 0;
  // Numbers of the blocks it has, ascending.
  virtual std::vector<std::uint64_t> block_numbers() const = 0;
};

}  // namespace dedup::store
