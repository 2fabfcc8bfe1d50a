#include "store/survey.h"

#include <algorithm>
#include <map>
#include <utility>

namespace dedup::store {
namespace {

// The segments of a store, by SegmentSize::content.
struct SegmentNeed {
  std::uint64_t bytes = 0;
  std::uint64_t live = 0;  // that the file needs that needs most of it
};
using SegmentNeeds = std::map<std::uint64_t, SegmentNeed>;

// The attempts' part of a survey.
Status add_attempts(const Store& store, const Store::Locked* locked, FileSurvey& out) {
  DEDUP_ASSIGN(Store::Generations attempts, store.generations(out.identity));
  out.prepared.assign(attempts.prepared.begin(), attempts.prepared.end());
  out.damaged = std::move(attempts.damaged);
  out.unfinished = out.prepared.size() + attempts.begun.size();
  std::uint64_t highest = 0;
  for (const CommitRecord& record : attempts.committed) {
    out.committed.push_back(record.attempt);
    highest = std::max(highest, record.number);
    out.reading = out.reading || (locked && locked->reading(out.identity, record.attempt));
  }
  for (CommitRecord& record : attempts.committed) {
    if (record.number == highest) out.newest.emplace_back(std::move(record));
  }
  if (!out.newest.empty()) {
    const Id128& attempt = out.newest.front()->attempt;
    DEDUP_ASSIGN(out.write_back.written, store.written(out.identity, attempt));
    DEDUP_ASSIGN(out.write_back.cached, store.cached(out.identity, attempt));
  }
  return Status::ok();
}

// The index's part, and the bytes that it needs of each segment.
std::map<std::uint64_t, std::uint64_t> add_index(const Store& store, FileSurvey& out) {
  if (out.newest.empty()) return {};
  const auto index = store.index(out.identity, out.newest.front()->attempt);
  out.has_index = index.is_ok();
  if (!index.is_ok()) {
    if (index.status().code() != Code::kNotFound) out.index_damage = index.status().message();
    return {};
  }
  out.chunks = (*index)->size();
  std::map<std::uint64_t, std::uint64_t> live;
  for (const auto& use : (*index)->segments()) {
    out.live_bytes += use.live_bytes;
    live[use.segment] = use.live_bytes;
  }
  return live;
}

Result<FileSurvey> survey_with_locks(const Store& store, const Store::Locked* locked,
                                     const Id128& identity, SegmentNeeds& needs) {
  FileSurvey out;
  out.identity = identity;
  DEDUP_TRY(add_attempts(store, locked, out));
  const auto live = add_index(store, out);
  if (out.newest.empty()) {
    DEDUP_ASSIGN(out.paths, store.paths(identity));
  }
  DEDUP_ASSIGN(const auto segments, store.segments(identity));
  for (const SegmentSize& segment : segments) {
    out.segment_bytes += segment.bytes;
    if (segment.is_shared) out.shared_bytes += segment.bytes;
    SegmentNeed& need = needs[segment.content];
    need.bytes = segment.bytes;
    if (const auto of_it = live.find(segment.segment); of_it != live.end()) {
      need.live = std::max(need.live, of_it->second);
    }
  }
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

}  // namespace

Result<FileSurvey> survey_file(const Store& store, const Id128& identity) {
  SegmentNeeds ignored;
  return survey_with_locks(store, nullptr, identity, ignored);
}

Result<StoreSurvey> survey(const Store& store) {
  StoreSurvey out;
  out.uuid = store.uuid();
  out.directory = store.directory();
  DEDUP_ASSIGN(out.free_bytes, store.free_bytes());
  DEDUP_ASSIGN(out.file_system_bytes, store.file_system_bytes());
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
  SegmentNeeds needs;
  for (const Id128& identity : identities) {
    DEDUP_ASSIGN(FileSurvey file, survey_with_locks(store, locked.get(), identity, needs));
    out.files.push_back(std::move(file));
  }
  for (const auto& [content, need] : needs) {
    out.segment_bytes += need.bytes;
    out.dead_bytes += need.bytes - std::min(need.bytes, need.live);
  }
  return out;
}

}  // namespace dedup::store
