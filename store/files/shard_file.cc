#include "store/files/shard_file.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "store/files/layout.h"
#include "store/format.h"

namespace dedup::store {
namespace {

constexpr std::size_t kWriteAtOnce = std::size_t{1} << 20;
// A difference of more than one such part of the block is not made.
constexpr std::size_t kWorthADifference = 2;

}  // namespace

// ---- Reading ------------------------------------------------------------------------------------

Result<std::unique_ptr<ShardFileReader>> ShardFileReader::open(const std::string& path,
                                                               const Id128& attempt,
                                                               std::uint32_t shard,
                                                               const Digest& digest) {
  DEDUP_ASSIGN(fs::File file, fs::open_read(path));
  std::unique_ptr<ShardFileReader> reader(new ShardFileReader(std::move(file), attempt, shard));
  DEDUP_TRY(reader->load(digest));
  return reader;
}

Status ShardFileReader::load(const Digest& digest) {
  const std::string& path = file_.path();
  std::array<std::byte, kShardHeaderSize> header;
  DEDUP_TRY(fs::read_at(file_, 0, header));
  DEDUP_ASSIGN(const std::uint32_t version, check_shard_header(header, attempt_, shard_, path));
  DEDUP_ASSIGN(const fs::Info about, fs::info(file_));
  Bytes bytes(ShardFooter::size(version));
  if (about.size < kShardHeaderSize + bytes.size()) return format::corrupt(path, "cut off");
  const std::uint64_t tail = about.size - bytes.size();
  DEDUP_TRY(fs::read_at(file_, tail, bytes));
  DEDUP_ASSIGN(const ShardFooter footer, ShardFooter::decode(bytes, version, tail, path));
  bytes.resize(tail - footer.blocks_end);
  DEDUP_TRY(fs::read_at(file_, footer.blocks_end, bytes));
  DEDUP_ASSIGN(table_, decode_shard_table(header, bytes, version, footer, digest, path));
  std::set<Id128> attempts{attempt_};
  for (const ShardDonor& donor : table_.donors) {
    if (!attempts.insert(donor.attempt).second) {
      return format::corrupt(path, "it has the same blocks twice");
    }
  }
  donors_.resize(table_.donors.size());
  return Status::ok();
}

std::string ShardFileReader::path_of(std::uint32_t donor) const {
  return donor == 0 ? file_.path() : donor_path(file_.path(), about(donor).attempt);
}

ShardDonor ShardFileReader::about(std::uint32_t donor) const {
  if (donor == 0) return {attempt_, table_.blocks_end - kShardHeaderSize};
  return table_.donors[donor - 1];
}

Result<const fs::File*> ShardFileReader::file_of(std::uint32_t donor) const {
  if (donor == 0) return &file_;
  std::optional<fs::File>& known = donors_[donor - 1];
  if (!known) {
    const std::string path = path_of(donor);
    auto file = fs::open_read(path);
    if (file.status().code() == Code::kNoSuchFile) {
      return format::corrupt(path, "not there, but blocks of a recipe are said to stand in it");
    }
    DEDUP_TRY(file.status());
    std::array<std::byte, kShardHeaderSize> header;
    DEDUP_TRY(fs::read_at(*file, 0, header));
    DEDUP_TRY(check_shard_header(header, about(donor).attempt, shard_, path).status());
    DEDUP_ASSIGN(const fs::Info info, fs::info(*file));
    if (info.size - kShardHeaderSize < about(donor).bytes) return format::corrupt(path, "cut off");
    known = std::move(*file);
  }
  return &*known;
}

Result<Bytes> ShardFileReader::read_at(const ShardPlace& place) const {
  DEDUP_ASSIGN(const fs::File* const file, file_of(place.donor));
  Bytes bytes(place.length);
  DEDUP_TRY(fs::read_at(*file, place.offset, bytes));
  return bytes;
}

Status ShardFileReader::damaged(std::uint64_t block_number, std::uint32_t donor) const {
  return format::corrupt(path_of(donor), "block " + std::to_string(block_number) + " is damaged");
}

Result<Bytes> ShardFileReader::read_basis(const ShardTableEntry& entry) const {
  const std::uint64_t number = entry.block.number;
  const ShardPlace& place = entry.basis ? entry.basis->place : entry.place;
  EncodedBlock whole{number, {}, entry.basis ? entry.basis->checksum : entry.block.checksum};
  DEDUP_ASSIGN(whole.bytes, read_at(place));
  if (!holds(whole)) return damaged(number, place.donor);
  return std::move(whole.bytes);
}

Result<EncodedBlock> ShardFileReader::read_encoded(std::uint64_t block_number) const {
  const ShardTableEntry* const entry = table_.find(block_number);
  if (entry == nullptr) return with_checksum(block_number, {});
  EncodedBlock block{block_number, {}, entry->block.checksum};
  DEDUP_ASSIGN(block.bytes, read_basis(*entry));
  if (!entry->basis) return block;
  DEDUP_ASSIGN(const Bytes difference, read_at(entry->place));
  auto bytes = apply_difference(block.bytes, difference, entry->block.length);
  if (bytes.status().code() == Code::kNoMemory) return bytes.status();
  if (bytes.is_ok()) block.bytes = std::move(*bytes);
  if (!bytes.is_ok() || !holds(block)) return damaged(block_number, entry->place.donor);
  return block;
}

std::vector<std::uint64_t> ShardFileReader::block_numbers() const {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(table_.entries.size());
  for (const ShardTableEntry& entry : table_.entries) numbers.push_back(entry.block.number);
  return numbers;
}

// ---- Writing ------------------------------------------------------------------------------------

Result<std::unique_ptr<ShardFileWriter>> ShardFileWriter::create(
    const std::string& path, const Id128& identity, const Id128& attempt, std::uint32_t shard,
    std::shared_ptr<const ShardFileReader> base) {
  // A new file, whatever was begun there before: what has a second name is never written to.
  DEDUP_TRY(fs::remove_file(path));
  DEDUP_ASSIGN(fs::File file, fs::create_new(path));
  return std::unique_ptr<ShardFileWriter>(new ShardFileWriter(
      std::move(file), encode_shard_header(identity, attempt, shard), std::move(base)));
}

ShardFileWriter::ShardFileWriter(fs::File file, Bytes header,
                                 std::shared_ptr<const ShardFileReader> base)
    : file_(std::move(file)), base_(std::move(base)), unwritten_(std::move(header)) {
  if (base_) choose_donors();
}

// Files of which at least half is in use stay, at most so many: those with the most. What is used
// of the others is copied. So what nobody uses is at most as much as what is, when a generation is
// begun, and a file that is linked on and on is copied when it has become small.
void ShardFileWriter::choose_donors() {
  const ShardTable& table = base_->table();
  std::vector<std::uint64_t> used(table.donors.size() + 1);
  for (const ShardTableEntry& entry : table.entries) {
    used[entry.place.donor] += entry.place.length;
    if (entry.basis) used[entry.basis->place.donor] += entry.basis->place.length;
  }
  sources_.resize(used.size());
  std::vector<std::uint32_t> by_use(used.size());
  std::iota(by_use.begin(), by_use.end(), 0U);
  std::stable_sort(by_use.begin(), by_use.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return used[a] > used[b]; });
  by_use.resize(std::min(by_use.size(), kMostDonors));
  for (const std::uint32_t n : by_use) {
    sources_[n].may_be_linked = used[n] >= base_->about(n).bytes - used[n];
  }
}

