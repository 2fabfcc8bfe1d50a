// The part of class FileStore that is about segments, logs and space.
#include <sys/sysmacros.h>

#include <cstdio>
#include <map>
#include <optional>

#include "store/files/file_store.h"
#include "store/files/log_file.h"
#include "store/files/segment_file.h"
#include "store/files/segment_mover.h"

namespace dedup::store {
namespace {

// What /proc/locks says of flocks: device and inode of the files. Asking by taking a lock would get
// in the way of a job that is just opening a file.
using LockedFiles = std::set<std::pair<dev_t, ino_t>>;

LockedFiles locked_files() {
  LockedFiles locked;
  // Its length is not known before it is read.
  std::FILE* const file = std::fopen("/proc/locks", "re");
  if (file == nullptr) return locked;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    unsigned major_number = 0;
    unsigned minor_number = 0;
    unsigned long inode = 0;
    // "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
    if (std::sscanf(line, "%*s FLOCK %*s %*s %*s %x:%x:%lu", &major_number, &minor_number,
                    &inode) == 3) {
      locked.emplace(makedev(major_number, minor_number), inode);
    }
  }
  std::fclose(file);
  return locked;
}

bool is_locked(const LockedFiles& locked, const std::string& path) {
  const auto about = fs::info(path);
  return about.is_ok() && locked.contains({about->device, about->inode});
}

class LocksOfFiles final : public Store::Locked {
 public:
  LocksOfFiles(const Layout& layout, LockedFiles locked)
      : layout_(layout), locked_(std::move(locked)) {}

  bool writing(const Id128& identity) const override {
    return is_locked(locked_, layout_.file_lock(identity));
  }
  bool reading(const Id128& identity, const Id128& attempt) const override {
    return is_locked(locked_, layout_.generation_lock(identity, attempt));
  }

 private:
  Layout layout_;
  LockedFiles locked_;
};

Result<std::uint64_t> size_of(const std::string& path) {
  DEDUP_ASSIGN(const fs::Info about, fs::info(path));
  return about.size;
}

// In a store, what is not there is kNotFound.
template <typename T>
Result<T> in_store(Result<T> result) {
  if (result.status().code() != Code::kNoSuchFile) return result;
  return Status(Code::kNotFound, result.status().message());
}

}  // namespace

// From the top: what moves down meanwhile is found below.
Result<std::vector<SegmentSize>> FileStore::segments(const Id128& identity) const {
  std::map<std::uint64_t, SegmentSize> sizes;
  for (std::size_t tier = 0; tier < tiers_->count(); ++tier) {
    DEDUP_ASSIGN(const auto names, fs::list_if_there(tiers_->layout(tier).segments(identity)));
    for (const auto& name : names) {
      const auto number = parse_number_name(name, kSegmentSuffix);
      if (!number || sizes.contains(*number)) continue;
      const auto about = tiers_->with_segment(
          identity, *number, [](const std::string& path) { return fs::info(path); });
      if (about.status().code() == Code::kNoSuchFile) continue;  // a job has just removed it
      DEDUP_TRY(about.status());
      // Inodes of two file systems may have one number.
      const std::uint64_t content = about->inode ^ std::uint64_t{about->device} << 40;
      sizes[*number] = {*number, about->size, std::min(about->size, about->allocated),
                        about->links > 1, content};
    }
  }
  std::vector<SegmentSize> out;
  for (const auto& [number, size] : sizes) out.push_back(size);
  return out;
}

Result<std::vector<std::uint64_t>> FileStore::logs(const Id128& identity) const {
  std::vector<std::uint64_t> numbers;
  DEDUP_ASSIGN(const auto names, fs::list_if_there(layout_.logs(identity)));
  for (const auto& name : names) {
    if (const auto number = parse_number_name(name, kLogSuffix)) numbers.push_back(*number);
  }
  return numbers;
}

Result<std::unique_ptr<SegmentWriter>> FileStore::create_segment(const Id128& identity,
                                                                 std::uint64_t number,
                                                                 SegmentUse use) {
  DEDUP_ASSIGN(auto writer, Tiers::create_segment(tiers_, identity, number, use));
  return std::unique_ptr<SegmentWriter>(std::move(writer));
}

std::vector<std::string> FileStore::directories_of_segments() const {
  std::vector<std::string> directories;
  for (std::size_t tier = 0; tier < tiers_->count(); ++tier) {
    directories.push_back(tiers_->layout(tier).root);
  }
  return directories;
}

