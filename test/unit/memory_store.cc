#include "test/unit/memory_store.h"

#include <algorithm>
#include <utility>

#include "store/fs.h"
#include "test/unit/memory_store_parts.h"

namespace dedup::test {

struct MemoryDisk {
  Id128 uuid = Id128::random();
  std::uint64_t limit = 0;
  std::map<Id128, MemoryFile> files;
  std::map<Id128, std::vector<Id128>> marks;

  // A segment that several files have counts once.
  std::uint64_t taken() const {
    std::uint64_t sum = 0;
    std::set<const MemorySegment*> counted;
    for (const auto& [identity, file] : files) {
      sum += file.bytes();
      for (const auto& [number, segment] : file.segments) {
        if (!counted.insert(segment.get()).second) sum -= segment->size;
      }
    }
    return sum;
  }
  bool is_shared(const std::shared_ptr<MemorySegment>& segment) const {
    std::size_t owners = 0;
    for (const auto& [identity, file] : files) {
      for (const auto& [number, one] : file.segments) owners += one == segment ? 1 : 0;
    }
    return owners > 1;
  }
};

namespace {

using store::CommitRecord;

Status not_here(Code code = Code::kNotFound) {
  return {code, "not in this store in memory"};
}

class MemoryLock final : public store::Store::Lock {
 public:
  MemoryLock() = default;
  ~MemoryLock() override {
    for (const auto& [state, exclusive] : held_) {
      if (exclusive) {
        state->is_exclusive = false;
      } else {
        --state->shared;
      }
    }
  }
  Status add(const std::shared_ptr<MemoryLockState>& state, bool exclusive) {
    if (exclusive ? !state->is_free() : state->is_exclusive) {
      return {Code::kFileInUse, "locked by another job"};
    }
    if (exclusive) {
      state->is_exclusive = true;
    } else {
      ++state->shared;
    }
    held_.emplace_back(state, exclusive);
    return Status::ok();
  }

 private:
  std::vector<std::pair<std::shared_ptr<MemoryLockState>, bool>> held_;
};

Result<std::unique_ptr<store::Store::Lock>> lock(const std::shared_ptr<MemoryLockState>& state,
                                                 bool exclusive) {
  auto made = std::make_unique<MemoryLock>();
  DEDUP_TRY(made->add(state, exclusive));
  return std::unique_ptr<store::Store::Lock>(std::move(made));
}

class LocksNow final : public store::Store::Locked {
 public:
  explicit LocksNow(std::shared_ptr<const MemoryDisk> disk) : disk_(std::move(disk)) {}
  bool writing(const Id128& identity) const override {
    const auto file = disk_->files.find(identity);
    return file != disk_->files.end() && !file->second.lock->is_free();
  }
  bool reading(const Id128& identity, const Id128& attempt) const override {
    const auto file = disk_->files.find(identity);
    if (file == disk_->files.end()) return false;
    const auto generation = file->second.generations.find(attempt);
    return generation != file->second.generations.end() && !generation->second.lock->is_free();
  }

 private:
  std::shared_ptr<const MemoryDisk> disk_;
};

class MemoryStore final : public store::Store {
 public:
  MemoryStore(StorePlace place, std::shared_ptr<MemoryDisk> disk)
      : place_(std::move(place)), disk_(std::move(disk)) {}

  const StorePlace& place() const override { return place_; }
  const Id128& uuid() const override { return disk_->uuid; }

  // --- Finding files -----------------------------------------------------------------------------
  Result<PathEntry> find(const std::string& path, const Id128& identity) const override {
    PathEntry found;
    for (const auto& [one, file] : disk_->files) {
      if (one != identity && !file.paths.contains(path)) continue;
      for (const CommitRecord* record : newest_of(file)) found.records.push_back(*record);
    }
    DEDUP_ASSIGN(found.deleted, marks());
    return found;
  }
  Result<std::vector<CommitRecord>> list() const override {
    std::vector<CommitRecord> all;
    for (const auto& [identity, file] : disk_->files) {
      for (const CommitRecord* record : newest_of(file)) all.push_back(*record);
    }
    return all;
  }
  Result<std::vector<std::string>> paths(const Id128& identity) const override {
    const MemoryFile* const file = look(identity);
    if (file == nullptr) return std::vector<std::string>{};
    return std::vector<std::string>(file->paths.begin(), file->paths.end());
  }
  Result<std::set<std::string>> directories() const override {
    std::set<std::string> all;
    for (const auto& [identity, file] : disk_->files) {
      for (const std::string& path : file.paths) all.insert(store::fs::directory_of(path));
    }
    return all;
  }
  Result<std::vector<Id128>> identities() const override {
    std::vector<Id128> all;
    for (const auto& [identity, file] : disk_->files) all.push_back(identity);
    return all;
  }