Result<bool> ShardFileWriter::link(std::uint32_t n) {
  Source& source = sources_[n];
  if (!source.may_be_linked || source.donor != 0) return source.donor != 0;
  const ShardDonor donor = base_->about(n);
  const std::string path = donor_path(file_.path(), donor.attempt);
  if (fs::link(base_->path_of(n), path).is_ok()) {
    table_.donors.push_back(donor);
    source.donor = static_cast<std::uint32_t>(table_.donors.size());
    return true;
  }
  // Not every file system has second names for a file, or any number of them.
  source.may_be_linked = false;
  DEDUP_TRY(fs::remove_file(path));
  return false;
}

ShardPlace ShardFileWriter::linked(const ShardPlace& place) const {
  return {place.offset, place.length, sources_[place.donor].donor};
}

void ShardFileWriter::append(std::span<const std::byte> bytes, const BlockSummary& block,
                             const std::optional<ShardBasis>& basis) {
  const ShardPlace place{written_ + unwritten_.size(), static_cast<std::uint32_t>(bytes.size()), 0};
  table_.entries.push_back({block, place, basis});
  unwritten_.insert(unwritten_.end(), bytes.begin(), bytes.end());
}

Status ShardFileWriter::add(const EncodedBlock& block) {
  DEDUP_ASSIGN(const bool is_difference, add_difference(block));
  if (!is_difference) append(block.bytes, summary_of(block), std::nullopt);
  return unwritten_.size() >= kWriteAtOnce ? write_out() : Status::ok();
}

