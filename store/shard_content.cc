#include "store/shard_content.h"

#include <algorithm>
#include <string_view>

#include "base/codec.h"

namespace dedup::store {
namespace {

constexpr std::string_view kFooterMagic = "DEDUPEND";
constexpr std::size_t kDonorSize = 24;
constexpr std::size_t kEntrySize = 32;
// The first that has donors. In version 1 the digest is of the table as it stands, and the last
// field of its entries but one is zero.
constexpr std::uint32_t kWithDonors = 2;

void put_table(Encoder& out, const ShardTable& table) {
  for (const ShardDonor& donor : table.donors) {
    out.put(donor.attempt);
    out.put(donor.bytes);
  }
  for (const ShardTableEntry& entry : table.entries) {
    out.put(entry.block.number);
    out.put(entry.offset);
    out.put(entry.block.length);
    out.put(entry.donor);
    out.put(entry.block.checksum);
  }
}

// Whether blocks can stand where the table says that they do.
bool is_possible(const ShardTable& table, std::uint32_t version) {
  std::uint64_t end = kShardHeaderSize;
  const ShardTableEntry* before = nullptr;
  for (const ShardTableEntry& entry : table.entries) {
    if (before != nullptr && entry.block.number <= before->block.number) return false;
    before = &entry;
    if (entry.offset < kShardHeaderSize || entry.donor > table.donors.size()) return false;
    const std::uint64_t bytes = entry.donor == 0 ? table.blocks_end - kShardHeaderSize
                                                 : table.donors[entry.donor - 1].bytes;
    const std::uint64_t begin = entry.offset - kShardHeaderSize;
    if (begin > bytes || entry.block.length > bytes - begin) return false;
    if (version < kWithDonors && (entry.donor != 0 || entry.offset != end)) return false;
    end += entry.block.length;
  }
  return true;
}

Digest digest_of(std::span<const std::byte> header, std::span<const std::byte> bytes,
                 std::uint32_t version, const ShardTable& table) {
  Encoder named;
  named.put_raw(header.data(), header.size());
  if (version < kWithDonors) {
    named.put_raw(bytes.data(), bytes.size());
  } else {
    for (const ShardTableEntry& entry : table.entries) put_summary(named, entry.block);
  }
  return format::sha256(named.bytes());
}

}  // namespace

Bytes encode_shard_header(const Id128& identity, const Id128& attempt, std::uint32_t shard,
                          std::uint32_t version) {
  Encoder out;
  format::Kind kind = format::kShard;
  kind.version = version;
  format::put_start(out, kind);
  out.put(shard);
  out.put(identity);
  out.put(attempt);
  out.put(std::uint64_t{0});
  format::put_checksum(out);
  return out.take();
}

Result<std::uint32_t> check_shard_header(std::span<const std::byte> header, const Id128& attempt,
                                         std::uint32_t shard, const std::string& name) {
  Decoder in(header);
  DEDUP_TRY(format::check_start(in, format::kShard, name));
  const std::uint32_t version = format::version_of(header);
  (void)in.get<std::uint32_t>();
  const Id128 identity = in.get_id();
  const Bytes right = encode_shard_header(identity, attempt, shard, version);
  if (!std::equal(header.begin(), header.end(), right.begin(), right.end())) {
    return format::corrupt(name, "not the recipe shard named");
  }
  return version;
}

const ShardTableEntry* ShardTable::find(std::uint64_t block_number) const {
  const auto entry = std::lower_bound(
      entries.begin(), entries.end(), block_number,
      [](const ShardTableEntry& e, std::uint64_t number) { return e.block.number < number; });
  return entry == entries.end() || entry->block.number != block_number ? nullptr : &*entry;
}

void put_summary(Encoder& out, const BlockSummary& block) {
  out.put(block.number);
  out.put(block.length);
  out.put(block.checksum);
}

Bytes encode_shard_end(const ShardTable& table) {
  Encoder out;
  put_table(out, table);
  Encoder footer;
  footer.put_raw(kFooterMagic.data(), kFooterMagic.size());
  footer.put(table.blocks_end);
  footer.put(static_cast<std::uint64_t>(table.entries.size()));
  footer.put(static_cast<std::uint32_t>(table.donors.size()));
  footer.put(std::uint32_t{0});
  footer.put(format::checksum(out.bytes()));
  format::put_checksum(footer);
  Bytes bytes = out.take();
  bytes.insert(bytes.end(), footer.bytes().begin(), footer.bytes().end());
  return bytes;
}

std::size_t ShardFooter::size(std::uint32_t version) {
  return version < kWithDonors ? 64 : 48;
}

Result<ShardFooter> ShardFooter::decode(std::span<const std::byte> bytes, std::uint32_t version,
                                        std::uint64_t tail, const std::string& name) {
  Decoder in(bytes);
  char magic[8];
  in.get_raw(magic, sizeof magic);
  ShardFooter footer;
  footer.blocks_end = in.get<std::uint64_t>();
  footer.entries = in.get<std::uint64_t>();
  if (version >= kWithDonors) {
    footer.donors = in.get<std::uint32_t>();
    (void)in.get<std::uint32_t>();
    footer.checksum = in.get<std::uint64_t>();
  }
  const bool is_sound = std::string_view(magic, sizeof magic) == kFooterMagic &&
                        format::take_checksum(bytes) && footer.blocks_end >= kShardHeaderSize &&
                        footer.blocks_end <= tail;
  const std::uint64_t between = is_sound ? tail - footer.blocks_end : 0;
  const std::uint64_t donors = std::uint64_t{footer.donors} * kDonorSize;
  if (!is_sound || donors > between || (between - donors) % kEntrySize != 0 ||
      footer.entries != (between - donors) / kEntrySize) {
    return format::corrupt(name, "cut off, or its footer is damaged");
  }
  return footer;
}

Result<ShardTable> decode_shard_table(std::span<const std::byte> header,
                                      std::span<const std::byte> bytes, std::uint32_t version,
                                      const ShardFooter& footer, const Digest& digest,
                                      const std::string& name) {
  if (version >= kWithDonors && format::checksum(bytes) != footer.checksum) {
    return format::corrupt(name, "its table of blocks is damaged");
  }
  Decoder in(bytes);
  ShardTable table;
  table.blocks_end = footer.blocks_end;
  table.donors.resize(footer.donors);
  for (ShardDonor& donor : table.donors) {
    donor.attempt = in.get_id();
    donor.bytes = in.get<std::uint64_t>();
  }
  table.entries.resize(footer.entries);
  for (ShardTableEntry& entry : table.entries) {
    entry.block.number = in.get<std::uint64_t>();
    entry.offset = in.get<std::uint64_t>();
    entry.block.length = in.get<std::uint32_t>();
    entry.donor = in.get<std::uint32_t>();
    entry.block.checksum = in.get<std::uint64_t>();
  }
  if (digest_of(header, bytes, version, table) != digest) {
    return format::corrupt(name, "its digest is not the one that the commit record names");
  }
  if (!in.ok() || !is_possible(table, version)) {
    return format::corrupt(name, "its table of blocks cannot be");
  }
  return table;
}

}  // namespace dedup::store
