#include "store/shard_content.h"

#include <algorithm>
#include <array>

#include "base/codec.h"
#include "store/format.h"

namespace dedup::store {
namespace {

constexpr std::size_t kFooterSize = 64;

}  // namespace

Bytes encode_shard_header(const Id128& identity, const Id128& attempt, std::uint32_t shard) {
  Encoder out;
  format::put_start(out, format::kShard);
  out.put(shard);
  out.put(identity);
  out.put(attempt);
  out.put(std::uint64_t{0});
  format::put_checksum(out);
  return out.take();
}

Result<std::uint64_t> ShardContent::read_footer(std::uint64_t whole, std::uint64_t& entries) const {
  if (whole < kShardHeaderSize + kFooterSize) return format::corrupt(name(), "cut off");
  std::array<std::byte, kFooterSize> bytes;
  DEDUP_TRY(read_at(whole - kFooterSize, bytes));
  std::span<const std::byte> body = bytes;
  Decoder in(body);
  char magic[8];
  in.get_raw(magic, sizeof magic);
  const auto offset = in.get<std::uint64_t>();
  entries = in.get<std::uint64_t>();
  const std::uint64_t tail = whole - kFooterSize;
  if (std::string_view(magic, sizeof magic) != kShardFooterMagic || !format::take_checksum(body) ||
      offset < kShardHeaderSize || offset > tail || (tail - offset) % kShardEntrySize != 0 ||
      entries != (tail - offset) / kShardEntrySize) {
    return format::corrupt(name(), "cut off, or its footer is damaged");
  }
  return offset;
}

Status ShardContent::load(const Id128& identity, const Id128& attempt, std::uint32_t shard,
                          const Digest& digest) {
  const std::string& path = name();
  Bytes named(kShardHeaderSize);
  DEDUP_TRY(read_at(0, named));
  Decoder start(named);
  DEDUP_TRY(format::check_start(start, format::kShard, path));
  if (named != encode_shard_header(identity, attempt, shard))
    return format::corrupt(path, "not the recipe shard named");
  DEDUP_ASSIGN(const std::uint64_t whole, size());
  std::uint64_t entries = 0;
  DEDUP_ASSIGN(const std::uint64_t table_at, read_footer(whole, entries));
  named.resize(kShardHeaderSize + entries * kShardEntrySize);
  DEDUP_TRY(read_at(table_at, std::span(named).subspan(kShardHeaderSize)));
  if (format::sha256(named) != digest) {
    return format::corrupt(path, "its digest is not the one that the commit record names");
  }
  Decoder in(std::span<const std::byte>(named).subspan(kShardHeaderSize));
  table_.reserve(entries);
  std::uint64_t end = kShardHeaderSize;
  for (std::uint64_t i = 0; i < entries; ++i) {
    TableEntry entry;
    entry.block = in.get<std::uint64_t>();
    entry.offset = in.get<std::uint64_t>();
    entry.length = in.get<std::uint32_t>();
    const auto reserved = in.get<std::uint32_t>();
    entry.checksum = in.get<std::uint64_t>();
    if (entry.offset != end || entry.length > table_at - end || reserved != 0 ||
        (!table_.empty() && entry.block <= table_.back().block)) {
      return format::corrupt(path, "its table of blocks cannot be");
    }
    end += entry.length;
    table_.push_back(entry);
  }
  return Status::ok();
}

Result<EncodedBlock> ShardContent::read_encoded(std::uint64_t block_number) const {
  const auto entry =
      std::lower_bound(table_.begin(), table_.end(), block_number,
                       [](const TableEntry& e, std::uint64_t number) { return e.block < number; });
  if (entry == table_.end() || entry->block != block_number) {
    return with_checksum(block_number, {});
  }
  EncodedBlock block{block_number, Bytes(entry->length), entry->checksum};
  DEDUP_TRY(read_at(entry->offset, block.bytes));
  if (!holds(block)) {
    return format::corrupt(name(), "block " + std::to_string(block_number) + " is damaged");
  }
  return block;
}

std::vector<std::uint64_t> ShardContent::block_numbers() const {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(table_.size());
  for (const auto& entry : table_) numbers.push_back(entry.block);
  return numbers;
}

}  // namespace dedup::store
