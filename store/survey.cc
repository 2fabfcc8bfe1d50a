#include "store/survey.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace dedup::store {
namespace {

// The attempts' part of a survey.
Status add_attempts(const Store& store, const Store::Locked* locked, FileSurvey& out) {
  DEDUP_ASSIGN(Store::Generations attempts, store.generations(out.identity));
  out.prepared = std::move(attempts.prepared);
  out.damaged = std::move(attempts.damaged);
  out.unfinished = out.prepared.size() + attempts.begun.size();
  std::uint64_t highest = 0;
  for (const CommitRecord& record : attempts.committed) {
    out.committed.push_back(record.attempt);
    highest = std::max(highest, record.number);
    out.reading = out.reading || (locked && locked->reading(out.identity, record.attempt));
  }
  for (CommitRecord& record : attempts.committed) {
    if (record.number == highest) out.newest.push_back(std::move(record));
  }
  return Status::ok();
}

void add_index(const Store& store, FileSurvey& out) {
  if (out.newest.empty()) return;
  const auto index = store.index(out.identity, out.newest.front().attempt);
  out.has_index = index.is_ok();
  if (!index.is_ok()) {
    if (index.status().code() != Code::kNotFound) out.index_damage = index.status().message();
    return;
  }
  out.chunks = (*index)->size();
  for (const auto& use : (*index)->segments()) out.live_bytes += use.live_bytes;
}

Result<FileSurvey> survey_with_locks(const Store& store, const Store::Locked* locked,
                                     const Id128& identity) {
  FileSurvey out;
  out.identity = identity;
  DEDUP_TRY(add_attempts(store, locked, out));
  add_index(store, out);
  if (out.newest.empty()) {
    DEDUP_ASSIGN(out.paths, store.paths(identity));
  }
  DEDUP_ASSIGN(const auto segments, store.segments(identity));
  for (const SegmentSize& segment : segments) out.segment_bytes += segment.bytes;
  DEDUP_ASSIGN(out.disk_bytes, store.taken_bytes(identity));
  DEDUP_ASSIGN(const auto logs, store.logs(identity));
  for (const std::uint64_t log : logs) {
    const auto bytes = store.log_bytes(identity, log);
    if (bytes.is_ok()) out.log_bytes += *bytes;
  }
  out.logs = logs.size();
  out.writing = locked && locked->writing(identity);
  return out;
}

void put_records(Encoder& e, const std::vector<CommitRecord>& records) {
  e.put(static_cast<std::uint32_t>(records.size()));
  for (const CommitRecord& record : records) e.put_bytes(record.encode());
}

Result<std::vector<CommitRecord>> get_records(Decoder& d) {
  std::vector<CommitRecord> records;
  const auto count = d.get_count(4);
  for (std::uint32_t i = 0; i < count; ++i) {
    DEDUP_ASSIGN(CommitRecord record, CommitRecord::decode(d.get_bytes()));
    records.push_back(std::move(record));
  }
  return records;
}

auto numbers_of(auto& s) {
  return std::tie(s.unfinished, s.segment_bytes, s.disk_bytes, s.live_bytes, s.chunks, s.logs,
                  s.log_bytes);
}

Status cut_off() {
  return {Code::kCorrupt, "what another rank sent of its store is cut off"};
}

}  // namespace

void FileSurvey::encode(Encoder& e) const {
  e.put(identity);
  put_records(e, newest);
  put_records(e, prepared);
  e.put(static_cast<std::uint32_t>(paths.size()));
  for (const std::string& path : paths) e.put(std::string_view(path));
  e.put(static_cast<std::uint32_t>(committed.size()));
  for (const Id128& attempt : committed) e.put(attempt);
  e.put(static_cast<std::uint32_t>(damaged.size()));
  for (const std::string& text : damaged) e.put(std::string_view(text));
  std::apply([&](const auto&... number) { (e.put(number), ...); }, numbers_of(*this));
  e.put(std::string_view(index_damage));
  e.put(static_cast<std::uint8_t>(has_index | writing << 1 | reading << 2));
}

