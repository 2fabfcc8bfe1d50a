#include "service/store_node.h"

#include <algorithm>
#include <utility>

#include "base/warn.h"
#include "hints/hints.h"
#include "service/spill.h"
#include "store/deletion.h"
#include "store/format.h"
#include "store/kept.h"

namespace dedup::service {
namespace {

constexpr std::size_t kBlocksAtOnce = kPayload / (std::size_t{64} << 10);

Result<Empty> to_reply(const Status& status) {
  if (!status.is_ok()) return status;
  return Empty{};
}

// Drops what was deleted while this store was away.
Status drop_marked(store::Store& store, const std::unordered_map<Id128, AttachedFile>& attached) {
  DEDUP_ASSIGN(const std::vector<Id128> marks, store.marks());
  for (const Id128& identity : marks) {
    if (attached.contains(identity)) continue;
    const Status dropped = store::drop_marked(store, identity);
    if (dropped.code() != Code::kFileInUse) DEDUP_TRY(dropped);
  }
  return Status::ok();
}

}  // namespace

StoreNode::StoreNode(std::string node_name, NodeIndex self, NodeIndex nodes,
                     store::StoreOpener opener)
    : node_name_(std::move(node_name)), self_(self), nodes_(nodes), opener_(std::move(opener)) {}

Status StoreNode::explain(const Status& status) const {
  // A file of the store that is missing is not the program's file that is missing.
  const Code code = status.code() == Code::kNoSuchFile ? Code::kIo : status.code();
  return {code, "node " + node_name_ + ": " + status.message()};
}

template <typename Work>
auto StoreNode::with_file(const Id128& identity, Work&& work)
    -> decltype(work(std::declval<AttachedFile&>())) {
  const auto it = files_.find(identity);
  if (it == files_.end()) {
    return explain({Code::kInternal, "file " + identity.hex() + " is not attached"});
  }
  auto result = work(it->second);
  if (!result.is_ok()) return explain(result.status());
  return result;
}

template <typename Work>
auto StoreNode::with_readable(const Id128& identity, Work&& work)
    -> decltype(work(std::declval<ReadableFile>())) {
  const auto held = held_.find(identity);
  if (held == held_.end()) {
    return with_file(identity, [&](AttachedFile& file) { return work(file.readable()); });
  }
  auto result = work(held->second.generation.readable());
  if (!result.is_ok()) return explain(result.status());
  return result;
}

template <typename Work>
auto StoreNode::with_writable(const Id128& identity, Work&& work)
    -> decltype(work(std::declval<AttachedFile&>())) {
  return with_file(identity, [&](AttachedFile& file) -> decltype(work(file)) {
    DEDUP_TRY(file.check_writable());
    return work(file);
  });
}

Result<std::shared_ptr<store::Store>> StoreNode::open_store(const std::string& store_template,
                                                            bool create) {
  const StorePlace place = hints::expand_store(store_template, node_name_);
  std::shared_ptr<store::Store>& known = stores_[place.text()];
  const auto is_known = [&](const store::Store& other) {
    return known && other.uuid() == known->uuid() &&
           other.directories_of_segments() == known->directories_of_segments();
  };
  if (known) {
    // What there is to be made or finished was when it was opened first.
    const auto again = opener_(place, false);
    if (again.is_ok() && is_known(**again)) return known;
  }
  auto opened = opener_(place, create);
  if (!opened.is_ok()) return opened.status().with_context("node " + node_name_);
  if (!is_known(**opened)) known = std::move(*opened);
  return known;
}

Status StoreNode::check_placements(std::span<const plan::Placement> placements) const {
  for (const plan::Placement& placement : placements) {
    if (!placement.involves(self_) || !placement.is_within(nodes_)) {
      return {
          Code::kArgument,
          "a chunk came with a placement on nodes that are not of this job, or not on this one"};
    }
  }
  return Status::ok();
}

// ---- Files ------------------------------------------------------------------------------------

namespace {

// What the plain donor is cached as.
void add_cached(const store::Store& store, const Find& request,
                std::vector<store::SharedRecord>& out) {
  const auto entry = store.find(request.plain_donor);
  if (!entry.is_ok()) return;
  for (const store::CommitRecord& record : entry->records) {
    const auto note = store.cached(record.identity, record.attempt);
    const bool is_it =
        note.is_ok() && *note && store::is_unchanged((*note)->plain, request.plain_donor_stamp);
    if (is_it) out.emplace_back(record);
  }
}

}  // namespace

Result<FindReply> StoreNode::on(const Find& request) {
  DEDUP_ASSIGN(const auto store, open_store(request.store_template, true));
  const Status dropped = drop_marked(*store, files_);
  if (!dropped.is_ok()) return explain(dropped);
  bool makes_kept = false;
  if (!request.kept_of.is_zero()) {
    // What this store cannot give, others do.
    const Status kept = store::keep_generation(*store, request.kept_of, request.kept_attempt, true);
    makes_kept = kept.code() == Code::kFileInUse;
  }
  auto entry = store->find(request.path, request.identity);
  if (!entry.is_ok()) return explain(entry.status());
  const auto free_bytes = store->free_bytes();
  if (!free_bytes.is_ok()) return explain(free_bytes.status());
  const auto seen = store::see_directory(request.path);
  if (!seen.is_ok()) return explain(seen.status());
  FindReply reply;
  reply.store = {store->uuid(), node_name_};
  reply.seen = *seen;
  reply.free_bytes = *free_bytes;
  reply.makes_kept = makes_kept;
  reply.records.assign(entry->records.begin(), entry->records.end());
  for (const auto& record : entry->records) {
    // One that cannot be read is as good as none.
    const auto cached = store->cached(record.identity, record.attempt);
    if (cached.is_ok() && *cached) reply.cached.push_back(**cached);
  }
  reply.deleted = std::move(entry->deleted);
  reply.damaged = std::move(entry->damaged);
  for (std::string& text : reply.damaged) text.insert(0, "node " + node_name_ + ": ");
  // One that cannot be read is as good as none.
  if (!request.donor.is_zero()) {
    const auto donor = store->newest(request.donor);
    if (donor.is_ok()) reply.donor.emplace_back(*donor);
  }
  if (!request.plain_donor.empty()) add_cached(*store, request, reply.donor);
  if (request.whole) {
    reply.whole.assign(reply.records.begin(), reply.records.end());
    reply.whole.insert(reply.whole.end(), reply.donor.begin(), reply.donor.end());
  }
  return reply;
}

Result<GetRecordReply> StoreNode::on(const GetRecord& request) {
  DEDUP_ASSIGN(const auto store, open_store(request.store_template, false));
  auto generations = store->generations(request.digest.identity);
  if (!generations.is_ok()) return explain(generations.status());
  for (store::CommitRecord& record : generations->committed) {
    if (store::SharedRecord(record).digest() == request.digest) {
      return GetRecordReply{std::move(record)};
    }
  }
  return GetRecordReply{};
}

Result<AttachReply> StoreNode::on(const Attach& request) {
  auto it = files_.find(request.identity);
  const bool is_new = it == files_.end();
  if (is_new) {
    DEDUP_ASSIGN(auto store, open_store(request.store_template, request.create));
    it = files_.try_emplace(request.identity, std::move(store), request.identity, request.base)
             .first;
  }
  auto reply = it->second.attach(request, attached());
  if (reply.is_ok() && !reply->overtaken) return reply;
  if (is_new) files_.erase(it);
  if (!reply.is_ok()) return explain(reply.status());
  return reply;
}

std::optional<Id128> StoreNode::read_only_base(const Id128& identity) const {
  const auto it = files_.find(identity);
  if (it == files_.end() || it->second.check_writable().is_ok()) return std::nullopt;
  return it->second.base();
}

Result<Empty> StoreNode::on(const Detach& request) {
  if (!request.drop && !files_.contains(request.identity)) return Empty{};
  auto reply = with_file(request.identity, [&](AttachedFile& file) {
    file.store().close_readers(request.identity);
    return to_reply(request.drop ? file.drop(request.stores_left) : file.detach());
  });
  files_.erase(request.identity);
  return reply;
}

Result<Empty> StoreNode::hold(const HoldGeneration& request, ConnectionId connection) {
  if (const auto held = held_.find(request.ticket); held != held_.end()) {
    held->second.connection = connection;
    return Empty{};
  }
  if (files_.contains(request.ticket)) {
    return explain({Code::kArgument, "a ticket that is a file's identity"});
  }
  for (const std::string& store_template : request.store_templates) {
    auto store = open_store(store_template, false);
    if (!store.is_ok() || (*store)->uuid() != request.store) continue;
    auto generation = HeldGeneration::of(*std::move(store), request.identity, request.attempt);
    if (!generation.is_ok()) return explain(generation.status());
    held_.emplace(request.ticket, Held{*std::move(generation), connection});
    return Empty{};
  }
  return explain({Code::kNotFound, "store " + request.store.hex() + " is not here"});
}

Result<Empty> StoreNode::on(const LetGo& request) {
  held_.erase(request.ticket);
  return Empty{};
}

void StoreNode::closed(ConnectionId connection) {
  std::erase_if(held_, [&](const auto& one) { return one.second.connection == connection; });
}

Result<Empty> StoreNode::on(const Adopt& request) {
  return with_file(request.identity, [&](AttachedFile& file) -> Result<Empty> {
    DEDUP_ASSIGN(const auto record, store::CommitRecord::decode(request.record));
    return to_reply(file.adopt(record));
  });
}

Result<Empty> StoreNode::on(const Drop& request) {
  if (files_.contains(request.identity)) {
    return explain({Code::kFileInUse, "file " + request.identity.hex() + " is open in this job"});
  }
  DEDUP_ASSIGN(const auto store, open_store(request.store_template, true));
  const Status status = store::drop_with_mark(*store, request.identity, request.stores_left);
  return status.is_ok() ? to_reply(status) : explain(status);
}

Result<SpaceReply> StoreNode::on(const Space& request) {
  return with_file(request.identity, [&](AttachedFile& file) -> Result<SpaceReply> {
    DEDUP_ASSIGN(std::uint64_t bytes, file.store().free_bytes());
    if (bytes < request.needed && file.make_room(attached())) {
      DEDUP_ASSIGN(bytes, file.store().free_bytes());
    }
    SpaceReply reply{bytes, {}};
    if (bytes < request.needed && request.gives_up) {
      const bool anything = request.needed == Space::kAnything;
      reply.given_up = file.give_up_kept(anything ? 1 : request.needed - bytes);
      DEDUP_ASSIGN(reply.free_bytes, file.store().free_bytes());
    }
    return reply;
  });
}

std::vector<Id128> StoreNode::attached() const {
  std::vector<Id128> identities;
  for (const auto& [identity, file] : files_) identities.push_back(identity);
  return identities;
}

std::unique_ptr<Executor::Task> StoreNode::spill(const Id128& identity) {
  const auto file = files_.find(identity);
  if (file == files_.end() || !file->second.store().is_overfull()) return nullptr;
  const StorePlace& place = file->second.store().place();
  const std::string key = place.text();
  if (!spilling_.insert(key).second) return nullptr;
  const auto on_end = [this, key](const Status& outcome) {
    spilling_.erase(key);
    // Stopped, it goes on another time; and without room below, things stay where they are.
    const Code code = outcome.code();
    if (outcome.is_ok() || code == Code::kInternal || code == Code::kNoSpace) return;
    warn(
        "node " + node_name_ +
        ": segments stay in a tier that is too full, since they cannot be moved to a slower one: " +
        outcome.message());
  };
  return std::make_unique<SpillTask>(opener_, place, on_end);
}

// ---- Chunks -----------------------------------------------------------------------------------

Result<NumberReply> StoreNode::on(const OpenSegment& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<NumberReply> {
    if (request.log) {
      DEDUP_TRY(file.chunks().open_segment_of(*request.log));
      return NumberReply{*request.log};
    }
    DEDUP_ASSIGN(const std::uint64_t number, file.chunks().open_segment());
    return NumberReply{number};
  });
}