  // --- Files -------------------------------------------------------------------------------------
  Status create_file(const Id128& identity, const std::string& path) override {
    disk_->files[identity].paths.insert(path);
    return Status::ok();
  }
  Status add_path(const Id128& identity, const std::string& path) override {
    DEDUP_ASSIGN(MemoryFile* const file, get(identity));
    file->paths.insert(path);
    return Status::ok();
  }
  Result<std::uint64_t> drop_file(const Id128& identity, std::unique_ptr<Lock>) override {
    const std::uint64_t before = disk_->taken();
    disk_->files.erase(identity);
    return before - disk_->taken();
  }
  Result<std::uint64_t> drop_file(const Id128& identity) override {
    auto whole = lock_whole(identity, nullptr);
    if (whole.status().code() == Code::kNoSuchFile) return std::uint64_t{0};
    DEDUP_TRY(whole.status());
    return drop_file(identity, std::move(*whole));
  }
  Status put_mark(const Id128& identity, const std::vector<Id128>& stores_left) override {
    if (stores_left.empty()) {
      disk_->marks.erase(identity);
    } else {
      disk_->marks[identity] = stores_left;
    }
    return Status::ok();
  }
  Result<std::vector<Id128>> marks() const override {
    std::vector<Id128> all;
    for (const auto& [identity, stores] : disk_->marks) all.push_back(identity);
    return all;
  }
  Result<std::vector<Id128>> mark_stores(const Id128& identity) const override {
    const auto found = disk_->marks.find(identity);
    if (found == disk_->marks.end()) return not_here();
    return found->second;
  }
  Status shorten_mark(const Id128& identity,
                      const std::function<bool(const Id128&)>& is_done) override {
    const auto found = disk_->marks.find(identity);
    if (found == disk_->marks.end()) return Status::ok();
    std::erase_if(found->second, is_done);
    if (found->second.empty()) disk_->marks.erase(found);
    return Status::ok();
  }
  Result<bool> has_file(const Id128& identity) const override { return look(identity) != nullptr; }

  // --- Segments and logs -------------------------------------------------------------------------
  Result<std::vector<store::SegmentSize>> segments(const Id128& identity) const override {
    std::vector<store::SegmentSize> sizes;
    if (const MemoryFile* const file = look(identity)) {
      for (const auto& [number, segment] : file->segments) {
        sizes.push_back({number, segment->size, segment->size, disk_->is_shared(segment),
                         reinterpret_cast<std::uintptr_t>(segment.get())});
      }
    }
    return sizes;
  }
  Result<std::vector<std::uint64_t>> logs(const Id128& identity) const override {
    std::vector<std::uint64_t> numbers;
    if (const MemoryFile* const file = look(identity)) {
      for (const auto& [number, log] : file->logs) numbers.push_back(number);
    }
    return numbers;
  }
  Result<std::unique_ptr<store::SegmentWriter>> create_segment(const Id128& identity,
                                                               std::uint64_t number,
                                                               store::SegmentUse) override {
    DEDUP_ASSIGN(MemoryFile* const file, get(identity));
    auto segment = std::make_shared<MemorySegment>();
    if (!file->segments.emplace(number, segment).second) return there_already();
    return write_to(std::move(segment), number, taking());
  }
  Result<std::unique_ptr<store::LogWriter>> create_log(const Id128& identity,
                                                       std::uint64_t number) override {
    DEDUP_ASSIGN(MemoryFile* const file, get(identity));
    auto log = std::make_shared<MemoryLog>();
    if (!file->logs.emplace(number, log).second) return there_already();
    return write_to(std::move(log), number, taking());
  }
  Result<std::shared_ptr<const store::SegmentReader>> segment(const Id128& identity,
                                                              std::uint64_t number) const override {
    const auto found = segment_of(identity, number);
    if (!found) return not_here();
    return read_from(std::shared_ptr<const MemorySegment>(found));
  }
  Result<std::shared_ptr<const store::LogReader>> log(const Id128& identity,
                                                      std::uint64_t number) const override {
    const auto found = log_of(identity, number);
    if (!found) return not_here();
    return read_from(std::shared_ptr<const MemoryLog>(found));
  }
  Result<std::shared_ptr<const store::LeaseTable>> leases(const Id128& identity,
                                                          std::uint64_t number) const override {
    const auto found = log_of(identity, number);
    if (!found) return not_here();
    if (!found->leases) return Status(Code::kCorrupt, "the log has no table of leases");
    return std::shared_ptr<const store::LeaseTable>(leases_of(*found));
  }
  void close_readers(const Id128&) const override {}

