#include "store/shard_content.h"

#include <algorithm>
#include <string_view>

#include "base/codec.h"

namespace dedup::store {
namespace {

constexpr std::string_view kFooterMagic = "DEDUPEND";
constexpr std::size_t kDonorSize = 24;
constexpr std::size_t kEntrySize = 32;
constexpr std::size_t kDifferenceSize = 32;
// The first that has donors. In version 1 the digest is of the table as it stands, and the last
// field of its entries but one is zero.
constexpr std::uint32_t kWithDonors = 2;
// The first in which blocks may be differences.
constexpr std::uint32_t kWithDifferences = 3;
// With the number of a donor: what stands there is a difference.
constexpr std::uint32_t kIsDifference = std::uint32_t{1} << 31;

void put_table(Encoder& out, const ShardTable& table) {
  for (const ShardDonor& donor : table.donors) {
    out.put(donor.attempt);
    out.put(donor.bytes);
  }
  for (const ShardTableEntry& entry : table.entries) {
    out.put(entry.block.number);
    out.put(entry.place.offset);
    out.put(entry.block.length);
    out.put(entry.place.donor | (entry.basis ? kIsDifference : 0));
    out.put(entry.block.checksum);
  }
  for (const ShardTableEntry& entry : table.entries) {
    if (!entry.basis) continue;
    out.put(entry.place.length);
    out.put(entry.basis->place.length);
    out.put(entry.basis->place.offset);
    out.put(entry.basis->place.donor);
    out.put(std::uint32_t{0});
    out.put(entry.basis->checksum);
  }
}

std::uint32_t differences_in(const ShardTable& table) {
  return static_cast<std::uint32_t>(
      std::count_if(table.entries.begin(), table.entries.end(),
                    [](const ShardTableEntry& entry) { return entry.basis.has_value(); }));
}

bool is_possible(const ShardTable& table, const ShardPlace& place) {
  if (place.offset < kShardHeaderSize || place.donor > table.donors.size()) return false;
  const std::uint64_t bytes =
      place.donor == 0 ? table.blocks_end - kShardHeaderSize : table.donors[place.donor - 1].bytes;
  const std::uint64_t begin = place.offset - kShardHeaderSize;
  return begin <= bytes && place.length <= bytes - begin;
}

// Whether blocks can stand where the table says that they do.
bool is_possible(const ShardTable& table, std::uint32_t version) {
  std::uint64_t end = kShardHeaderSize;
  const ShardTableEntry* before = nullptr;
  for (const ShardTableEntry& entry : table.entries) {
    if (before != nullptr && entry.block.number <= before->block.number) return false;
    before = &entry;
    if (!is_possible(table, entry.place)) return false;
    if (entry.basis) {
      if (!is_possible(table, entry.basis->place)) return false;
      if (std::max(entry.block.length, entry.basis->place.length) > kMostDifferent) return false;
    }
    if (version < kWithDonors && (entry.place.donor != 0 || entry.place.offset != end))
      return false;
    end += entry.place.length;
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
  footer.put(differences_in(table));
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
    const auto differences = in.get<std::uint32_t>();
    if (version >= kWithDifferences) footer.differences = differences;
    footer.checksum = in.get<std::uint64_t>();
  }
  const bool is_sound = std::string_view(magic, sizeof magic) == kFooterMagic &&
                        format::take_checksum(bytes) && footer.blocks_end >= kShardHeaderSize &&
                        footer.blocks_end <= tail;
  const std::uint64_t between = is_sound ? tail - footer.blocks_end : 0;
  const std::uint64_t others = std::uint64_t{footer.donors} * kDonorSize +
                               std::uint64_t{footer.differences} * kDifferenceSize;
  if (!is_sound || others > between || (between - others) % kEntrySize != 0 ||
      footer.entries != (between - others) / kEntrySize) {
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
    entry.place.offset = in.get<std::uint64_t>();
    entry.block.length = in.get<std::uint32_t>();
    entry.place.length = entry.block.length;
    const auto donor = in.get<std::uint32_t>();
    const bool is_difference = version >= kWithDifferences && (donor & kIsDifference) != 0;
    entry.place.donor = is_difference ? donor & ~kIsDifference : donor;
    if (is_difference) entry.basis.emplace();
    entry.block.checksum = in.get<std::uint64_t>();
  }
  if (differences_in(table) != footer.differences) in.fail();
  for (ShardTableEntry& entry : table.entries) {
    if (!in.ok()) break;
    if (!entry.basis) continue;
    entry.place.length = in.get<std::uint32_t>();
    entry.basis->place.length = in.get<std::uint32_t>();
    entry.basis->place.offset = in.get<std::uint64_t>();
    entry.basis->place.donor = in.get<std::uint32_t>();
    (void)in.get<std::uint32_t>();
    entry.basis->checksum = in.get<std::uint64_t>();
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
