// Recipe shards: shard s of S holds the blocks b with b % S == s. Format in doc/format.md.
//
// A shard file is its blocks, one after the other, then a table (block number, offset, length,
// checksum of each), then a footer with the table's digest. A reader loads the table's pages and
// the blocks it needs, never the whole.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

// Builds a shard file's bytes piecemeal, so that whoever builds one need not be where it is kept.
// Memory: the table only (32 bytes a block).
class ShardBuilder {
 public:
  ShardBuilder(const Id128& identity, const Id128& attempt, std::uint32_t shard);
  ~ShardBuilder();

  // The bytes to append to the file, call by call: header, then blocks in ascending order (empty
  // ones are left out by the caller), then table and footer.
  Bytes header() const;
  Bytes add(std::uint64_t block_number, const Block& block);
  Bytes finish();
  // After finish(): what the commit record names.
  const Digest& digest() const;

 private:
  struct Private;
  std::unique_ptr<Private> p_;
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
