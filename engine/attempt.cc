#include "engine/attempt.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "engine/failpoint.h"
#include "engine/leases.h"
#include "store/real_path.h"

namespace dedup::engine {
namespace {

// Calls `request` at each node that this rank speaks for; all at once. `succeeded` counts the nodes
// that did.
template <typename Request>
Status at_my_nodes(const JobFile& file, const Request& request,
                   std::uint64_t* succeeded = nullptr) {
  std::vector<service::Client::Pending<Request>> pending;
  for (NodeIndex n = 0; n < file.nodes(); ++n) {
    if (file.ranks().speaks_for(n)) {
      pending.push_back(file.client().start(n, request));
    }
  }
  Status status;
  for (auto& p : pending) {
    const auto reply = p.wait();
    if (reply.is_ok()) {
      if (succeeded != nullptr) ++*succeeded;
    } else if (status.is_ok()) {
      status = reply.status();
    }
  }
  return status;
}

std::string hash_name(const hints::Hints& hints) {
  if (hints.mode == hints::Mode::kNone) return "none";
  return hints.fingerprint == FingerprintKind::kSha1 ? "sha1" : "sha256";
}

}  // namespace

Attempt::Attempt(JobFile& file) : file_(file), fence_(file) {
  if (file.rank() == 0) id_ = Id128::random();
  file.ranks().broadcast(id_);
}

Status Attempt::run(const std::function<Status()>& wait_for_data) {
  const Status status = prepare(wait_for_data);
  if (!status.is_ok()) {
    give_up();
    return status;
  }
  failpoint("commit.prepared");
  return decide();
}

// What takes the processor goes before what waits for the disk, which has the data to write.
Status Attempt::prepare(const std::function<Status()>& wait_for_data) {
  DEDUP_TRY(build_shards());
  if (file_.refuse_loss) DEDUP_TRY(file_.ranks().agree(check_loss()));
  failpoint("commit.shards");
  DEDUP_TRY(file_.ranks().agree(make_record()));
  const bool flush = file_.hints.fsync == hints::Fsync::kCommit;
  const Status indexed = at_my_nodes(file_, service::WriteIndex{file_.identity(), id_, flush});
  const Status durable = wait_for_data();
  DEDUP_TRY(file_.ranks().agree(indexed.is_ok() ? durable : indexed, Waiting::kPatient));
  failpoint("commit.indexed");
  const auto prepared = at_my_nodes(file_, service::Prepare{file_.identity(), encoded_, flush});
  DEDUP_TRY(file_.ranks().agree(prepared, Waiting::kPatient));
  const Status fence = file_.rank() == 0 ? fence_.prepare(record_) : Status::ok();
  return file_.ranks().agree(fence);
}

Status Attempt::build_shards() {
  ShardBuild build(file_, id_);
  Encoder mine;
  Status status;
  for (NodeIndex shard = 0; shard < file_.nodes() && status.is_ok(); ++shard) {
    const NodeIndex home = service::block_home(file_.identity(), shard, file_.nodes());
    if (!file_.ranks().speaks_for(home)) continue;
    const auto entry = build.build(shard);
    status = entry.status();
    if (!status.is_ok()) break;
    mine.put(static_cast<std::uint32_t>(shard));
    mine.put_raw(entry->digest.data(), entry->digest.size());
    mine.put(NodeSet(entry->stores.begin(), entry->stores.end()));
  }
  DEDUP_TRY(file_.ranks().agree(status, Waiting::kPatient));
  gathered_ = file_.ranks().gather(mine.bytes());
  gather_facts(build.facts());
  return Status::ok();
}

void Attempt::gather_facts(const RecipeFacts& mine) {
  Encoder encoder;
  encoder.put(mine.lowest_copies);
  encoder.put(mine.lost_chunks);
  encoder.put(mine.copies_made);
  encoder.put(static_cast<std::uint32_t>(mine.node_sets.size()));
  for (const NodeSet& set : mine.node_sets) encoder.put(set);
  facts_ = {};
  for (const Bytes& bytes : file_.ranks().gather(encoder.bytes())) {
    Decoder decoder(bytes);
    facts_.lowest_copies = std::min(facts_.lowest_copies, decoder.get<std::uint64_t>());
    facts_.lost_chunks += decoder.get<std::uint64_t>();
    facts_.copies_made += decoder.get<std::uint64_t>();
    const auto sets = decoder.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < sets; ++i) facts_.node_sets.insert(decoder.get_nodes());
  }
}

Status Attempt::check_loss() const {
  if (facts_.lost_chunks == 0) return Status::ok();
  std::string text = file_.path + ": of " + std::to_string(facts_.lost_chunks) +
                     " chunks there is no good copy on these nodes, so nothing was changed";
  const auto view = file_.view();
  const auto& stores = view->info.stores;
  for (std::size_t i = file_.nodes(); i < stores.size(); ++i) {
    text += (i == file_.nodes() ? "; not here are the stores of " : ", ") + stores[i].node;
  }
  return {Code::kIo, text};
}