Result<std::unique_ptr<LogWriter>> FileStore::create_log(const Id128& identity,
                                                         std::uint64_t number) {
  DEDUP_ASSIGN(auto writer, LogFileWriter::create(layout_.log(identity, number), identity, number));
  return std::unique_ptr<LogWriter>(std::move(writer));
}

Result<std::unique_ptr<AdoptedLog>> FileStore::adopt_log(const Id128& identity, LogWriter& log) {
  // It would be in the slowest of them.
  if (has_tiers()) return Store::adopt_log(identity, log);
  return static_cast<LogFileWriter&>(log).adopt(layout_.segment(identity, log.number()));
}

Result<std::shared_ptr<const SegmentReader>> FileStore::segment(const Id128& identity,
                                                                std::uint64_t number) const {
  bool may_move = false;
  const auto open = [&] {
    return tiers_->with_tier([&](std::size_t tier) {
      may_move = tier != tiers_->last();
      return SegmentFileReader::open(tiers_->layout(tier).segment(identity, number));
    });
  };
  DEDUP_ASSIGN(auto reader, segments_.get({identity, {}, number}, open, [&] { return !may_move; }));
  return std::shared_ptr<const SegmentReader>(std::move(reader));
}

// Opened anew, where it is by now: readers of one descriptor share what the kernel reads ahead.
// Only what the kernel has open can be lent: a file of another System means nothing to another
// process, or takes time there that is this node's (doc/testing.md, "Pacing").
Result<Store::Loan> FileStore::lend_segment(const Id128& identity, std::uint64_t number) const {
  Loan loan;
  DEDUP_ASSIGN(fs::File file, in_store(tiers_->with_tier([&](std::size_t tier) {
                 loan.may_move = tier != tiers_->last();
                 return fs::open_read(tiers_->layout(tier).segment(identity, number));
               })));
  if (&file.system() != &kernel()) return Store::lend_segment(identity, number);
  loan.segment = LentSegment(Descriptor(file.release()));
  return loan;
}

Result<std::shared_ptr<const LogReader>> FileStore::log(const Id128& identity,
                                                        std::uint64_t number) const {
  return logs_.get({identity, {}, number},
                   [&] { return LogFileReader::open(layout_.log(identity, number)); });
}

Result<std::shared_ptr<const LeaseTable>> FileStore::leases(const Id128& identity,
                                                            std::uint64_t log) const {
  return leases_.get({identity, {}, log}, [&] { return open_leases(layout_.log(identity, log)); });
}

void FileStore::close_readers(const Id128& identity) const {
  segments_.forget_all(identity);
  logs_.forget_all(identity);
  leases_.forget_all(identity);
  shards_.forget_all(identity);
}

Result<std::unique_ptr<IndexReader>> FileStore::share_generation(const Id128& donor,
                                                                 const Id128& attempt,
                                                                 const Id128& identity) {
  // Held until all have their second names: nobody removes them meanwhile.
  DEDUP_ASSIGN(const auto lock, lock_generation(donor, attempt));
  DEDUP_ASSIGN(const bool is_committed, fs::exists(layout_.record(donor, attempt)));
  if (!is_committed) return Status(Code::kNotFound, "the donor's generation is not committed here");
  DEDUP_ASSIGN(auto reader, index(donor, attempt));
  for (const auto& use : reader->segments()) {
    const Status linked = share_segment(donor, use.segment, identity);
    // One that was lost: its chunks are not here.
    if (linked.code() != Code::kNoSuchFile) DEDUP_TRY(linked);
  }
  DEDUP_TRY(begin_attempt(identity, attempt));
  const std::string recipe = layout_.generation(donor, attempt);
  DEDUP_ASSIGN(const auto names, fs::list(recipe));
  for (const std::string& name : names) {
    if (!name.starts_with(kShardPrefix)) continue;
    DEDUP_TRY(fs::link(recipe + "/" + name, layout_.generation(identity, attempt) + "/" + name));
  }
  const std::vector<IndexReader::Run> runs = reader->runs();
  for (const IndexReader::Run& run : runs) {
    const bool is_newest = &run == &runs.back();
    const auto path_in = [&](const Id128& file) {
      return is_newest ? layout_.index(file, attempt)
                       : layout_.index_run(file, attempt, run.attempt);
    };
    DEDUP_TRY(fs::link(path_in(donor), path_in(identity)));
  }
  return reader;
}