Result<LookReply> StoreNode::on(const Look& request) {
  return with_file(request.identity, [&](AttachedFile& file) -> Result<LookReply> {
    return file.chunks().look(request);
  });
}

Result<ClaimReply> StoreNode::on(const Claim& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<ClaimReply> {
    return ClaimReply{file.chunks().claim(request)};
  });
}

Result<Empty> StoreNode::on(const Register& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<Empty> {
    DEDUP_TRY(check_placements(request.placements));
    return to_reply(file.chunks().add(request));
  });
}

Result<Empty> StoreNode::on(const Release& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<Empty> {
    file.chunks().release(request.fingerprints);
    return Empty{};
  });
}

Result<Empty> StoreNode::on(const ForgetSegment& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<Empty> {
    file.chunks().forget_segment(request.number);
    return Empty{};
  });
}

Result<Empty> StoreNode::on(const Distrust& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<Empty> {
    return to_reply(file.chunks().distrust(request.fingerprints));
  });
}

Result<LocateReply> StoreNode::on(const Locate& request) {
  return with_readable(request.identity, [&](const ReadableFile& file) -> Result<LocateReply> {
    return LocateReply{file.chunks.locate(request.fingerprints)};
  });
}

Result<ChunksReply> StoreNode::on(const GetChunks& request) {
  return with_readable(request.identity,
                       [&](const ReadableFile& file) { return file.chunks.read(request.chunks); });
}

