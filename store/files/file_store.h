// A store as files in a directory, and its segments in others, too (store/files/layout.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/files/index_file.h"
#include "store/files/layout.h"
#include "store/files/open_store.h"
#include "store/files/reader_cache.h"
#include "store/files/segment_file.h"
#include "store/files/shard_file.h"
#include "store/files/tiers.h"
#include "store/fs.h"
#include "store/store.h"

namespace dedup::store {

class FileStore final : public Store {
 public:
  explicit FileStore(OpenedStore opened);

  const StorePlace& place() const override;
  const Id128& uuid() const override;

  Result<PathEntry> find(const std::string& path, const Id128& identity) const override;
  Result<std::vector<CommitRecord>> list() const override;
  Result<std::vector<std::string>> paths(const Id128& identity) const override;
  Result<std::set<std::string>> directories() const override;
  Result<std::vector<Id128>> identities() const override;

  Status create_file(const Id128& identity, const std::string& path) override;
  Status add_path(const Id128& identity, const std::string& path) override;
  Result<std::uint64_t> drop_file(const Id128& identity, std::unique_ptr<Lock> whole) override;
  Result<std::uint64_t> drop_file(const Id128& identity) override;
  Status put_mark(const Id128& identity, const std::vector<Id128>& stores_left) override;
  Result<std::vector<Id128>> marks() const override;
  Result<std::vector<Id128>> mark_stores(const Id128& identity) const override;
  Status shorten_mark(const Id128& identity,
                      const std::function<bool(const Id128&)>& is_done) override;
  Result<bool> has_file(const Id128& identity) const override;

  Result<std::vector<SegmentSize>> segments(const Id128& identity) const override;
  Result<std::vector<std::uint64_t>> logs(const Id128& identity) const override;
  Result<std::unique_ptr<SegmentWriter>> create_segment(const Id128& identity, std::uint64_t number,
                                                        SegmentUse use) override;
  std::vector<std::string> directories_of_segments() const override;
  Result<std::unique_ptr<LogWriter>> create_log(const Id128& identity,
                                                std::uint64_t number) override;
  Result<std::unique_ptr<AdoptedLog>> adopt_log(const Id128& identity, LogWriter& log) override;
  Result<std::shared_ptr<const SegmentReader>> segment(const Id128& identity,
                                                       std::uint64_t number) const override;
  Result<Loan> lend_segment(const Id128& identity, std::uint64_t number) const override;
  Result<std::shared_ptr<const LogReader>> log(const Id128& identity,
                                               std::uint64_t number) const override;
  Result<std::shared_ptr<const LeaseTable>> leases(const Id128& identity,
                                                   std::uint64_t log) const override;
  void close_readers(const Id128& identity) const override;
  Result<std::unique_ptr<IndexReader>> share_generation(const Id128& donor, const Id128& attempt,
                                                        const Id128& identity) override;
  Result<std::uint64_t> segment_size(const Id128& identity, std::uint64_t number) const override;
  Status flush_segment(const Id128& identity, std::uint64_t number) override;
  Status remove_segment(const Id128& identity, std::uint64_t number) override;
  Status spoil_chunk(const Id128& identity, const ChunkLocation& location) override;

  Result<std::unique_ptr<Lock>> lock_for_writing(const Id128& identity) override;
  Result<std::unique_ptr<Lock>> lock_whole(const Id128& identity,
                                           std::unique_ptr<Lock> writing) override;
  Result<std::unique_ptr<Lock>> create_for_writing(const Id128& identity, const std::string& path,
                                                   const std::vector<Id128>& own,
                                                   bool by_path) override;
  Result<std::unique_ptr<Lock>> lock_generation(const Id128& identity,
                                                const Id128& attempt) override;
  std::unique_ptr<const Locked> look_at_locks() const override;

