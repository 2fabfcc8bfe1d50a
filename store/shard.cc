#include "store/shard.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/codec.h"
#include "store/format.h"
#include "store/fs.h"

namespace dedup::store {
namespace {

constexpr std::size_t kHeaderSize = 64;
constexpr std::size_t kEntrySize = 32;
constexpr std::size_t kFooterSize = 64;
constexpr std::string_view kFooterMagic = "DEDUPEND";

constexpr std::uint64_t kNone = ~std::uint64_t{0};

struct TableEntry {
  std::uint64_t block = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint64_t checksum = 0;
};

Bytes encode_header(const Id128& identity, const Id128& attempt, std::uint32_t shard) {
  Encoder out;
  format::put_start(out, format::kShard);
  out.put(shard);
  out.put(identity);
  out.put(attempt);
  out.put(std::uint64_t{0});
  format::put_checksum(out);
  return out.take();
}

}  // namespace

EncodedBlock with_checksum(std::uint64_t number, Bytes bytes) {
  const std::uint64_t checksum = format::checksum(bytes, number);
  return {number, std::move(bytes), checksum};
}

bool holds(const EncodedBlock& block) {
  return format::checksum(block.bytes, block.number) == block.checksum;
}

struct ShardBuilder::Private {
  Bytes header;
  Encoder table;
  std::uint64_t end = kHeaderSize;
  std::uint64_t last = kNone;  // block added
  Digest digest{};
};

ShardBuilder::ShardBuilder(const Id128& identity, const Id128& attempt, std::uint32_t shard)
    : p_(std::make_unique<Private>()) {
  p_->header = encode_header(identity, attempt, shard);
}
ShardBuilder::~ShardBuilder() = default;

Bytes ShardBuilder::header() const {
  return p_->header;
}

Bytes ShardBuilder::add(std::uint64_t block_number, const Block& block) {
  assert(p_->last == kNone || block_number > p_->last);
  p_->last = block_number;
  Bytes bytes = encode_block(block);
  p_->table.put(block_number);
  p_->table.put(p_->end);
  p_->table.put(static_cast<std::uint32_t>(bytes.size()));
  p_->table.put(std::uint32_t{0});
  p_->table.put(format::checksum(bytes, block_number));
  p_->end += bytes.size();
  return bytes;
}

Bytes ShardBuilder::finish() {
  Bytes named = p_->header;
  named.insert(named.end(), p_->table.bytes().begin(), p_->table.bytes().end());
  p_->digest = format::sha256(named);
  Encoder footer;
  footer.put_raw(kFooterMagic.data(), kFooterMagic.size());
  footer.put(p_->end);
  footer.put(static_cast<std::uint64_t>(p_->table.size() / kEntrySize));
  footer.put_raw(p_->digest.data(), p_->digest.size());
  format::put_checksum(footer);
  Bytes out = p_->table.take();
  out.insert(out.end(), footer.bytes().begin(), footer.bytes().end());
  return out;
}

const Digest& ShardBuilder::digest() const {
  return p_->digest;
}

struct ShardReader::Private {
  fs::File file;
  std::vector<TableEntry> table;

  // Where the table is, from the footer; its entries are left to read.
  Result<std::uint64_t> read_footer(std::uint64_t file_size, std::uint64_t& entries) const {
    if (file_size < kHeaderSize + kFooterSize) return format::corrupt(file.path(), "cut off");
    std::array<std::byte, kFooterSize> bytes;
    DEDUP_TRY(fs::read_at(file, file_size - kFooterSize, bytes));
    std::span<const std::byte> body = bytes;
    Decoder in(body);
    char magic[8];
    in.get_raw(magic, sizeof magic);
    const auto offset = in.get<std::uint64_t>();
    entries = in.get<std::uint64_t>();
    const std::uint64_t tail = file_size - kFooterSize;
    if (std::string_view(magic, sizeof magic) != kFooterMagic || !format::take_checksum(body) ||
        offset < kHeaderSize || offset > tail || (tail - offset) % kEntrySize != 0 ||
        entries != (tail - offset) / kEntrySize) {
      return format::corrupt(file.path(), "cut off, or its footer is damaged");
    }
    return offset;
  }

  Status read_table(const Bytes& expected_header, const Digest& digest) {
    const auto& path = file.path();
    Bytes named(kHeaderSize);
    DEDUP_TRY(fs::read_at(file, 0, named));
    Decoder start(named);
    DEDUP_TRY(format::check_start(start, format::kShard, path));
    if (named != expected_header) return format::corrupt(path, "not the recipe shard named");
    DEDUP_ASSIGN(const fs::Info about, fs::info(file));
    std::uint64_t entries = 0;
    DEDUP_ASSIGN(const std::uint64_t table_at, read_footer(about.size, entries));
    named.resize(kHeaderSize + entries * kEntrySize);
    DEDUP_TRY(fs::read_at(file, table_at, std::span(named).subspan(kHeaderSize)));
    if (format::sha256(named) != digest) {
      return format::corrupt(path, "its digest is not the one that the commit record names");
    }
    Decoder in(std::span<const std::byte>(named).subspan(kHeaderSize));
    table.reserve(entries);
    std::uint64_t end = kHeaderSize;
    for (std::uint64_t i = 0; i < entries; ++i) {
      TableEntry entry;
      entry.block = in.get<std::uint64_t>();
      entry.offset = in.get<std::uint64_t>();
      entry.length = in.get<std::uint32_t>();
      const auto reserved = in.get<std::uint32_t>();
      entry.checksum = in.get<std::uint64_t>();
      if (entry.offset != end || entry.length > table_at - end || reserved != 0 ||
          (!table.empty() && entry.block <= table.back().block)) {
        return format::corrupt(path, "its table of blocks cannot be");
      }
      end += entry.length;
      table.push_back(entry);
    }
    return Status::ok();
  }
};

ShardReader::ShardReader(std::unique_ptr<Private> p) : p_(std::move(p)) {}
ShardReader::~ShardReader() = default;

Result<std::unique_ptr<ShardReader>> ShardReader::open(const std::string& path,
                                                       const Id128& identity, const Id128& attempt,
                                                       std::uint32_t shard, const Digest& digest) {
  auto p = std::make_unique<Private>();
  DEDUP_ASSIGN(p->file, fs::open_read(path));
  DEDUP_TRY(p->read_table(encode_header(identity, attempt, shard), digest));
  return std::unique_ptr<ShardReader>(new ShardReader(std::move(p)));
}

Result<Bytes> ShardReader::read(std::uint64_t block_number) const {
  DEDUP_ASSIGN(EncodedBlock block, read_encoded(block_number));
  return std::move(block.bytes);
}

Result<EncodedBlock> ShardReader::read_encoded(std::uint64_t block_number) const {
  const auto entry =
      std::lower_bound(p_->table.begin(), p_->table.end(), block_number,
                       [](const TableEntry& e, std::uint64_t number) { return e.block < number; });
  if (entry == p_->table.end() || entry->block != block_number) {
    return with_checksum(block_number, {});
  }
  EncodedBlock block{block_number, Bytes(entry->length), entry->checksum};
  DEDUP_TRY(fs::read_at(p_->file, entry->offset, block.bytes));
  if (!holds(block)) {
    return format::corrupt(p_->file.path(),
                           "block " + std::to_string(block_number) + " is damaged");
  }
  return block;
}

std::vector<std::uint64_t> ShardReader::block_numbers() const {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(p_->table.size());
  for (const auto& entry : p_->table) numbers.push_back(entry.block);
  return numbers;
}

}  // namespace dedup::store