Result<store::Store::Loan> StoreNode::on(const LendSegment& request) {
  return with_readable(request.identity, [&](const ReadableFile& file) {
    return file.store.lend_segment(file.identity, request.number);
  });
}

Result<PutReply> StoreNode::on(const PutChunks& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<PutReply> {
    DEDUP_TRY(check_placements(request.placements));
    return file.chunks().put(request);
  });
}

// ---- Logs -------------------------------------------------------------------------------------

Result<NumberReply> StoreNode::on(const OpenLog& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<NumberReply> {
    DEDUP_ASSIGN(const std::uint64_t number, file.chunks().open_log());
    return NumberReply{number};
  });
}

Result<BytesReply> StoreNode::on(const ReadLog& request) {
  return with_file(request.identity, [&](AttachedFile& file) -> Result<BytesReply> {
    DEDUP_ASSIGN(const auto reader, file.store().log(request.identity, request.log));
    BytesReply reply;
    reply.bytes.resize(request.length);
    DEDUP_TRY(reader->read(request.offset, reply.bytes));
    reply.checksum = store::format::checksum(reply.bytes);
    return reply;
  });
}

Result<RecallReply> StoreNode::on(const RecallLease& request) {
  return with_file(request.identity, [&](AttachedFile& file) -> Result<RecallReply> {
    const Lease& lease = request.lease;
    DEDUP_ASSIGN(const auto table, file.store().leases(request.identity, lease.log));
    const auto writes = table->recall(lease.slot, lease.serial);
    RecallReply reply;
    reply.here = writes.has_value();
    if (writes) reply.pieces = store::log_pieces(*writes, self_, lease.log);
    return reply;
  });
}