// To the block that stands whole, not to the base's, if that is a difference: what it takes to read
// one does not grow with the generations. The difference does, until it is not worth it.
Result<bool> ShardFileWriter::add_difference(const EncodedBlock& block) {
  const ShardTableEntry* const entry = base_ ? base_->table().find(block.number) : nullptr;
  if (entry == nullptr) return false;
  ShardBasis basis = entry->basis.value_or(ShardBasis{entry->place, entry->block.checksum});
  if (!sources_[basis.place.donor].may_be_linked) return false;
  if (std::max<std::size_t>(basis.place.length, block.bytes.size()) > kMostDifferent) return false;
  const auto whole = base_->read_basis(*entry);
  if (!whole.is_ok()) return false;
  const auto difference =
      differences_.between(*whole, block.bytes, block.bytes.size() / kWorthADifference);
  if (!difference) return false;
  DEDUP_ASSIGN(const bool is_linked, link(basis.place.donor));
  if (!is_linked) return false;
  basis.place = linked(basis.place);
  append(*difference, summary_of(block), basis);
  return true;
}

Result<bool> ShardFileWriter::carry(const BlockSummary& wanted) {
  const ShardTableEntry* const entry = base_ ? base_->table().find(wanted.number) : nullptr;
  if (entry == nullptr || entry->block != wanted) return false;
  // Read also if it is not copied: what is damaged is not carried on.
  const auto block = base_->read_encoded(wanted.number);
  if (!block.is_ok()) return false;
  // First what it is a difference to: another difference to that may still stand here.
  bool is_linked = true;
  if (entry->basis) {
    DEDUP_ASSIGN(is_linked, link(entry->basis->place.donor));
  }
  if (is_linked) {
    DEDUP_ASSIGN(is_linked, link(entry->place.donor));
  }
  if (!is_linked) {
    DEDUP_TRY(add(*block));
    return true;
  }
  ShardTableEntry same{wanted, linked(entry->place), entry->basis};
  if (same.basis) same.basis->place = linked(same.basis->place);
  table_.entries.push_back(same);
  return true;
}

Status ShardFileWriter::write_out() {
  DEDUP_TRY(fs::write_at(file_, written_, unwritten_));
  written_ += unwritten_.size();
  unwritten_.clear();
  return Status::ok();
}

Status ShardFileWriter::finish() {
  const auto by_number = [](const ShardTableEntry& a, const ShardTableEntry& b) {
    return a.block.number < b.block.number;
  };
  std::sort(table_.entries.begin(), table_.entries.end(), by_number);
  const auto same = std::adjacent_find(
      table_.entries.begin(), table_.entries.end(),
      [&](const ShardTableEntry& a, const ShardTableEntry& b) { return !by_number(a, b); });
  if (same != table_.entries.end()) {
    return {Code::kArgument, "block " + std::to_string(same->block.number) + " of a recipe twice"};
  }
  table_.blocks_end = written_ + unwritten_.size();
  const Bytes end = encode_shard_end(table_);
  unwritten_.insert(unwritten_.end(), end.begin(), end.end());
  return write_out();
}

}  // namespace dedup::store
