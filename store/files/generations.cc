// The part of class FileStore that is about generations: their records, and what they keep alive.
#include <algorithm>
#include <set>

#include "store/files/file_store.h"
#include "store/files/index_file.h"
#include "store/files/shard_file.h"
#include "store/flush.h"
#include "store/format.h"
#include "store/index_runs.h"
#include "store/replacement.h"

namespace dedup::store {
namespace {

// The record at `path`, or at its temporary name.
Result<CommitRecord> read_record(const std::string& path, const Id128& identity,
                                 const Id128& attempt) {
  DEDUP_ASSIGN(const Bytes bytes, fs::read_file(path));
  auto record = CommitRecord::decode(bytes);
  if (!record.is_ok()) return record.status().with_context(path);
  if (record->identity != identity || record->attempt != attempt) {
    return format::corrupt(path, "record of another generation");
  }
  return record;
}

// A job that is killed between creating its record and writing it, which takes one call, leaves
// that. A damaged one may be the record of what other stores have committed.
bool is_empty(const std::string& path) {
  const auto about = fs::info(path);
  return about.is_ok() && about->size == 0;
}

Result<std::vector<WrittenPart>> read_written(const Layout& layout, const Id128& identity,
                                              const Id128& attempt) {
  std::vector<WrittenPart> parts;
  const std::string directory = layout.generation(identity, attempt);
  DEDUP_ASSIGN(const auto names, list_if_there(directory));
  for (const std::string& name : names) {
    if (!name.starts_with(kWrittenPrefix)) continue;
    const std::string path = directory + "/" + name;
    // One that cannot be read, or was written anew meanwhile, says nothing.
    const auto bytes = fs::read_file(path);
    if (!bytes.is_ok()) continue;
    auto part = WrittenPart::decode(*bytes, attempt, path);
    if (part.is_ok()) parts.push_back(std::move(*part));
  }
  return parts;
}

// Everything of an attempt, the record first: from then on it is none, whatever remains.
Status remove_generation(const Layout& layout, const Id128& identity, const Id128& attempt,
                         std::uint64_t* freed) {
  remove_copies(layout, identity, attempt);
  DEDUP_TRY(fs::remove_file(layout.record(identity, attempt)));
  DEDUP_TRY(fs::remove_file(layout.temporary_record(identity, attempt)));
  return fs::remove_tree(layout.generation(identity, attempt), freed);
}

Status remove_counted(const std::string& path, std::uint64_t& freed) {
  DEDUP_ASSIGN(const fs::Info about, fs::info(path));
  DEDUP_TRY(fs::remove_file(path));
  if (about.links == 1) freed += about.allocated;
  return Status::ok();
}

// All files of an attempt's directory but its lock.
Result<std::vector<std::string>> files_to_flush(const std::string& directory) {
  DEDUP_ASSIGN(auto names, fs::list(directory));
  std::erase(names, "lock");
  for (std::string& name : names) name = directory + "/" + name;
  return names;
}

}  // namespace

void remove_copies(const Layout& layout, const Id128& identity, const Id128& attempt) {
  const auto parts = read_written(layout, identity, attempt);
  if (!parts.is_ok() || parts->empty()) return;
  const auto record = read_record(layout.record(identity, attempt), identity, attempt);
  if (!record.is_ok()) return;
  for (const WrittenPart& part : *parts) remove_copy(record->path, part.copy);
}

Result<std::vector<Id128>> FileStore::attempt_ids(const Id128& identity) const {
  std::vector<Id128> found;
  DEDUP_ASSIGN(const auto names, list_if_there(layout_.generations(identity)));
  for (const auto& name : names) {
    if (const auto attempt = parse_id_name(name)) found.push_back(*attempt);
  }
  return found;
}

Result<FileStore::Records> FileStore::records(const Id128& identity) const {
  Records result;
  DEDUP_ASSIGN(const auto all, attempt_ids(identity));
  for (const auto& attempt : all) {
    auto record = read_record(layout_.record(identity, attempt), identity, attempt);
    if (!record.is_ok()) {
      const Status& status = record.status();
      if (status.code() == Code::kVersion) return status;
      if (status.code() != Code::kNoSuchFile) result.damaged.push_back(status.message());
      continue;
    }
    auto& newest = result.newest;
    if (!newest.empty() && newest.front().number > record->number) continue;
    if (!newest.empty() && newest.front().number < record->number) newest.clear();
    newest.push_back(std::move(*record));
  }
  return result;
}

Result<FileStore::Generations> FileStore::generations(const Id128& identity) const {
  Generations result;
  DEDUP_ASSIGN(const auto all, attempt_ids(identity));
  for (const auto& attempt : all) {
    auto* into = &result.committed;
    auto record = read_record(layout_.record(identity, attempt), identity, attempt);
    if (record.status().code() == Code::kNoSuchFile) {
      into = &result.prepared;
      record = read_record(layout_.temporary_record(identity, attempt), identity, attempt);
    }
    if (record.is_ok()) {
      into->push_back(std::move(*record));
    } else if (record.status().code() == Code::kNoSuchFile ||
               (into == &result.prepared &&
                is_empty(layout_.temporary_record(identity, attempt)))) {
      result.begun.push_back(attempt);
    } else {
      result.damaged.push_back(record.status().message());
    }
  }
  return result;
}

Result<CommitRecord> FileStore::newest(const Id128& identity) const {
  DEDUP_ASSIGN(auto records, records(identity));
  if (!records.damaged.empty()) return Status(Code::kCorrupt, records.damaged.front());
  if (records.newest.empty()) {
    return Status(Code::kNotFound, layout_.file(identity) + ": no committed generation");
  }
  if (records.newest.size() > 1) {
    return Status(Code::kConflict, layout_.file(identity) + ": two generations of number " +
                                       std::to_string(records.newest[0].number) + ": " +
                                       records.newest[0].attempt.hex() + " and " +
                                       records.newest[1].attempt.hex());
  }
  return std::move(records.newest.front());
}

Result<bool> FileStore::has_attempt(const Id128& identity, const Id128& attempt) const {
  return fs::exists(layout_.generation(identity, attempt));
}

Status FileStore::begin_attempt(const Id128& identity, const Id128& attempt) {
  DEDUP_TRY(fs::make_directory(layout_.generation(identity, attempt)).status());
  return fs::open_or_create(layout_.generation_lock(identity, attempt)).status();
}

Result<std::vector<OlderRun>> FileStore::link_runs(const Id128& identity, const Id128& attempt,
                                                   const IndexBase& base) {
  std::vector<OlderRun> runs;
  if (base.runs == 0) return runs;
  const std::string newest = layout_.index(identity, base.attempt);
  DEDUP_ASSIGN(const auto reader, IndexFileReader::open(newest));
  runs = reader->older();
  runs.push_back({reader->attempt(), reader->checksum()});
  if (base.runs > runs.size()) return Status(Code::kArgument, newest + ": has fewer runs");
  for (std::size_t r = 0; r < base.runs; ++r) {
    const Id128& run = runs[r].attempt;
    const bool is_newest = r + 1 == runs.size();
    DEDUP_TRY(fs::link(is_newest ? newest : layout_.index_run(identity, base.attempt, run),
                       layout_.index_run(identity, attempt, run)));
  }
  runs.resize(base.runs);
  return runs;
}

Result<std::unique_ptr<IndexWriter>> FileStore::create_index(const Id128& identity,
                                                             const Id128& attempt,
                                                             const IndexBase& base) {
  const std::string path = layout_.index(identity, attempt);
  DEDUP_ASSIGN(const bool is_there, fs::exists(path));
  if (is_there) DEDUP_TRY(remove_index(identity, attempt));
  auto older = link_runs(identity, attempt, base);
  Status status = older.status();
  if (status.is_ok()) {
    auto writer = IndexFileWriter::create(path, identity, attempt, *std::move(older), base.dead);
    if (writer.is_ok()) return std::unique_ptr<IndexWriter>(*std::move(writer));
    status = writer.status();
  }
  if (base.runs != 0) (void)remove_index(identity, attempt);
  return status;
}

Status FileStore::remove_index(const Id128& identity, const Id128& attempt) {
  const std::string directory = layout_.generation(identity, attempt);
  DEDUP_ASSIGN(const auto names, fs::list(directory));
  for (const std::string& name : names) {
    if (name.starts_with("index")) DEDUP_TRY(fs::remove_file(directory + "/" + name));
  }
  return Status::ok();
}

Result<std::unique_ptr<IndexReader>> FileStore::index(const Id128& identity,
                                                      const Id128& attempt) const {
  const std::string path = layout_.index(identity, attempt);
  auto newest = IndexFileReader::open(path);
  if (newest.status().code() == Code::kNoSuchFile) {
    return Status(Code::kNotFound, newest.status().message());
  }
  DEDUP_TRY(newest.status());
  if ((*newest)->attempt() != attempt) return format::corrupt(path, "index of another attempt");
  const std::vector<OlderRun> older = (*newest)->older();
  if (older.empty()) return std::unique_ptr<IndexReader>(std::move(*newest));
  std::vector<std::unique_ptr<IndexReader>> runs;
  for (const OlderRun& run : older) {
    const std::string of_run = layout_.index_run(identity, attempt, run.attempt);
    auto reader = IndexFileReader::open(of_run);
    if (reader.status().code() == Code::kNoSuchFile) {
      return format::corrupt(path, "a run of it is missing: " + of_run);
    }
    DEDUP_TRY(reader.status());
    if ((*reader)->attempt() != run.attempt || (*reader)->checksum() != run.checksum) {
      return format::corrupt(of_run, "another run than the index names");
    }
    runs.push_back(std::move(*reader));
  }
  runs.push_back(std::move(*newest));
  return std::unique_ptr<IndexReader>(std::make_unique<IndexRuns>(std::move(runs)));
}

Result<std::shared_ptr<const ShardFileReader>> FileStore::shard_file(const Id128& identity,
                                                                     const Id128& attempt,
                                                                     std::uint32_t number,
                                                                     const Digest& digest) const {
  const std::string path = layout_.shard(identity, attempt, number);
  const auto open = [&]() -> Result<std::unique_ptr<OpenShard>> {
    DEDUP_ASSIGN(auto reader, ShardFileReader::open(path, attempt, number, digest));
    return std::make_unique<OpenShard>(OpenShard{digest, std::move(reader)});
  };
  DEDUP_ASSIGN(const auto known, shards_.get({identity, attempt, number}, open));
  if (known->digest != digest) return format::corrupt(path, "not the shard that was asked for");
  return known->reader;
}

Result<std::shared_ptr<const ShardReader>> FileStore::shard(const Id128& identity,
                                                            const Id128& attempt,
                                                            std::uint32_t number,
                                                            const Digest& digest) const {
  DEDUP_ASSIGN(auto reader, shard_file(identity, attempt, number, digest));
  return std::shared_ptr<const ShardReader>(std::move(reader));
}

Result<std::unique_ptr<ShardWriter>> FileStore::create_shard(const Id128& identity,
                                                             const Id128& attempt,
                                                             std::uint32_t number,
                                                             const ShardBase& base) {
  shards_.forget({identity, attempt, number});
  std::shared_ptr<const ShardFileReader> carried;
  if (!base.attempt.is_zero()) {
    auto reader = shard_file(identity, base.attempt, number, base.digest);
    if (reader.is_ok()) carried = std::move(*reader);
  }
  DEDUP_ASSIGN(auto writer, ShardFileWriter::create(layout_.shard(identity, attempt, number),
                                                    identity, attempt, number, std::move(carried)));
  return std::unique_ptr<ShardWriter>(std::move(writer));
}

Status FileStore::prepare(const CommitRecord& record, bool flush) {
  const Id128& identity = record.identity;
  DEDUP_TRY(begin_attempt(identity, record.attempt));
  const std::string path = layout_.temporary_record(identity, record.attempt);
  DEDUP_TRY(fs::remove_file(path));
  DEDUP_TRY(fs::write_new_file(path, record.encode(), false));
  if (!flush) return Status::ok();
  const std::string directory = layout_.generation(identity, record.attempt);
  DEDUP_ASSIGN(auto files, files_to_flush(directory));
  std::vector<std::string> directories{directory, layout_.generations(identity),
                                       layout_.segments(identity)};
  const auto created = unflushed_names_.find(identity);
  if (created != unflushed_names_.end()) {
    for (const std::string& key : created->second) files.push_back(layout_.path_entry(key));
    directories.insert(directories.end(),
                       {layout_.file(identity), layout_.files(), layout_.paths()});
  }
  DEDUP_TRY(flush_together(files, directories));
  unflushed_names_.erase(identity);
  return Status::ok();
}

Status FileStore::commit(const Id128& identity, const Id128& attempt, bool flush) {
  const std::string record = layout_.record(identity, attempt);
  const Status renamed = fs::rename(layout_.temporary_record(identity, attempt), record);
  if (renamed.code() == Code::kNoSuchFile) {
    DEDUP_ASSIGN(const bool committed, fs::exists(record));
    if (!committed) return {Code::kNotFound, record + ": nothing was prepared"};
  } else {
    DEDUP_TRY(renamed);
  }
  return flush ? fs::sync_directory(layout_.generation(identity, attempt)) : Status::ok();
}

Status FileStore::adopt(const CommitRecord& record) {
  DEDUP_TRY(create_file(record.identity, record.path));
  const auto present =
      read_record(layout_.record(record.identity, record.attempt), record.identity, record.attempt);
  if (present.status().code() == Code::kVersion) return present.status();
  if (!present.is_ok() || *present != record) DEDUP_TRY(prepare(record, true));
  return commit(record.identity, record.attempt, true);
}

Status FileStore::abandon(const Id128& identity, const Id128& attempt) {
  shards_.forget_all(identity);
  DEDUP_ASSIGN(const bool committed, fs::exists(layout_.record(identity, attempt)));
  if (committed) {
    return {Code::kArgument,
            layout_.generation(identity, attempt) + ": cannot abandon a committed generation"};
  }
  return remove_generation(layout_, identity, attempt, nullptr);
}

Status FileStore::withdraw(const Id128& identity, const Id128& attempt) {
  DEDUP_TRY(fs::remove_file(layout_.record(identity, attempt)));
  // A record that came back without what it names would be a generation that cannot be read.
  const Status flushed = fs::sync_directory(layout_.generation(identity, attempt));
  if (flushed.code() != Code::kNoSuchFile) DEDUP_TRY(flushed);
  return abandon(identity, attempt);
}

Result<std::uint64_t> FileStore::collect(const Id128& identity, const std::vector<Id128>& keep,
                                         const std::vector<std::uint64_t>& open_segments,
                                         bool with_logs, Prepared prepared) {
  close_readers(identity);
  std::vector<CommitRecord> kept;
  for (const Id128& attempt : keep) {
    auto record = read_record(layout_.record(identity, attempt), identity, attempt);
    if (record.is_ok()) kept.push_back(std::move(*record));
  }
  const auto stays = [&](const Id128& attempt) {
    return std::find(keep.begin(), keep.end(), attempt) != keep.end();
  };
  const auto may_be_next = [&](const Id128& attempt) {
    const auto record = read_record(layout_.temporary_record(identity, attempt), identity, attempt);
    if (!record.is_ok()) return false;
    // Also a second attempt at what a kept one is the first of.
    const bool is_later = stays(record->parent) ||
                          std::any_of(kept.begin(), kept.end(), [&](const CommitRecord& earlier) {
                            return descends_from(*record, earlier);
                          });
    if (!is_later) return false;
    return std::any_of(record->stores.begin(), record->stores.end(),
                       [&](const StoreEntry& store) { return store.uuid != uuid(); });
  };
  std::uint64_t freed = 0;
  std::vector<Id128> remaining;
  DEDUP_ASSIGN(const auto all, attempt_ids(identity));
  for (const auto& attempt : all) {
    if (!stays(attempt) && !(prepared == Prepared::kKeep && may_be_next(attempt))) {
      // Held until the generation is gone: a reader either comes before, and keeps it, or after.
      const auto lock = lock_path(layout_.generation_lock(identity, attempt), true);
      if (lock.is_ok() || lock.status().code() == Code::kNotFound) {
        DEDUP_TRY(remove_generation(layout_, identity, attempt, &freed));
        continue;
      }
      if (lock.status().code() != Code::kFileInUse) return lock.status();
    }
    remaining.push_back(attempt);
  }

  bool all_known = true;
  std::set<std::uint64_t> live(open_segments.begin(), open_segments.end());
  for (const auto& attempt : remaining) {
    const auto named = index(identity, attempt);
    if (named.is_ok()) {
      for (const auto& use : (*named)->segments()) live.insert(use.segment);
    } else if (named.status().code() != Code::kNotFound) {
      all_known = false;
    }
  }
  if (all_known) {
    DEDUP_ASSIGN(const auto sizes, segments(identity));
    for (const auto& segment : sizes) {
      if (live.contains(segment.segment)) continue;
      DEDUP_TRY(remove_counted(layout_.segment(identity, segment.segment), freed));
    }
  }
  if (with_logs) {
    DEDUP_ASSIGN(const auto numbers, logs(identity));
    for (const auto number : numbers)
      DEDUP_TRY(remove_counted(layout_.log(identity, number), freed));
  }
  return freed;
}

Status FileStore::check_committed(const Id128& identity, const Id128& attempt) const {
  DEDUP_ASSIGN(const bool committed, fs::exists(layout_.record(identity, attempt)));
  if (committed) return Status::ok();
  return {Code::kNotFound, layout_.generation(identity, attempt) + ": is not committed here"};
}

Status FileStore::put_written(const Id128& identity, const Id128& attempt,
                              const WrittenPart& part) {
  DEDUP_TRY(check_committed(identity, attempt));
  return fs::write_file_atomically(layout_.written(identity, attempt, part.writer),
                                   part.encode(attempt));
}

Result<std::vector<WrittenPart>> FileStore::written(const Id128& identity,
                                                    const Id128& attempt) const {
  return read_written(layout_, identity, attempt);
}

Status FileStore::put_cached(const Id128& identity, const CachedNote& note) {
  DEDUP_TRY(check_committed(identity, note.attempt));
  DEDUP_TRY(fs::write_file_atomically(layout_.cached(identity, note.attempt), note.encode()));
  DEDUP_ASSIGN(const auto parts, read_written(layout_, identity, note.attempt));
  for (const WrittenPart& part : parts) {
    DEDUP_TRY(fs::remove_file(layout_.written(identity, note.attempt, part.writer)));
  }
  return Status::ok();
}

Result<std::optional<CachedNote>> FileStore::cached(const Id128& identity,
                                                    const Id128& attempt) const {
  const std::string path = layout_.cached(identity, attempt);
  const auto bytes = fs::read_file(path);
  if (bytes.status().code() == Code::kNoSuchFile) return std::optional<CachedNote>();
  DEDUP_TRY(bytes.status());
  auto note = CachedNote::decode(*bytes, attempt, path);
  // It costs reading the plain file.
  return note.is_ok() ? std::optional(*std::move(note)) : std::nullopt;
}

}  // namespace dedup::store
