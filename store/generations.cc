// The part of class Store that is about generations: their records, and what they keep alive.
#include <algorithm>
#include <set>

#include "store/format.h"
#include "store/store_private.h"

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

// Everything of an attempt, the record first: from then on it is none, whatever remains.
Status remove_generation(const Layout& layout, const Id128& identity, const Id128& attempt,
                         std::uint64_t* freed) {
  DEDUP_TRY(fs::remove_file(layout.record(identity, attempt)));
  DEDUP_TRY(fs::remove_file(layout.temporary_record(identity, attempt)));
  return fs::remove_tree(layout.generation(identity, attempt), freed);
}

Status remove_counted(const std::string& path, std::uint64_t& freed) {
  DEDUP_ASSIGN(const fs::Info about, fs::info(path));
  DEDUP_TRY(fs::remove_file(path));
  freed += about.allocated;
  return Status::ok();
}

// Flushes all files of an attempt's directory except its lock, then the directory.
Status flush_attempt(const std::string& directory) {
  DEDUP_ASSIGN(const auto names, fs::list(directory));
  for (const auto& name : names) {
    if (name == "lock") continue;
    DEDUP_ASSIGN(const fs::File file, fs::open_read(directory + "/" + name));
    DEDUP_TRY(fs::sync_data(file));
  }
  return fs::sync_directory(directory);
}

}  // namespace

Result<std::vector<Id128>> Store::Private::attempts(const Id128& identity) const {
  std::vector<Id128> found;
  DEDUP_ASSIGN(const auto names, list_if_there(layout.generations(identity)));
  for (const auto& name : names) {
    if (const auto attempt = parse_id_name(name)) found.push_back(*attempt);
  }
  return found;
}

