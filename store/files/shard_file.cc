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

Result<EncodedBlock> ShardFileReader::read_encoded(std::uint64_t block_number) const {
  const ShardTableEntry* const entry = table_.find(block_number);
  if (entry == nullptr) return with_checksum(block_number, {});
  DEDUP_ASSIGN(const fs::File* const file, file_of(entry->donor));
  EncodedBlock block{block_number, Bytes(entry->block.length), entry->block.checksum};
  DEDUP_TRY(fs::read_at(*file, entry->offset, block.bytes));
  if (!holds(block)) {
    return format::corrupt(file->path(), "block " + std::to_string(block_number) + " is damaged");
  }
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
  for (const ShardTableEntry& entry : table.entries) used[entry.donor] += entry.block.length;
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

Status ShardFileWriter::link(std::uint32_t source) {
  const ShardDonor donor = base_->about(source);
  const std::string path = donor_path(file_.path(), donor.attempt);
  if (fs::link(base_->path_of(source), path).is_ok()) {
    table_.donors.push_back(donor);
    sources_[source].donor = static_cast<std::uint32_t>(table_.donors.size());
    return Status::ok();
  }
  // Not every file system has second names for a file, or any number of them.
  sources_[source].may_be_linked = false;
  return fs::remove_file(path);
}

Status ShardFileWriter::add(const EncodedBlock& block) {
  table_.entries.push_back({summary_of(block), written_ + unwritten_.size(), 0});
  unwritten_.insert(unwritten_.end(), block.bytes.begin(), block.bytes.end());
  return unwritten_.size() >= kWriteAtOnce ? write_out() : Status::ok();
}

Result<bool> ShardFileWriter::carry(const BlockSummary& wanted) {
  const ShardTableEntry* const entry = base_ ? base_->table().find(wanted.number) : nullptr;
  if (entry == nullptr || entry->block != wanted) return false;
  // Read also if it is not copied: what is damaged is not carried on.
  const auto block = base_->read_encoded(wanted.number);
  if (!block.is_ok()) return false;
  Source& source = sources_[entry->donor];
  if (source.may_be_linked && source.donor == 0) DEDUP_TRY(link(entry->donor));
  if (source.donor == 0) {
    DEDUP_TRY(add(*block));
  } else {
    table_.entries.push_back({wanted, entry->offset, source.donor});
  }
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