Result<FileSurvey> FileSurvey::decode(Decoder& d) {
  FileSurvey out;
  out.identity = d.get_id();
  DEDUP_ASSIGN(out.newest, get_records(d));
  DEDUP_ASSIGN(out.prepared, get_records(d));
  out.paths.resize(d.get_count(4));
  for (std::string& path : out.paths) path = d.get_string();
  out.committed.resize(d.get_count(16));
  for (Id128& attempt : out.committed) attempt = d.get_id();
  out.damaged.resize(d.get_count(4));
  for (std::string& text : out.damaged) text = d.get_string();
  std::apply([&](auto&... number) { ((number = d.get<std::uint64_t>()), ...); }, numbers_of(out));
  out.index_damage = d.get_string();
  const auto flags = d.get<std::uint8_t>();
  out.has_index = (flags & 1) != 0;
  out.writing = (flags & 2) != 0;
  out.reading = (flags & 4) != 0;
  if (!d.ok()) return cut_off();
  return out;
}

void StoreSurvey::encode(Encoder& e) const {
  e.put(uuid);
  e.put(std::string_view(directory));
  e.put(free_bytes);
  e.put(disk_bytes);
  e.put(static_cast<std::uint32_t>(marks.size()));
  for (const Mark& mark : marks) {
    e.put(mark.identity);
    e.put(static_cast<std::uint32_t>(mark.stores_left.size()));
    for (const Id128& store : mark.stores_left) e.put(store);
  }
  e.put(static_cast<std::uint32_t>(files.size()));
  for (const FileSurvey& file : files) file.encode(e);
  e.put(static_cast<std::uint32_t>(directories.size()));
  for (const std::string& one : directories) e.put(std::string_view(one));
}

Result<StoreSurvey> StoreSurvey::decode(Decoder& d) {
  StoreSurvey out;
  out.uuid = d.get_id();
  out.directory = d.get_string();
  out.free_bytes = d.get<std::uint64_t>();
  out.disk_bytes = d.get<std::uint64_t>();
  out.marks.resize(d.get_count(16));
  for (Mark& mark : out.marks) {
    mark.identity = d.get_id();
    mark.stores_left.resize(d.get_count(16));
    for (Id128& store : mark.stores_left) store = d.get_id();
  }
  const auto files = d.get_count(16);
  for (std::uint32_t i = 0; i < files; ++i) {
    DEDUP_ASSIGN(FileSurvey file, FileSurvey::decode(d));
    out.files.push_back(std::move(file));
  }
  out.directories.resize(d.get_count(4));
  for (std::string& directory : out.directories) directory = d.get_string();
  if (!d.ok()) return cut_off();
  return out;
}

Result<FileSurvey> survey_file(const Store& store, const Id128& identity) {
  return survey_with_locks(store, nullptr, identity);
}

Result<StoreSurvey> survey(const Store& store) {
  StoreSurvey out;
  out.uuid = store.uuid();
  out.directory = store.directory();
  DEDUP_ASSIGN(out.free_bytes, store.free_bytes());
  DEDUP_ASSIGN(out.disk_bytes, store.taken_bytes());
  DEDUP_ASSIGN(const auto marks, store.marks());
  for (const Id128& identity : marks) {
    Mark mark{identity, {}};
    // One that cannot be read still says that the file was deleted.
    if (auto left = store.mark_stores(identity); left.is_ok()) mark.stores_left = std::move(*left);
    out.marks.push_back(std::move(mark));
  }
  DEDUP_ASSIGN(const auto directories, store.directories());
  out.directories.assign(directories.begin(), directories.end());
  const auto locked = store.look_at_locks();
  DEDUP_ASSIGN(const auto identities, store.identities());
  for (const Id128& identity : identities) {
    DEDUP_ASSIGN(FileSurvey file, survey_with_locks(store, locked.get(), identity));
    out.files.push_back(std::move(file));
  }
  return out;
}

}  // namespace dedup::store