// ---- Recipe shards ----------------------------------------------------------------------------

Result<ListShardReply> StoreNode::on(const ListShard& request) {
  return with_file(request.identity, [&](AttachedFile& file) -> Result<ListShardReply> {
    DEDUP_ASSIGN(const auto reader, file.store().shard(request.identity, request.attempt,
                                                       request.shard, request.digest));
    const std::vector<std::uint64_t> all = reader->block_numbers();
    const auto begin = std::lower_bound(all.begin(), all.end(), request.cursor);
    const auto count =
        std::min<std::ptrdiff_t>(all.end() - begin, kPayload / sizeof(std::uint64_t));
    return ListShardReply{{begin, begin + count}, begin + count == all.end()};
  });
}

Result<ReadShardReply> StoreNode::on(const ReadShard& request) {
  return with_readable(request.identity, [&](const ReadableFile& file) -> Result<ReadShardReply> {
    if (request.blocks.size() > kBlocksAtOnce) {
      return Status(Code::kArgument, "too many blocks asked for at once");
    }
    DEDUP_ASSIGN(const auto reader,
                 file.store.shard(file.identity, request.attempt, request.shard, request.digest));
    ReadShardReply reply;
    for (const std::uint64_t block : request.blocks) {
      DEDUP_ASSIGN(reply.blocks.emplace_back(), reader->read_encoded(block));
    }
    return reply;
  });
}

