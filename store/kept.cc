#include "store/kept.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>
#include <utility>

#include "base/codec.h"
#include "store/format.h"

namespace dedup::store {
namespace {

// The record of the file that a kept generation is: the same on every store.
CommitRecord kept_record(const CommitRecord& generation) {
  CommitRecord kept = generation;
  kept.identity = kept_identity(generation.identity, generation.attempt);
  kept.path = kept_path(generation.path, generation.number);
  // No placeholder leads to it.
  kept.directory = {};
  kept.parent = {};
  kept.kept.clear();
  kept.kept_of = {generation.identity, generation.number};
  return kept;
}

// Its record, once it is committed here. What a broken commit has only prepared here is: a newer
// generation says that it is kept.
Result<CommitRecord> committed_record(Store& store, const Id128& file, const Id128& attempt,
                                      bool flush) {
  DEDUP_ASSIGN(const Store::Generations all, store.generations(file));
  const auto is_it = [&](const CommitRecord& record) { return record.attempt == attempt; };
  const auto found = std::find_if(all.committed.begin(), all.committed.end(), is_it);
  if (found != all.committed.end()) return *found;
  const auto prepared = std::find_if(all.prepared.begin(), all.prepared.end(), is_it);
  // It may be one that cannot be read just now.
  if (prepared == all.prepared.end() && !all.damaged.empty()) {
    return Status(Code::kCorrupt, all.damaged.front());
  }
  if (prepared == all.prepared.end()) {
    return Status(Code::kNotFound, "generation " + attempt.hex() + " is not here");
  }
  DEDUP_TRY(store.commit(file, attempt, flush));
  return *prepared;
}

// Whether the file that it is has been made, or even healed since. A store that lacked it may have
// got its record alone.
bool is_made(const Store& store, const Id128& kept) {
  const auto newest = store.newest(kept);
  return newest.is_ok() && store.index(kept, newest->attempt).is_ok();
}

}  // namespace

Id128 kept_identity(const Id128& file, const Id128& attempt) {
  Encoder both;
  both.put(file);
  both.put(attempt);
  const Digest digest = format::sha256(both.bytes());
  Id128 identity;
  std::copy_n(digest.begin(), identity.bytes.size(), identity.bytes.begin());
  return identity;
}

std::string kept_path(const std::string& path, std::uint64_t number) {
  return path + "@" + std::to_string(number);
}

std::optional<KeptName> parse_kept_path(const std::string& name) {
  const std::size_t at = name.rfind('@');
  if (at == std::string::npos || at == 0 || name[at - 1] == '/') return std::nullopt;
  KeptName out{name.substr(0, at), 0};
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + at + 1, end, out.number);
  if (parsed.ec != std::errc() || parsed.ptr != end || kept_path(out.path, out.number) != name) {
    return std::nullopt;
  }
  return out;
}

std::vector<KeptGeneration> kept_after(const CommitRecord& base, std::size_t count) {
  std::vector<KeptGeneration> kept{{base.number, base.attempt}};
  kept.insert(kept.end(), base.kept.begin(), base.kept.end());
  kept.resize(std::min(kept.size(), count));
  return kept;
}

Status keep_generation(Store& store, const Id128& file, const Id128& attempt, bool flush) {
  const Id128 identity = kept_identity(file, attempt);
  if (is_made(store, identity)) return Status::ok();
  if (store.mark_stores(identity).is_ok()) return {Code::kNotFound, "it was deleted"};
  DEDUP_ASSIGN(const CommitRecord generation, committed_record(store, file, attempt, flush));
  const CommitRecord record = kept_record(generation);
  DEDUP_ASSIGN(auto lock, store.create_for_writing(identity, record.path, {}, false));
  if (is_made(store, identity)) return Status::ok();
  // What a process left that died here.
  DEDUP_TRY(store.collect(identity, {}, {}, true).status());
  const auto shared = store.share_generation(file, attempt, identity);
  if (!shared.is_ok()) {
    auto whole = store.lock_whole(identity, std::move(lock));
    if (whole.is_ok()) (void)store.drop_file(identity, *std::move(whole));
    return shared.status();
  }
  DEDUP_TRY(store.prepare(record, flush));
  return store.commit(identity, attempt, flush);
}

Result<std::uint64_t> collect_older(Store& store, const Id128& file, const Id128& newest,
                                    const std::vector<KeptGeneration>& kept,
                                    const Collection& how) {
  std::vector<Id128> stay{newest};
  std::set<Id128> staying;
  for (const KeptGeneration& one : kept) {
    staying.insert(kept_identity(file, one.attempt));
    const auto is_here = store.has_attempt(file, one.attempt);
    if (is_here.is_ok() && !*is_here) continue;
    // One that cannot be made a file now stays as it is.
    const Status made = keep_generation(store, file, one.attempt, how.flush);
    if (!made.is_ok() && made.code() != Code::kNotFound) stay.push_back(one.attempt);
  }
  // While the records still say which there were.
  DEDUP_ASSIGN(std::set<Id128> going, kept_of(store, file));
  std::erase_if(going, [&](const Id128& identity) { return staying.contains(identity); });
  DEDUP_TRY(drop_kept(store, going));
  return store.collect(file, stay, how.open_segments, how.with_logs, how.prepared);
}

// Where a record cannot be read, those count that say of themselves that they are, for which all
// files are looked at.
Result<std::set<Id128>> kept_of(const Store& store, const Id128& file) {
  DEDUP_ASSIGN(const Store::Generations all, store.generations(file));
  std::set<Id128> found;
  for (const CommitRecord& record : all.committed) {
    for (const KeptGeneration& one : record.kept) found.insert(kept_identity(file, one.attempt));
  }
  if (all.damaged.empty()) return found;
  DEDUP_ASSIGN(const std::vector<CommitRecord> files, store.list());
  for (const CommitRecord& record : files) {
    if (record.kept_of.file == file) found.insert(record.identity);
  }
  return found;
}

Result<std::uint64_t> drop_with_kept(Store& store, const Id128& file,
                                     std::unique_ptr<Store::Lock> whole) {
  const auto kept = kept_of(store, file);
  DEDUP_ASSIGN(const std::uint64_t freed, store.drop_file(file, std::move(whole)));
  // What stays of these now, dedupctl gc finds.
  if (kept.is_ok()) (void)drop_kept(store, *kept);
  return freed;
}

Status drop_kept(Store& store, const std::set<Id128>& kept) {
  Status status;
  for (const Id128& identity : kept) {
    const Status dropped = store.drop_file(identity).status();
    if (status.is_ok() && dropped.code() != Code::kFileInUse) status = dropped;
  }
  return status;
}

std::vector<std::string> give_up_kept(Store& store, std::uint64_t bytes) {
  std::vector<std::string> names;
  auto all = store.list();
  if (!all.is_ok()) return names;
  std::erase_if(*all, [](const CommitRecord& record) { return record.kept_of.file.is_zero(); });
  std::sort(all->begin(), all->end(), [](const CommitRecord& a, const CommitRecord& b) {
    return std::tie(a.time, a.kept_of.number) < std::tie(b.time, b.kept_of.number);
  });
  // What is freed is counted, since a file system may say so only later.
  for (const CommitRecord& record : *all) {
    if (bytes == 0) break;
    auto lock = store.lock_whole(record.identity);
    if (!lock.is_ok()) continue;
    const auto freed = store.drop_file(record.identity, *std::move(lock));
    if (!freed.is_ok()) continue;
    names.push_back(record.path);
    bytes -= std::min(bytes, *freed);
  }
  return names;
}

}  // namespace dedup::store