Status FileStore::share_segment(const Id128& donor, std::uint64_t number, const Id128& identity) {
  return tiers_->with_tier([&](std::size_t tier) -> Status {
    const Layout& layout = tiers_->layout(tier);
    if (tier != tiers_->last()) {
      DEDUP_TRY(fs::info(layout.segment(donor, number)).status());
      DEDUP_TRY(tiers_->make_segments_directory(tier, identity));
    }
    return fs::link(layout.segment(donor, number), layout.segment(identity, number));
  });
}

Result<std::uint64_t> FileStore::segment_size(const Id128& identity, std::uint64_t number) const {
  return in_store(tiers_->with_segment(identity, number, size_of));
}

Status FileStore::flush_segment(const Id128& identity, std::uint64_t number) {
  DEDUP_ASSIGN(const fs::File file, tiers_->with_segment(identity, number, fs::open_read));
  return fs::sync_data(file);
}

Status FileStore::remove_segment(const Id128& identity, std::uint64_t number) {
  std::uint64_t freed = 0;
  return remove_segment(identity, number, freed);
}

Status FileStore::remove_segment(const Id128& identity, std::uint64_t number,
                                 std::uint64_t& freed) {
  segments_.forget({identity, {}, number});
  for (std::size_t tier = 0; tier < tiers_->count(); ++tier) {
    const std::string path = tiers_->layout(tier).segment(identity, number);
    const auto about = fs::info(path);
    if (about.status().code() == Code::kNoSuchFile) continue;
    DEDUP_TRY(about.status());
    DEDUP_TRY(fs::remove_file(path));
    if (about->links == 1) freed += about->allocated;
  }
  return Status::ok();
}

// From the top: where it is just moving down, what has been copied before is made unreadable, too.
Status FileStore::spoil_chunk(const Id128& identity, const ChunkLocation& location) {
  std::optional<HeaderChecksum> before;
  Status missing;
  for (std::size_t tier = 0; tier < tiers_->count(); ++tier) {
    const std::string path = tiers_->layout(tier).segment(identity, location.segment);
    const auto spoiled = store::spoil_chunk(path, location, before);
    if (spoiled.status().code() == Code::kNoSuchFile) {
      missing = spoiled.status();
      continue;
    }
    DEDUP_TRY(spoiled.status());
    if (!before) before = *spoiled;
  }
  return before ? Status::ok() : missing;
}

std::unique_ptr<const Store::Locked> FileStore::look_at_locks() const {
  return std::make_unique<LocksOfFiles>(layout_, locked_files());
}

// ---- Space ------------------------------------------------------------------------------------

Result<std::uint64_t> FileStore::free_bytes() const {
  return tiers_->free_bytes();
}

Result<std::uint64_t> FileStore::file_system_bytes() const {
  return fs::file_system_bytes(layout_.root);
}

Result<std::vector<TierSpace>> FileStore::tiers() const {
  std::vector<TierSpace> spaces;
  for (std::size_t tier = 0; tier < tiers_->count(); ++tier) {
    DEDUP_ASSIGN(spaces.emplace_back(), tiers_->space(tier));
  }
  return spaces;
}

bool FileStore::is_overfull() const {
  for (std::size_t tier = 0; tier < tiers_->last(); ++tier) {
    if (tiers_->is_overfull(tier)) return true;
  }
  return false;
}

Result<std::unique_ptr<Store::Mover>> FileStore::move_down() {
  DEDUP_ASSIGN(auto mover, SegmentMover::create(*this, tiers_));
  return std::unique_ptr<Mover>(std::move(mover));
}

Result<std::uint64_t> FileStore::taken_bytes() const {
  std::uint64_t sum = 0;
  for (std::size_t tier = 0; tier < tiers_->count(); ++tier) {
    DEDUP_ASSIGN(const std::uint64_t bytes, fs::allocated_below(tiers_->layout(tier).root));
    sum += bytes;
  }
  return sum;
}

Result<std::uint64_t> FileStore::taken_bytes(const Id128& identity) const {
  std::uint64_t sum = 0;
  for (std::size_t tier = 0; tier < tiers_->count(); ++tier) {
    DEDUP_ASSIGN(const std::uint64_t bytes,
                 fs::allocated_below(tiers_->layout(tier).file(identity)));
    sum += bytes;
  }
  return sum;
}

Result<std::uint64_t> FileStore::log_bytes(const Id128& identity, std::uint64_t number) const {
  return in_store(size_of(layout_.log(identity, number)));
}

}  // namespace dedup::store