Result<Store::Private::Records> Store::Private::records(const Id128& identity) const {
  Records result;
  DEDUP_ASSIGN(const auto all, attempts(identity));
  for (const auto& attempt : all) {
    auto record = read_record(layout.record(identity, attempt), identity, attempt);
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

Result<Store::Generations> Store::generations(const Id128& identity) const {
  Generations result;
  DEDUP_ASSIGN(const auto all, p_->attempts(identity));
  for (const auto& attempt : all) {
    auto* into = &result.committed;
    auto record = read_record(p_->layout.record(identity, attempt), identity, attempt);
    if (record.status().code() == Code::kNoSuchFile) {
      into = &result.prepared;
      record = read_record(p_->layout.temporary_record(identity, attempt), identity, attempt);
    }
    if (record.is_ok()) {
      into->push_back(std::move(*record));
    } else if (record.status().code() == Code::kNoSuchFile ||
               (into == &result.prepared &&
                is_empty(p_->layout.temporary_record(identity, attempt)))) {
      result.begun.push_back(attempt);
    } else {
      result.damaged.push_back(record.status().message());
    }
  }
  return result;
}

Result<CommitRecord> Store::newest(const Id128& identity) const {
  DEDUP_ASSIGN(auto records, p_->records(identity));
  if (!records.damaged.empty()) return Status(Code::kCorrupt, records.damaged.front());
  if (records.newest.empty()) {
    return Status(Code::kNotFound, file_directory(identity) + ": no committed generation");
  }
  if (records.newest.size() > 1) {
    return Status(Code::kConflict, file_directory(identity) + ": two generations of number " +
                                       std::to_string(records.newest[0].number) + ": " +
                                       records.newest[0].attempt.hex() + " and " +
                                       records.newest[1].attempt.hex());
  }
  return std::move(records.newest.front());
}

std::string Store::generation_directory(const Id128& identity, const Id128& attempt) const {
  return p_->layout.generation(identity, attempt);
}

std::string Store::index_path(const Id128& identity, const Id128& attempt) const {
  return p_->layout.generation(identity, attempt) + "/index";
}

std::string Store::shard_path(const Id128& identity, const Id128& attempt,
                              std::uint32_t shard) const {
  return p_->layout.generation(identity, attempt) + "/shard-" + std::to_string(shard);
}

Status Store::begin_attempt(const Id128& identity, const Id128& attempt) {
  DEDUP_TRY(fs::make_directory(p_->layout.generation(identity, attempt)).status());
  return fs::open_or_create(p_->layout.generation_lock(identity, attempt)).status();
}

Status Store::write_shard(const Id128& identity, const Id128& attempt, std::uint32_t shard,
                          std::uint64_t offset, std::span<const std::byte> bytes) {
  DEDUP_ASSIGN(const fs::File file, fs::open_or_create(shard_path(identity, attempt, shard)));
  if (offset == 0) DEDUP_TRY(fs::truncate(file, 0));
  return fs::write_at(file, offset, bytes);
}

Status Store::prepare(const CommitRecord& record, bool flush) {
  const Layout& layout = p_->layout;
  const Id128& identity = record.identity;
  DEDUP_TRY(begin_attempt(identity, record.attempt));
  const std::string path = layout.temporary_record(identity, record.attempt);
  DEDUP_TRY(fs::remove_file(path));
  DEDUP_TRY(fs::write_new_file(path, record.encode(), false));
  if (!flush) return Status::ok();
  DEDUP_TRY(flush_attempt(layout.generation(identity, record.attempt)));
  DEDUP_TRY(fs::sync_directory(layout.generations(identity)));
  return fs::sync_directory(layout.segments(identity));
}

Status Store::commit(const Id128& identity, const Id128& attempt, bool flush) {
  const Layout& layout = p_->layout;
  const std::string record = layout.record(identity, attempt);
  const Status renamed = fs::rename(layout.temporary_record(identity, attempt), record);
  if (renamed.code() == Code::kNoSuchFile) {
    DEDUP_ASSIGN(const bool committed, fs::exists(record));
    if (!committed) return {Code::kNotFound, record + ": nothing was prepared"};
  } else {
    DEDUP_TRY(renamed);
  }
  return flush ? fs::sync_directory(layout.generation(identity, attempt)) : Status::ok();
}

Status Store::adopt(const CommitRecord& record) {
  DEDUP_TRY(create_file(record.identity, record.path));
  const auto present = read_record(p_->layout.record(record.identity, record.attempt),
                                   record.identity, record.attempt);
  if (present.status().code() == Code::kVersion) return present.status();
  if (!present.is_ok() || *present != record) DEDUP_TRY(prepare(record, true));
  return commit(record.identity, record.attempt, true);
}

Status Store::abandon(const Id128& identity, const Id128& attempt) {
  DEDUP_ASSIGN(const bool committed, fs::exists(p_->layout.record(identity, attempt)));
  if (committed) {
    return {Code::kArgument,
            p_->layout.generation(identity, attempt) + ": cannot abandon a committed generation"};
  }
  return remove_generation(p_->layout, identity, attempt, nullptr);
}

Status Store::withdraw(const Id128& identity, const Id128& attempt) {
  DEDUP_TRY(fs::remove_file(p_->layout.record(identity, attempt)));
  // A record that came back without what it names would be a generation that cannot be read.
  const Status flushed = fs::sync_directory(p_->layout.generation(identity, attempt));
  if (flushed.code() != Code::kNoSuchFile) DEDUP_TRY(flushed);
  return abandon(identity, attempt);
}

Result<std::uint64_t> Store::collect(const Id128& identity, const std::vector<Id128>& keep,
                                     const std::vector<std::uint64_t>& open_segments,
                                     bool with_logs, Prepared prepared) {
  const Layout& layout = p_->layout;
  std::vector<CommitRecord> kept;
  for (const Id128& attempt : keep) {
    auto record = read_record(layout.record(identity, attempt), identity, attempt);
    if (record.is_ok()) kept.push_back(std::move(*record));
  }
  const auto stays = [&](const Id128& attempt) {
    return std::find(keep.begin(), keep.end(), attempt) != keep.end();
  };
  const auto may_be_next = [&](const Id128& attempt) {
    const auto record = read_record(layout.temporary_record(identity, attempt), identity, attempt);
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
  DEDUP_ASSIGN(const auto all, p_->attempts(identity));
  for (const auto& attempt : all) {
    if (!stays(attempt) && !(prepared == Prepared::kKeep && may_be_next(attempt))) {
      // Held until the generation is gone: a reader either comes before, and keeps it, or after.
      const auto lock = lock_path(layout.generation_lock(identity, attempt), true);
      if (lock.is_ok() || lock.status().code() == Code::kNotFound) {
        DEDUP_TRY(remove_generation(layout, identity, attempt, &freed));
        continue;
      }
      if (lock.status().code() != Code::kFileInUse) return lock.status();
    }
    remaining.push_back(attempt);
  }

  bool all_known = true;
  std::set<std::uint64_t> live(open_segments.begin(), open_segments.end());
  for (const auto& attempt : remaining) {
    const auto index = IndexReader::open(index_path(identity, attempt));
    if (index.is_ok()) {
      for (const auto& use : (*index)->segments()) live.insert(use.segment);
    } else if (index.status().code() != Code::kNoSuchFile) {
      all_known = false;
    }
  }
  if (all_known) {
    DEDUP_ASSIGN(const auto sizes, segments(identity));
    for (const auto& segment : sizes) {
      if (live.contains(segment.segment)) continue;
      DEDUP_TRY(remove_counted(segment_path(identity, segment.segment), freed));
    }
  }
  if (with_logs) {
    DEDUP_ASSIGN(const auto numbers, logs(identity));
    for (const auto number : numbers) DEDUP_TRY(remove_counted(log_path(identity, number), freed));
  }
  return freed;
}

}  // namespace dedup::store