  Result<std::unique_ptr<store::IndexReader>> share_generation(const Id128& donor,
                                                               const Id128& attempt,
                                                               const Id128& identity) override {
    const MemoryGeneration* const generation = look(donor, attempt);
    if (generation == nullptr || !generation->committed) return not_here();
    DEDUP_ASSIGN(MemoryFile* const file, get(identity));
    DEDUP_ASSIGN(auto reader, index(donor, attempt));
    for (const auto& use : reader->segments()) {
      const auto segment = segment_of(donor, use.segment);
      if (segment) file->segments[use.segment] = segment;
    }
    file->generations[attempt].index = generation->index;
    file->generations[attempt].shards = generation->shards;
    return reader;
  }

  Result<std::uint64_t> segment_size(const Id128& identity, std::uint64_t number) const override {
    const auto found = segment_of(identity, number);
    if (!found) return not_here();
    return found->size;
  }
  Status flush_segment(const Id128& identity, std::uint64_t number) override {
    return segment_of(identity, number) ? Status::ok() : not_here();
  }
  Status remove_segment(const Id128& identity, std::uint64_t number) override {
    const auto file = disk_->files.find(identity);
    if (file != disk_->files.end()) file->second.segments.erase(number);
    return Status::ok();
  }
  Status spoil_chunk(const Id128& identity, const store::ChunkLocation& location) override {
    const auto found = segment_of(identity, location.segment);
    if (!found) return not_here();
    const auto chunk = found->chunks.find(location.offset);
    if (chunk == found->chunks.end()) return not_here();
    chunk->second.is_spoiled = !chunk->second.is_spoiled;
    return Status::ok();
  }

  // --- Locks -------------------------------------------------------------------------------------
  Result<std::unique_ptr<Lock>> lock_for_writing(const Id128& identity) override {
    const MemoryFile* const file = look(identity);
    if (file == nullptr) return not_here(Code::kNoSuchFile);
    return lock(file->lock, true);
  }
  Result<std::unique_ptr<Lock>> lock_whole(const Id128& identity,
                                           std::unique_ptr<Lock> writing) override {
    const MemoryFile* const file = look(identity);
    if (file == nullptr) return not_here(Code::kNoSuchFile);
    const bool is_writing = writing != nullptr;
    if (!is_writing) writing = std::make_unique<MemoryLock>();
    auto& whole = static_cast<MemoryLock&>(*writing);
    if (!is_writing) DEDUP_TRY(whole.add(file->lock, true));
    for (const auto& [attempt, generation] : file->generations) {
      DEDUP_TRY(whole.add(generation.lock, true));
    }
    return writing;
  }
  Result<std::unique_ptr<Lock>> create_for_writing(const Id128& identity, const std::string& path,
                                                   const std::vector<Id128>& own,
                                                   bool by_path) override {
    for (const auto& [other, file] : disk_->files) {
      const bool is_own = std::find(own.begin(), own.end(), other) != own.end();
      if (other == identity || is_own || !file.paths.contains(path)) continue;
      if (by_path && !newest_of(file).empty()) {
        return Status(Code::kFileExists, path + ": another job committed the file meanwhile");
      }
      if (!file.lock->is_free()) {
        return Status(Code::kFileInUse, path + ": another job is just creating the file");
      }
    }
    DEDUP_TRY(create_file(identity, path));
    return lock_for_writing(identity);
  }
  Result<std::unique_ptr<Lock>> lock_generation(const Id128& identity,
                                                const Id128& attempt) override {
    const MemoryGeneration* const generation = look(identity, attempt);
    if (generation == nullptr) return not_here();
    return lock(generation->lock, false);
  }
  std::unique_ptr<const Locked> look_at_locks() const override {
    return std::make_unique<LocksNow>(disk_);
  }

