// What the bytes of a shard's file say. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/format.h"
#include "store/shard.h"

namespace dedup::store {

inline constexpr std::size_t kShardHeaderSize = 64;
// Longer blocks stand whole, and no block is a difference to one: a bound of what differences take,
// and of what somebody who reads a damaged length can be made to take.
inline constexpr std::size_t kMostDifferent = std::size_t{1} << 19;

Bytes encode_shard_header(const Id128& identity, const Id128& attempt, std::uint32_t shard,
                          std::uint32_t version = format::kShard.version);
// The version, of `header`, if it is that shard's; kCorrupt or kVersion else. Of which file is not
// compared: others may share it. `name` starts a message.
Result<std::uint32_t> check_shard_header(std::span<const std::byte> header, const Id128& attempt,
                                         std::uint32_t shard, const std::string& name);

// Another attempt's file of the same shard, in which blocks stand that were carried over.
struct ShardDonor {
  Id128 attempt;
  std::uint64_t bytes = 0;  // of all blocks and differences that stand in it, used or not
};

// Where bytes stand.
struct ShardPlace {
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t donor = 0;  // 0: in this file; n: in the n-th donor's
};

// The same block as it was once, whole, to which another is a difference.
struct ShardBasis {
  ShardPlace place;
  std::uint64_t checksum = 0;  // as of an EncodedBlock
};

struct ShardTableEntry {
  BlockSummary block;
  ShardPlace place;                 // of its bytes or, with a basis, of the difference
  std::optional<ShardBasis> basis;  // store/files/difference.h
};

struct ShardTable {
  std::vector<ShardDonor> donors;
  std::vector<ShardTableEntry> entries;  // ascending
  std::uint64_t blocks_end = kShardHeaderSize;

  const ShardTableEntry* find(std::uint64_t block_number) const;
};

// As digests have it.
void put_summary(Encoder& out, const BlockSummary& block);

// What follows the blocks: donors, table, what differences are to, footer.
Bytes encode_shard_end(const ShardTable& table);

// What a shard's footer says of what stands before it. Its own size depends on the version.
struct ShardFooter {
  std::uint64_t blocks_end = 0;
  std::uint64_t entries = 0;
  std::uint32_t donors = 0;
  std::uint32_t differences = 0;
  std::uint64_t checksum = 0;  // of what stands between blocks and footer; version 1 has none

  static std::size_t size(std::uint32_t version);
  // `tail`: where it stands in the file.
  static Result<ShardFooter> decode(std::span<const std::byte> bytes, std::uint32_t version,
                                    std::uint64_t tail, const std::string& name);
};

// From the bytes between blocks and footer. kCorrupt if it cannot be, or if the digest, to which
// `header` belongs, is another one.
Result<ShardTable> decode_shard_table(std::span<const std::byte> header,
                                      std::span<const std::byte> bytes, std::uint32_t version,
                                      const ShardFooter& footer, const Digest& digest,
                                      const std::string& name);

}  // namespace dedup::store
