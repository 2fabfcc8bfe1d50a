#include "service/attempt.h"

#include <algorithm>
#include <set>
#include <utility>

#include "service/compaction.h"
#include "store/fs.h"
#include "store/shard.h"

namespace dedup::service {
namespace {

constexpr std::size_t kLocateAtOnce = 65536;

// Ascending.
std::vector<std::uint64_t> segments_of(std::span<const store::IndexEntry> entries) {
  std::set<std::uint64_t> segments;
  for (const auto& entry : entries) segments.insert(entry.location.segment);
  return {segments.begin(), segments.end()};
}

}  // namespace

Result<std::unique_ptr<Attempt>> Attempt::begin(store::Store& store, FileChunks& chunks,
                                                const Id128& identity, const Id128& id) {
  DEDUP_TRY(store.begin_attempt(identity, id));
  chunks.begin_attempt();
  return std::unique_ptr<Attempt>(new Attempt(store, chunks, identity, id));
}

std::vector<std::uint8_t> Attempt::refer(std::span<const Fingerprint> fingerprints) {
  const std::vector<store::ChunkLocation> locations = chunks_.locate(fingerprints);
  std::vector<std::uint8_t> missing(fingerprints.size());
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    if (locations[i].length == 0) {
      missing[i] = 1;
    } else if (!chunks_.mark(fingerprints[i])) {
      carried_.insert(fingerprints[i]);
    }
  }
  return missing;
}

Result<std::vector<store::IndexEntry>> Attempt::live_chunks() {
  std::vector<store::IndexEntry> entries;
  const std::span<const Fingerprint> carried = carried_.sorted();
  entries.reserve(carried.size() + chunks_.index().marked());
  for (std::size_t begin = 0; begin < carried.size(); begin += kLocateAtOnce) {
    const auto some = carried.subspan(begin, std::min(kLocateAtOnce, carried.size() - begin));
    const std::vector<store::ChunkLocation> locations = chunks_.locate(some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (locations[i].length == 0) {
        return Status(Code::kIo, store_.file_directory(identity_) + ": chunk " + some[i].hex() +
                                     " was here and is gone");
      }
      // One that was stored again meanwhile is among the registered ones.
      if (!chunks_.mark(some[i])) entries.push_back({some[i], locations[i]});
    }
  }
  chunks_.index().for_each_marked([&](const Fingerprint& fingerprint, const auto& location) {
    entries.push_back({fingerprint, location});
  });
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.fingerprint < b.fingerprint; });
  return entries;
}

Status Attempt::check_shards(const store::CommitRecord& record) const {
  for (NodeIndex i = 0; i < record.stores.size(); ++i) {
    if (record.stores[i].uuid != store_.uuid()) continue;
    for (std::uint32_t s = 0; s < record.shards.size(); ++s) {
      const store::ShardEntry& shard = record.shards[s];
      if (std::find(shard.stores.begin(), shard.stores.end(), i) == shard.stores.end()) continue;
      DEDUP_TRY(store::ShardReader::open(store_.shard_path(identity_, id_, s), identity_, id_, s,
                                         shard.digest)
                    .status());
    }
  }
  return Status::ok();
}

Result<PrepareReply> Attempt::prepare(const store::CommitRecord& record, bool flush) {
  if (prepared_) return Status(Code::kArgument, "the attempt is prepared already");
  DEDUP_TRY(check_shards(record));
  DEDUP_ASSIGN(std::vector<store::IndexEntry> entries, live_chunks());
  PrepareReply reply;
  reply.chunks = entries.size();
  for (const auto& entry : entries) reply.bytes += entry.location.length;

  chunks_.close_own_segment();
  compacted_ = compact(store_, chunks_, identity_, entries, flush);
  DEDUP_ASSIGN(first_open_, chunks_.next_number());
  live_segments_ = segments_of(entries);
  if (flush) DEDUP_TRY(chunks_.flush(live_segments_));
  flushed_ = flush;

  // Not flushed here: Store::prepare does so, for all of the attempt's files.
  const std::string index = store_.index_path(identity_, id_);
  DEDUP_TRY(store::fs::remove_file(index));
  DEDUP_TRY(store::write_index(index, identity_, id_, std::move(entries), false));
  DEDUP_TRY(store_.prepare(record, flush));
  prepared_ = true;
  return reply;
}

Status Attempt::commit(bool flush) {
  if (!prepared_) return {Code::kArgument, "the attempt is not prepared"};
  const Status status = store_.commit(identity_, id_, flush);
  if (status.is_ok()) {
    committed_ = true;
  } else {
    const auto newest = store_.newest(identity_);
    committed_ = newest.is_ok() && newest->attempt == id_;
  }
  return status;
}

Status Attempt::abandon() {
  DEDUP_TRY(store_.abandon(identity_, id_));
  return compacted_ == 0 ? Status::ok()
                         : store::fs::remove_file(store_.segment_path(identity_, compacted_));
}

void Attempt::install() {
  chunks_.committed(id_, first_open_, live_segments_, flushed_);
}

}  // namespace dedup::service