  // --- Generations -------------------------------------------------------------------------------
  Result<CommitRecord> newest(const Id128& identity) const override {
    const MemoryFile* const file = look(identity);
    if (file == nullptr) return not_here();
    const auto newest = newest_of(*file);
    if (newest.empty()) return not_here();
    if (newest.size() > 1) return Status(Code::kConflict, "two generations of one number");
    return *newest.front();
  }
  Result<Generations> generations(const Id128& identity) const override {
    Generations result;
    const MemoryFile* const file = look(identity);
    if (file == nullptr) return result;
    for (const auto& [attempt, generation] : file->generations) {
      if (generation.committed) {
        result.committed.push_back(*generation.committed);
      } else if (generation.prepared) {
        result.prepared.push_back(*generation.prepared);
      } else {
        result.begun.push_back(attempt);
      }
    }
    return result;
  }
  Status begin_attempt(const Id128& identity, const Id128& attempt) override {
    DEDUP_ASSIGN(MemoryFile* const file, get(identity));
    file->generations[attempt];
    return Status::ok();
  }
  Result<bool> has_attempt(const Id128& identity, const Id128& attempt) const override {
    return look(identity, attempt) != nullptr;
  }
  Result<std::unique_ptr<store::IndexWriter>> create_index(const Id128& identity,
                                                           const Id128& attempt,
                                                           const store::IndexBase& base) override {
    MemoryGeneration* const generation = look(identity, attempt);
    if (generation == nullptr) return not_here(Code::kNoSuchFile);
    std::vector<std::shared_ptr<const MemoryIndex>> older;
    if (base.runs != 0) {
      const MemoryGeneration* const begins = look(identity, base.attempt);
      if (begins == nullptr || !begins->index) return not_here(Code::kNoSuchFile);
      older = begins->index->older;
      older.push_back(begins->index);
      if (base.runs > older.size()) return Status(Code::kArgument, "the base has fewer runs");
      older.resize(base.runs);
    }
    generation->index.reset();
    const auto keep = [disk = disk_, identity, attempt](auto index) {
      disk->files[identity].generations[attempt].index = std::move(index);
    };
    return write_index(attempt, std::move(older), base.dead, keep);
  }
  Result<std::unique_ptr<store::IndexReader>> index(const Id128& identity,
                                                    const Id128& attempt) const override {
    const MemoryGeneration* const generation = look(identity, attempt);
    if (generation == nullptr || !generation->index) return not_here();
    return read_from(generation->index);
  }
  Result<std::shared_ptr<const store::ShardReader>> shard(
      const Id128& identity, const Id128& attempt, std::uint32_t number,
      const store::Digest& digest) const override {
    const MemoryGeneration* const generation = look(identity, attempt);
    if (generation == nullptr || !generation->shards.contains(number)) return not_here();
    return read_from(generation->shards.at(number), digest);
  }
  Result<std::unique_ptr<store::ShardWriter>> create_shard(const Id128& identity,
                                                           const Id128& attempt,
                                                           std::uint32_t number,
                                                           const store::ShardBase& base) override {
    MemoryGeneration* const generation = look(identity, attempt);
    if (generation == nullptr) return not_here(Code::kNoSuchFile);
    generation->shards.erase(number);
    std::shared_ptr<const MemoryShard> carried;
    const MemoryGeneration* const before = look(identity, base.attempt);
    if (before != nullptr && before->shards.contains(number)) {
      carried = before->shards.at(number);
      if (carried->digest != base.digest) carried.reset();
    }
    return test::write_shard(store::ShardDigest(identity, attempt, number), std::move(carried),
                             taking(), [disk = disk_, identity, attempt, number](auto shard) {
                               disk->files[identity].generations[attempt].shards[number] =
                                   std::move(shard);
                             });
  }
  Status prepare(const CommitRecord& record, bool) override {
    DEDUP_TRY(begin_attempt(record.identity, record.attempt));
    look(record.identity, record.attempt)->prepared = record;
    return Status::ok();
  }
  Status commit(const Id128& identity, const Id128& attempt, bool) override {
    MemoryGeneration* const generation = look(identity, attempt);
    if (generation == nullptr) return not_here();
    if (generation->prepared) generation->committed = std::exchange(generation->prepared, {});
    return generation->committed ? Status::ok() : not_here();
  }
  Status adopt(const CommitRecord& record) override {
    DEDUP_TRY(create_file(record.identity, record.path));
    const MemoryGeneration* const there = look(record.identity, record.attempt);
    if (there == nullptr || !there->committed || *there->committed != record) {
      DEDUP_TRY(prepare(record, true));
    }
    return commit(record.identity, record.attempt, true);
  }
  Status abandon(const Id128& identity, const Id128& attempt) override {
    const MemoryGeneration* const generation = look(identity, attempt);
    if (generation == nullptr) return Status::ok();
    if (generation->committed) return {Code::kArgument, "cannot abandon what is committed"};
    disk_->files[identity].generations.erase(attempt);
    return Status::ok();
  }
  Status withdraw(const Id128& identity, const Id128& attempt) override {
    if (MemoryGeneration* const generation = look(identity, attempt)) generation->committed.reset();
    return abandon(identity, attempt);
  }
  Result<std::uint64_t> collect(const Id128& identity, const std::vector<Id128>& keep,
                                const std::vector<std::uint64_t>& open_segments, bool with_logs,
                                Prepared prepared) override {
    const auto found = disk_->files.find(identity);
    if (found == disk_->files.end()) return std::uint64_t{0};
    MemoryFile& file = found->second;
    const std::uint64_t before = disk_->taken();
    const auto stays = [&](const Id128& attempt) {
      return std::find(keep.begin(), keep.end(), attempt) != keep.end();
    };
    std::vector<CommitRecord> kept;
    for (const auto& [attempt, generation] : file.generations) {
      if (stays(attempt) && generation.committed) kept.push_back(*generation.committed);
    }
    // Prepared on top of one that is kept, here and elsewhere.
    const auto may_be_next = [&](const MemoryGeneration& generation) {
      if (!generation.prepared) return false;
      const CommitRecord& record = *generation.prepared;
      const auto is_earlier = [&](const CommitRecord& one) {
        return store::descends_from(record, one);
      };
      const auto is_elsewhere = [&](const store::StoreEntry& one) { return one.uuid != uuid(); };
      return (stays(record.parent) || std::any_of(kept.begin(), kept.end(), is_earlier)) &&
             std::any_of(record.stores.begin(), record.stores.end(), is_elsewhere);
    };
    std::erase_if(file.generations, [&](const auto& entry) {
      const bool is_kept =
          stays(entry.first) || (prepared == Prepared::kKeep && may_be_next(entry.second));
      return !is_kept && entry.second.lock->is_free();
    });
    std::set<std::uint64_t> live(open_segments.begin(), open_segments.end());
    for (const auto& [attempt, generation] : file.generations) {
      if (!generation.index) continue;
      const auto index = read_from(generation.index);
      for (const auto& use : index->segments()) live.insert(use.segment);
    }
    std::erase_if(file.segments, [&](const auto& entry) { return !live.contains(entry.first); });
    if (with_logs) file.logs.clear();
    return before - disk_->taken();
  }

