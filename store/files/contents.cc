// The part of class FileStore that is about segments, logs and space.
#include <sys/sysmacros.h>

#include <cstdio>

#include "store/files/file_store.h"
#include "store/files/log_file.h"
#include "store/files/segment_file.h"

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

// A file that is not there is kNotFound.
Result<std::uint64_t> size_of(const std::string& path) {
  const auto about = fs::info(path);
  if (about.status().code() == Code::kNoSuchFile) {
    return Status(Code::kNotFound, about.status().message());
  }
  DEDUP_TRY(about.status());
  return about->size;
}

}  // namespace

Result<std::vector<SegmentSize>> FileStore::segments(const Id128& identity) const {
  std::vector<SegmentSize> sizes;
  DEDUP_ASSIGN(const auto names, list_if_there(layout_.segments(identity)));
  for (const auto& name : names) {
    const auto number = parse_number_name(name, kSegmentSuffix);
    if (!number) continue;
    const auto about = fs::info(layout_.segment(identity, *number));
    if (about.status().code() == Code::kNoSuchFile) continue;  // a job has just removed it
    DEDUP_TRY(about.status());
    sizes.push_back({*number, about->size, about->links > 1, about->inode});
  }
  return sizes;
}

Result<std::vector<std::uint64_t>> FileStore::logs(const Id128& identity) const {
  std::vector<std::uint64_t> numbers;
  DEDUP_ASSIGN(const auto names, list_if_there(layout_.logs(identity)));
  for (const auto& name : names) {
    if (const auto number = parse_number_name(name, kLogSuffix)) numbers.push_back(*number);
  }
  return numbers;
}

Result<std::unique_ptr<SegmentWriter>> FileStore::create_segment(const Id128& identity,
                                                                 std::uint64_t number) {
  DEDUP_ASSIGN(auto writer,
               SegmentFileWriter::create(layout_.segment(identity, number), identity, number));
  return std::unique_ptr<SegmentWriter>(std::move(writer));
}

Result<std::unique_ptr<LogWriter>> FileStore::create_log(const Id128& identity,
                                                         std::uint64_t number) {
  DEDUP_ASSIGN(auto writer, LogFileWriter::create(layout_.log(identity, number), identity, number));
  return std::unique_ptr<LogWriter>(std::move(writer));
}

Result<std::shared_ptr<const SegmentReader>> FileStore::segment(const Id128& identity,
                                                                std::uint64_t number) const {
  return segments_.get({identity, {}, number},
                       [&] { return SegmentFileReader::open(layout_.segment(identity, number)); });
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
    const Status linked =
        fs::link(layout_.segment(donor, use.segment), layout_.segment(identity, use.segment));
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

Result<std::uint64_t> FileStore::segment_size(const Id128& identity, std::uint64_t number) const {
  return size_of(layout_.segment(identity, number));
}

Status FileStore::flush_segment(const Id128& identity, std::uint64_t number) {
  DEDUP_ASSIGN(const fs::File file, fs::open_read(layout_.segment(identity, number)));
  return fs::sync_data(file);
}

Status FileStore::remove_segment(const Id128& identity, std::uint64_t number) {
  segments_.forget({identity, {}, number});
  return fs::remove_file(layout_.segment(identity, number));
}

Status FileStore::spoil_chunk(const Id128& identity, const ChunkLocation& location) {
  return store::spoil_chunk(layout_.segment(identity, location.segment), location);
}

std::unique_ptr<const Store::Locked> FileStore::look_at_locks() const {
  return std::make_unique<LocksOfFiles>(layout_, locked_files());
}

// ---- Space ------------------------------------------------------------------------------------

Result<std::uint64_t> FileStore::free_bytes() const {
  return fs::free_bytes(layout_.root);
}

Result<std::uint64_t> FileStore::file_system_bytes() const {
  return fs::file_system_bytes(layout_.root);
}

Result<std::uint64_t> FileStore::taken_bytes() const {
  return fs::allocated_below(layout_.root);
}

Result<std::uint64_t> FileStore::taken_bytes(const Id128& identity) const {
  return fs::allocated_below(layout_.file(identity));
}

Result<std::uint64_t> FileStore::log_bytes(const Id128& identity, std::uint64_t number) const {
  return size_of(layout_.log(identity, number));
}

}  // namespace dedup::store
