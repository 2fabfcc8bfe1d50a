#include "service/node_commit.h"

#include <algorithm>
#include <utility>

#include "base/hasher.h"
#include "service/compaction.h"
#include "service/index_writing.h"
#include "service/live_chunks.h"
#include "service/stripe_pins.h"
#include "store/shard.h"

namespace dedup::service {
Result<std::unique_ptr<NodeCommit>> NodeCommit::begin(store::Store& store, FileChunks& chunks,
                                                      const Id128& identity, const Id128& id) {
  DEDUP_TRY(store.begin_attempt(identity, id));
  chunks.begin_attempt();
  return std::unique_ptr<NodeCommit>(new NodeCommit(store, chunks, identity, id));
}

Result<PutShardReply> NodeCommit::put_shard(const PutShard& request) {
  if (request.begins) {
    DEDUP_ASSIGN(shards_[request.shard],
                 store_.create_shard(identity_, id_, request.shard, request.base));
  }
  const auto found = shards_.find(request.shard);
  if (found == shards_.end()) {
    return Status(Code::kArgument, "blocks of a recipe shard that was not begun");
  }
  store::ShardWriter& writer = *found->second;
  for (const store::EncodedBlock& block : request.blocks) {
    if (!store::holds(block)) {
      return Status(Code::kCorrupt, "a recipe's block was damaged on its way to its shard");
    }
    DEDUP_TRY(writer.add(block));
  }
  PutShardReply reply{writer.can_carry(), {}};
  for (const store::BlockSummary& block : request.carried) {
    DEDUP_ASSIGN(const bool is_carried, writer.carry(block));
    if (!is_carried) reply.lacking.push_back(block.number);
  }
  if (request.ends && reply.lacking.empty()) {
    const Status finished = writer.finish();
    shards_.erase(found);
    DEDUP_TRY(finished);
  }
  return reply;
}

// Whether all that a stripe's table says is here, if it is one.
bool NodeCommit::has_unit(const NamedChunk& part) {
  if (kind_of(part.fingerprint) != NameKind::kStripePart) return true;
  const auto unit = stripes_.read_table(part);
  if (!unit.is_ok()) {
    chunks_.forget(part.fingerprint);
    return false;
  }
  std::vector<Fingerprint> names;
  for (const NamedChunk& chunk : *unit) names.push_back(chunk.fingerprint);
  const std::vector<store::ChunkLocation> locations = chunks_.locate(names);
  return std::none_of(locations.begin(), locations.end(),
                      [](const store::ChunkLocation& at) { return at.length == 0; });
}

std::vector<std::uint8_t> NodeCommit::refer(const References& request) {
  dropped_ += request.dropped;
  std::vector<std::uint32_t> numbers;
  for (const plan::Placement& placement : request.placements) {
    numbers.push_back(chunks_.intern(placement));
  }
  std::vector<Fingerprint> names;
  names.reserve(request.chunks.size());
  for (const Reference& chunk : request.chunks) names.push_back(chunk.fingerprint);
  const std::vector<store::ChunkLocation> locations = chunks_.locate(names);
  std::vector<std::uint8_t> missing(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::uint32_t placement = numbers[request.chunks[i].placement];
    if (locations[i].length == 0 || !has_unit({names[i], locations[i].length})) {
      missing[i] = 1;
    } else if (!chunks_.mark(names[i], placement)) {
      carried_.insert(names[i], placement);
    }
  }
  return missing;
}

Status NodeCommit::check_shards(const store::CommitRecord& record) const {
  for (NodeIndex i = 0; i < record.stores.size(); ++i) {
    if (record.stores[i].uuid != store_.uuid()) continue;
    for (std::uint32_t s = 0; s < record.shards.size(); ++s) {
      const store::ShardEntry& shard = record.shards[s];
      if (std::find(shard.stores.begin(), shard.stores.end(), i) == shard.stores.end()) continue;
      DEDUP_TRY(store_.shard(identity_, id_, s, shard.digest).status());
    }
  }
  return Status::ok();
}

// What stripes need beyond what the file refers to: added to what is carried over. Where runs of
// the base's index stay, what these name does so anyway.
Status NodeCommit::add_pins(bool all, std::span<const FingerprintNumbers::Item>& carried,
                            std::vector<FingerprintNumbers::Item>& memory) {
  StripePins pins(chunks_, stripes_, carried);
  DEDUP_TRY(pins.pin());
  if (!all) return Status::ok();
  chunks_.set_shares(pins.take_shares());
  if (pins.carried().empty()) return Status::ok();
  for (const Fingerprint& name : pins.carried()) memory.push_back({name, pins.unplaced()});
  const auto added = static_cast<std::ptrdiff_t>(memory.size());
  memory.insert(memory.end(), carried.begin(), carried.end());
  std::inplace_merge(memory.begin(), memory.begin() + added, memory.end(),
                     [](const auto& a, const auto& b) { return a.fingerprint < b.fingerprint; });
  carried = memory;
  return Status::ok();
}

// Not flushed here: Store::prepare does so, for all of the attempt's files.
Result<WriteIndexReply> NodeCommit::write_index(const WriteIndex& request) {
  if (indexed_ && (has_all_ || !request.all)) return index_;
  std::span<const FingerprintNumbers::Item> carried = carried_.sorted();
  std::vector<FingerprintNumbers::Item> with_pins;
  DEDUP_TRY(add_pins(request.all, carried, with_pins));
  LiveChunks live(chunks_, carried);
  chunks_.close_own_segment();
  const auto in_context = [&](const Status& status) {
    return status.with_context(store_.directory() + ": file " + identity_.hex());
  };
  IndexWriting writing(store_, chunks_, identity_, id_);
  Status status;
  if (request.all) {
    const auto space = live.measure();
    if (!space.is_ok()) return in_context(space.status());
    const Compaction compaction = compact(store_, chunks_, identity_, live, *space, request.flush);
    compacted_ = compaction.segment;
    status = writing.write_all(live, *space, compaction, request.base);
  } else {
    const auto written = writing.write_changes(live, request.base, dropped_);
    status = written.status();
    if (status.is_ok() && !*written) return WriteIndexReply{true, 0};
  }
  if (!status.is_ok()) return in_context(status);
  DEDUP_ASSIGN(first_open_, chunks_.next_number());
  live_segments_ = writing.live_segments();
  index_ = {false, writing.chunks()};
  indexed_ = true;
  has_all_ = request.all;
  return index_;
}

Status NodeCommit::prepare(const store::CommitRecord& record, bool flush) {
  if (!indexed_ || prepared_) {
    return {Code::kArgument, "the attempt has no index, or is prepared already"};
  }
  DEDUP_TRY(check_shards(record));
  if (flush) DEDUP_TRY(chunks_.flush(live_segments_));
  flushed_ = flush;
  DEDUP_TRY(store_.prepare(record, flush));
  record_ = record;
  prepared_ = true;
  return Status::ok();
}

Status NodeCommit::commit(bool flush) {
  if (!prepared_) return {Code::kArgument, "the attempt is not prepared"};
  const Status status = store_.commit(identity_, id_, flush);
  commit_failed_ = !status.is_ok();
  if (status.is_ok()) {
    committed_ = true;
  } else {
    const auto newest = store_.newest(identity_);
    committed_ = newest.is_ok() && newest->attempt == id_;
  }
  return status;
}

Status NodeCommit::abandon() {
  shards_.clear();
  DEDUP_TRY(commit_failed_ ? store_.withdraw(identity_, id_) : store_.abandon(identity_, id_));
  return compacted_ == 0 ? Status::ok() : store_.remove_segment(identity_, compacted_);
}

void NodeCommit::install() {
  chunks_.committed(id_, first_open_, live_segments_, flushed_);
}

}  // namespace dedup::service