  // --- Write-back --------------------------------------------------------------------------------
  Status put_written(const Id128& identity, const Id128& attempt,
                     const store::WrittenPart& part) override {
    MemoryGeneration* const generation = look(identity, attempt);
    if (generation == nullptr || !generation->committed) return not_here();
    generation->written[part.writer] = part;
    return Status::ok();
  }
  Result<std::vector<store::WrittenPart>> written(const Id128& identity,
                                                  const Id128& attempt) const override {
    std::vector<store::WrittenPart> parts;
    const MemoryGeneration* const generation = look(identity, attempt);
    if (generation == nullptr) return parts;
    for (const auto& [writer, part] : generation->written) parts.push_back(part);
    return parts;
  }

  Status put_cached(const Id128& identity, const store::CachedNote& note) override {
    MemoryGeneration* const generation = look(identity, note.attempt);
    if (generation == nullptr || !generation->committed) return not_here();
    generation->cached = note;
    generation->cached->plain.device = 0;
    generation->written.clear();
    return Status::ok();
  }
  Result<std::optional<store::CachedNote>> cached(const Id128& identity,
                                                  const Id128& attempt) const override {
    const MemoryGeneration* const generation = look(identity, attempt);
    return generation == nullptr ? std::nullopt : generation->cached;
  }