// ---- Commit -----------------------------------------------------------------------------------

Result<PutShardReply> StoreNode::on(const PutShard& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<PutShardReply> {
    DEDUP_ASSIGN(NodeCommit* const commit, file.begin_commit(request.attempt));
    return commit->put_shard(request);
  });
}

Result<ReferencesReply> StoreNode::on(const References& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<ReferencesReply> {
    DEDUP_TRY(check_placements(request.placements));
    DEDUP_ASSIGN(NodeCommit* const commit, file.begin_commit(request.attempt));
    return ReferencesReply{commit->refer(request)};
  });
}

Result<ListSharesReply> StoreNode::on(const ListShares& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<ListSharesReply> {
    DEDUP_ASSIGN(NodeCommit* const commit, file.begin_commit(request.attempt));
    DEDUP_ASSIGN(auto shares, commit->stripes().shares(request));
    return ListSharesReply{std::move(shares)};
  });
}

Result<MakeUnitsReply> StoreNode::on(const MakeUnits& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<MakeUnitsReply> {
    DEDUP_ASSIGN(NodeCommit* const commit, file.begin_commit(request.attempt));
    return commit->stripes().make_units(request, self_, nodes_);
  });
}

Result<ListUnitsReply> StoreNode::on(const ListUnits& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<ListUnitsReply> {
    DEDUP_ASSIGN(NodeCommit* const commit, file.begin_commit(request.attempt));
    ListUnitsReply reply;
    for (const std::uint32_t unit : request.units) {
      DEDUP_ASSIGN(reply.units.emplace_back(), commit->stripes().unit(unit));
    }
    return reply;
  });
}

Result<Empty> StoreNode::on(const JoinStripes& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<Empty> {
    for (const JoinedUnit& joined : request.units) {
      const auto placement = plan::Placement::in_stripe(joined.stripe);
      DEDUP_TRY(check_placements({&placement, 1}));
      if (!placement.is_on(self_)) {
        return Status(Code::kArgument, "a unit of another node was to join a stripe here");
      }
    }
    DEDUP_ASSIGN(NodeCommit* const commit, file.begin_commit(request.attempt));
    return to_reply(commit->stripes().join(request));
  });
}

Result<FindPlacementsReply> StoreNode::on(const FindPlacements& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<FindPlacementsReply> {
    DEDUP_ASSIGN(NodeCommit* const commit, file.begin_commit(request.attempt));
    return commit->stripes().placements_of(request.fingerprints);
  });
}

Result<WriteIndexReply> StoreNode::on(const WriteIndex& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<WriteIndexReply> {
    DEDUP_ASSIGN(NodeCommit* const commit, file.begin_commit(request.attempt));
    return commit->write_index(request);
  });
}

Result<Empty> StoreNode::on(const Prepare& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<Empty> {
    return to_reply(file.prepare(request));
  });
}

Result<Empty> StoreNode::on(const Commit& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<Empty> {
    return to_reply(file.commit(request.attempt, request.flush));
  });
}

Result<Empty> StoreNode::on(const Abort& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<Empty> {
    return to_reply(file.abort(request.attempt));
  });
}

Result<CollectReply> StoreNode::on(const Collect& request) {
  return with_writable(request.identity, [&](AttachedFile& file) -> Result<CollectReply> {
    return file.collect(request.attempt);
  });
}

// ---- Write-back -------------------------------------------------------------------------------

Result<Empty> StoreNode::on(const PutWritten& request) {
  return with_writable(request.identity, [&](AttachedFile& file) {
    return to_reply(file.store().put_written(request.identity, request.attempt, request.part));
  });
}

Result<ListWrittenReply> StoreNode::on(const ListWritten& request) {
  return with_file(request.identity, [&](AttachedFile& file) -> Result<ListWrittenReply> {
    DEDUP_ASSIGN(auto parts, file.store().written(request.identity, request.attempt));
    return ListWrittenReply{std::move(parts)};
  });
}

Result<Empty> StoreNode::on(const PutCached& request) {
  return with_writable(request.identity, [&](AttachedFile& file) {
    return to_reply(file.store().put_cached(request.identity, request.note));
  });
}

}  // namespace dedup::service
