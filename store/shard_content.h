// What a shard's bytes say, wherever they are. For the stores' implementations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/shard.h"

namespace dedup::store {

inline constexpr std::size_t kShardHeaderSize = 64;
inline constexpr std::size_t kShardEntrySize = 32;
inline constexpr std::string_view kShardFooterMagic = "DEDUPEND";

Bytes encode_shard_header(const Id128& identity, const Id128& attempt, std::uint32_t shard);

class ShardContent : public ShardReader {
 public:
  Result<EncodedBlock> read_encoded(std::uint64_t block_number) const override;
  std::vector<std::uint64_t> block_numbers() const override;

 protected:
  // Reads the table. kCorrupt if this is not that shard of that attempt, or its digest is another.
  Status load(const Id128& identity, const Id128& attempt, std::uint32_t shard,
              const Digest& digest);

 private:
  // All of `out`; kCorrupt if the shard ends before.
  virtual Status read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  virtual Result<std::uint64_t> size() const = 0;
  virtual const std::string& name() const = 0;  // for messages

  struct TableEntry {
    std::uint64_t block = 0;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::uint64_t checksum = 0;
  };
  // Where the table is, from the footer; its entries are left to read.
  Result<std::uint64_t> read_footer(std::uint64_t size, std::uint64_t& entries) const;

  std::vector<TableEntry> table_;
};

}  // namespace dedup::store