// Rank 0 writes the record; all get it.
Status Attempt::make_record() {
  Status status;
  if (file_.rank() == 0) {
    status = fill_record();
    if (status.is_ok()) encoded_ = record_.encode();
  }
  file_.ranks().broadcast(encoded_);
  record_.number = file_.ranks().all_max(record_.number);
  return status;
}

Status Attempt::fill_record() {
  const std::shared_ptr<const FileView> view = file_.view();
  const service::FileInfo& info = view->info;
  DEDUP_ASSIGN(record_.size, file_size(file_));
  record_.identity = info.identity;
  record_.number = view->committed ? view->record.number + 1 : 1;
  record_.attempt = id_;
  record_.parent = view->base();
  record_.path = info.path;
  if (info.real_path != service::FileInfo::RealPath::kNone) {
    DEDUP_ASSIGN(record_.directory, store::directory_id(info.path));
  }
  record_.replication = file_.hints.replication;
  record_.chunk_size = file_.hints.chunk_size;
  record_.fingerprint = hash_name(file_.hints);
  record_.time = static_cast<std::uint64_t>(std::time(nullptr));
  for (NodeIndex n = 0; n < file_.nodes(); ++n) {
    record_.stores.push_back({info.stores[n].uuid, info.stores[n].node});
  }
  record_.shards.resize(file_.nodes());
  for (const Bytes& bytes : gathered_) {
    Decoder decoder(bytes);
    while (!decoder.at_end()) {
      const auto shard = decoder.get<std::uint32_t>();
      if (!decoder.ok() || shard >= record_.shards.size()) {
        return {Code::kInternal, "a rank sent a shard that cannot be"};
      }
      decoder.get_raw(record_.shards[shard].digest.data(), record_.shards[shard].digest.size());
      const NodeSet stores = decoder.get_nodes();
      record_.shards[shard].stores.assign(stores.begin(), stores.end());
    }
  }
  if (view->committed) record_.lineage = view->record.lineage;
  if (record_.lineage.empty() || record_.lineage.back().session != info.session) {
    record_.lineage.push_back({info.session, 0});
  }
  record_.lineage.back().last = record_.number;
  return Status::ok();
}

// Phase 2. From the first rename on the generation is committed, whatever else fails.
Status Attempt::decide() {
  const bool flush = file_.hints.fsync == hints::Fsync::kCommit;
  std::uint64_t committed = 0;
  const Status mine = at_my_nodes(file_, service::Commit{file_.identity(), id_, flush}, &committed);
  failpoint("commit.renamed");
  committed = file_.ranks().all_sum(committed);
  const Status all = file_.ranks().agree(mine);
  if (committed == 0) {
    give_up();
    return all;
  }
  if (!all.is_ok() && file_.rank() == 0) {
    std::fprintf(
        stderr, "dedup: warning: %s: generation %llu is committed, but not everywhere: %s\n",
        file_.path.c_str(), static_cast<unsigned long long>(record_.number), all.message().c_str());
  }
  failpoint("commit.unfenced");
  const Status fenced = file_.ranks().agree(file_.rank() == 0 ? fence_.put() : Status::ok());
  if (!fenced.is_ok()) {
    // The stores have it, but it does not count: an open takes what stands at the path.
    end_commit(false);
    return fenced;
  }
  failpoint("commit.fenced");
  return install();
}

// The new generation becomes the base for everybody in the job.
Status Attempt::install() {
  Status status;
  if (file_.rank() == 0) {
    std::vector<service::StoreRef> stores;
    const std::shared_ptr<const FileView> view = file_.view();
    stores.assign(view->info.stores.begin(), view->info.stores.begin() + file_.nodes());
    status = file_.client()
                 .call(file_.home, service::CommitDone{file_.identity(), encoded_, stores})
                 .status();
  }
  DEDUP_TRY(file_.ranks().agree(status));
  DEDUP_TRY(
      file_.ranks().agree(at_my_nodes(file_, service::EndCommit{file_.identity(), id_, true})));
  failpoint("commit.installed");
  // What cannot be freed now is freed by a later commit, or by the next job that writes.
  const Status freed = at_my_nodes(file_, service::Collect{file_.identity(), id_});
  if (!freed.is_ok()) {
    std::fprintf(stderr, "dedup: warning: %s: %s\n", file_.path.c_str(), freed.message().c_str());
  }
  failpoint("commit.collected");
  return file_.ranks().agree(file_.refresh_view());
}

void Attempt::give_up() {
  // Whoever does not answer now has nothing that could be mistaken for a commit either.
  (void)at_my_nodes(file_, service::Abort{file_.identity(), id_});
  end_commit(false);
}

void Attempt::end_commit(bool committed) {
  (void)at_my_nodes(file_, service::EndCommit{file_.identity(), id_, committed});
  (void)file_.ranks().agree(Status::ok());
}

}  // namespace dedup::engine