  Result<CommitRecord> newest(const Id128& identity) const override;
  Result<Generations> generations(const Id128& identity) const override;
  Status begin_attempt(const Id128& identity, const Id128& attempt) override;
  Result<bool> has_attempt(const Id128& identity, const Id128& attempt) const override;
  Result<std::unique_ptr<IndexWriter>> create_index(const Id128& identity, const Id128& attempt,
                                                    const IndexBase& base) override;
  Result<std::unique_ptr<IndexReader>> index(const Id128& identity,
                                             const Id128& attempt) const override;
  Result<std::shared_ptr<const ShardReader>> shard(const Id128& identity, const Id128& attempt,
                                                   std::uint32_t number,
                                                   const Digest& digest) const override;
  Result<std::unique_ptr<ShardWriter>> create_shard(const Id128& identity, const Id128& attempt,
                                                    std::uint32_t number,
                                                    const ShardBase& base) override;
  Status prepare(const CommitRecord& record, bool flush) override;
  Status commit(const Id128& identity, const Id128& attempt, bool flush) override;
  Status adopt(const CommitRecord& record) override;
  Status abandon(const Id128& identity, const Id128& attempt) override;
  Status withdraw(const Id128& identity, const Id128& attempt) override;
  Result<std::uint64_t> collect(const Id128& identity, const std::vector<Id128>& keep,
                                const std::vector<std::uint64_t>& open_segments, bool with_logs,
                                Prepared prepared) override;

  Status put_written(const Id128& identity, const Id128& attempt, const WrittenPart& part) override;
  Result<std::vector<WrittenPart>> written(const Id128& identity,
                                           const Id128& attempt) const override;

  Status put_cached(const Id128& identity, const CachedNote& note) override;
  Result<std::optional<CachedNote>> cached(const Id128& identity,
                                           const Id128& attempt) const override;

  Result<std::uint64_t> free_bytes() const override;
  Result<std::uint64_t> file_system_bytes() const override;
  Result<std::vector<TierSpace>> tiers() const override;
  bool is_overfull() const override;
  Result<std::unique_ptr<Mover>> move_down() override;
  Result<std::uint64_t> taken_bytes() const override;
  Result<std::uint64_t> taken_bytes(const Id128& identity) const override;
  Result<std::uint64_t> log_bytes(const Id128& identity, std::uint64_t number) const override;

 private:
  // All committed records of a file that have the highest number, and the damage met.
  struct Records {
    std::vector<CommitRecord> newest;
    std::vector<std::string> damaged;
  };
  Result<Records> records(const Id128& identity) const;
  Status check_committed(const Id128& identity, const Id128& attempt) const;
  // Attempts that have a directory, committed or not.
  Result<std::vector<Id128>> attempt_ids(const Id128& identity) const;

  // Makes durable what is given, and the names of a file that was created through this object.
  Status flush_with_names(const Id128& identity, std::vector<std::string> files,
                          std::vector<std::string> directories);
  // Second names, in the attempt's directory, for runs of `base`; what the new one says of them.
  Result<std::vector<OlderRun>> link_runs(const Id128& identity, const Id128& attempt,
                                          const IndexBase& base);
  // All runs.
  Status remove_index(const Id128& identity, const Id128& attempt);

  // In whatever tier, and in both on its way from one to the other.
  Status remove_segment(const Id128& identity, std::uint64_t number, std::uint64_t& freed);
  // Second names, beside it, for a segment of another file; kNoSuchFile if that is not here.
  Status share_segment(const Id128& donor, std::uint64_t number, const Id128& identity);

  StorePlace place_;
  Layout layout_;  // of the last tier
  Id128 uuid_;
  std::shared_ptr<const Tiers> tiers_;
  // Of the files that were created through this object and have no durable names yet: the keys of
  // their path entries.
  std::map<Id128, std::set<std::string>> unflushed_names_;
  struct OpenShard {
    Digest digest{};  // as checked when it was opened
    std::shared_ptr<const ShardFileReader> reader;
  };
  Result<std::shared_ptr<const ShardFileReader>> shard_file(const Id128& identity,
                                                            const Id128& attempt,
                                                            std::uint32_t number,
                                                            const Digest& digest) const;
  mutable ReaderCache<SegmentFileReader> segments_{64};
  mutable ReaderCache<LogReader> logs_{64};
  mutable ReaderCache<LeaseTable> leases_{64};
  mutable ReaderCache<OpenShard> shards_{16};
};

// Removes what was begun to be written back of a generation, as far as this store knows of it:
// nobody will go on with it.
void remove_copies(const Layout& layout, const Id128& identity, const Id128& attempt);

// Takes a kernel lock on the file `path`. kNotFound if it is not there or was removed while the
// lock was being taken, kFileInUse if somebody else has it.
Result<std::unique_ptr<fs::File>> lock_path(const std::string& path, bool exclusive);

}  // namespace dedup::store