  // --- Space -------------------------------------------------------------------------------------
  Result<std::uint64_t> free_bytes() const override {
    return disk_->limit - std::min(disk_->limit, disk_->taken());
  }
  Result<std::uint64_t> file_system_bytes() const override { return disk_->limit; }
  std::vector<std::string> directories_of_segments() const override { return {directory()}; }
  Result<std::vector<store::TierSpace>> tiers() const override {
    DEDUP_ASSIGN(const std::uint64_t free, free_bytes());
    return std::vector<store::TierSpace>{
        {directory(), store::TierSpace::kNoLimit, disk_->taken(), free, false}};
  }
  bool is_overfull() const override { return false; }
  Result<std::unique_ptr<Mover>> move_down() override {
    class NothingToMove final : public Mover {
      Result<Moved> step() override { return Moved{true, 0}; }
      std::vector<Stays> stays() const override { return {}; }
    };
    return std::unique_ptr<Mover>(std::make_unique<NothingToMove>());
  }
  Result<std::uint64_t> taken_bytes() const override { return disk_->taken(); }
  Result<std::uint64_t> taken_bytes(const Id128& identity) const override {
    const MemoryFile* const file = look(identity);
    return file == nullptr ? 0 : file->bytes();
  }
  Result<std::uint64_t> log_bytes(const Id128& identity, std::uint64_t number) const override {
    const auto found = log_of(identity, number);
    if (!found) return not_here();
    return std::uint64_t{found->bytes.size()};
  }

 private:
  static Status there_already() { return {Code::kFileExists, "that number is taken"}; }

  MemoryFile* look(const Id128& identity) const {
    const auto found = disk_->files.find(identity);
    return found == disk_->files.end() ? nullptr : &found->second;
  }
  MemoryGeneration* look(const Id128& identity, const Id128& attempt) const {
    MemoryFile* const file = look(identity);
    if (file == nullptr) return nullptr;
    const auto found = file->generations.find(attempt);
    return found == file->generations.end() ? nullptr : &found->second;
  }
  Result<MemoryFile*> get(const Id128& identity) const {
    MemoryFile* const file = look(identity);
    if (file == nullptr) return not_here(Code::kNoSuchFile);
    return file;
  }
  std::shared_ptr<MemorySegment> segment_of(const Id128& identity, std::uint64_t number) const {
    const MemoryFile* const file = look(identity);
    if (file == nullptr || !file->segments.contains(number)) return nullptr;
    return file->segments.at(number);
  }
  std::shared_ptr<MemoryLog> log_of(const Id128& identity, std::uint64_t number) const {
    const MemoryFile* const file = look(identity);
    if (file == nullptr || !file->logs.contains(number)) return nullptr;
    return file->logs.at(number);
  }
  static std::vector<const CommitRecord*> newest_of(const MemoryFile& file) {
    std::vector<const CommitRecord*> newest;
    for (const auto& [attempt, generation] : file.generations) {
      if (!generation.committed) continue;
      const CommitRecord& record = *generation.committed;
      if (!newest.empty() && newest.front()->number > record.number) continue;
      if (!newest.empty() && newest.front()->number < record.number) newest.clear();
      newest.push_back(&record);
    }
    return newest;
  }
  TakeSpace taking() const {
    return [disk = disk_](std::uint64_t bytes) -> Status {
      if (disk->taken() + bytes <= disk->limit) return Status::ok();
      return {Code::kNoSpace, "the store in memory is full"};
    };
  }

  StorePlace place_;
  std::shared_ptr<MemoryDisk> disk_;
};

}  // namespace

Result<std::unique_ptr<store::Store>> MemoryStores::open(const StorePlace& place, bool create) {
  const std::string& directory = place.directory();
  auto found = disks_.find(directory);
  if (found == disks_.end()) {
    if (!create) return not_here(Code::kNoSuchFile);
    found = disks_.emplace(directory, std::make_shared<MemoryDisk>()).first;
    found->second->limit = limit_;
  }
  return std::unique_ptr<store::Store>(std::make_unique<MemoryStore>(place, found->second));
}

store::StoreOpener MemoryStores::opener() {
  return [this](const StorePlace& place, bool create) { return open(place, create); };
}

void MemoryStores::limit_space(std::uint64_t bytes) {
  limit_ = bytes;
  for (const auto& [directory, disk] : disks_) disk->limit = bytes;
}

}  // namespace dedup::test
