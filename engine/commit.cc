#include "engine/commit.h"

#include <cstdio>
#include <ctime>
#include <optional>

#include "engine/agreement.h"
#include "engine/failpoint.h"
#include "engine/fence.h"
#include "engine/log_dump.h"
#include "engine/plain_file.h"
#include "engine/report.h"
#include "engine/shard_build.h"
#include "engine/writer.h"
#include "hints/hints.h"
#include "store/commit_record.h"
#include "store/real_path.h"

namespace dedup::engine {
namespace {

// Calls `request` at each node that this rank speaks for; all at once. `succeeded` counts the nodes
// that did.
template <typename Request>
Status at_my_nodes(const OpenFile& file, const Request& request,
                   std::uint64_t* succeeded = nullptr) {
  std::vector<service::Client::Pending<Request>> pending;
  for (NodeIndex n = 0; n < file.job->nodes(); ++n) {
    if (file.topology.speaker_for(n) == file.rank()) {
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

// One attempt at a generation, from the snapshot on.
class Attempt {
 public:
  explicit Attempt(OpenFile& file) : file_(file), fence_(file) {
    if (file.rank() == 0) id_ = Id128::random();
    PMPI_Bcast(&id_, sizeof id_, MPI_BYTE, 0, file.comm());
  }

  Status run() {
    const Status status = prepare();
    if (!status.is_ok()) {
      give_up();
      return status;
    }
    failpoint("commit.prepared");
    return decide();
  }

  const RecipeFacts& facts() const { return facts_; }
  std::uint64_t number() const { return record_.number; }

 private:
  Status prepare() {
    DEDUP_TRY(build_shards());
    if (file_.refuse_loss) DEDUP_TRY(agree(file_.comm(), check_loss()));
    failpoint("commit.shards");
    DEDUP_TRY(agree(file_.comm(), make_record()));
    const bool flush = file_.hints.fsync == hints::Fsync::kCommit;
    DEDUP_TRY(agree(file_.comm(),
                    at_my_nodes(file_, service::Prepare{file_.identity(), encoded_, flush})));
    return agree(file_.comm(), file_.rank() == 0 ? fence_.prepare(record_) : Status::ok());
  }

  Status build_shards() {
    ShardBuild build(file_, id_);
    Encoder mine;
    Status status;
    for (NodeIndex shard = 0; shard < file_.job->nodes() && status.is_ok(); ++shard) {
      const NodeIndex home = service::block_home(file_.identity(), shard, file_.job->nodes());
      if (file_.topology.speaker_for(home) != file_.rank()) continue;
      const auto entry = build.build(shard);
      status = entry.status();
      if (!status.is_ok()) break;
      mine.put(static_cast<std::uint32_t>(shard));
      mine.put_raw(entry->digest.data(), entry->digest.size());
      mine.put(NodeSet(entry->stores.begin(), entry->stores.end()));
    }
    DEDUP_TRY(agree(file_.comm(), status));
    gathered_ = gather(file_.comm(), mine.bytes());
    gather_facts(build.facts());
    return Status::ok();
  }

  void gather_facts(const RecipeFacts& mine) {
    Encoder encoder;
    encoder.put(mine.lowest_copies);
    encoder.put(mine.lost_chunks);
    encoder.put(mine.copies_made);
    encoder.put(static_cast<std::uint32_t>(mine.node_sets.size()));
    for (const NodeSet& set : mine.node_sets) encoder.put(set);
    facts_ = {};
    for (const Bytes& bytes : gather(file_.comm(), encoder.bytes())) {
      Decoder decoder(bytes);
      facts_.lowest_copies = std::min(facts_.lowest_copies, decoder.get<std::uint64_t>());
      facts_.lost_chunks += decoder.get<std::uint64_t>();
      facts_.copies_made += decoder.get<std::uint64_t>();
      const auto sets = decoder.get<std::uint32_t>();
      for (std::uint32_t i = 0; i < sets; ++i) facts_.node_sets.insert(decoder.get_nodes());
    }
  }

  Status check_loss() const {
    if (facts_.lost_chunks == 0) return Status::ok();
    std::string text = file_.path + ": of " + std::to_string(facts_.lost_chunks) +
                       " chunks there is no good copy on these nodes, so nothing was changed";
    const auto view = file_.view();
    const auto& stores = view->info.stores;
    for (std::size_t i = file_.job->nodes(); i < stores.size(); ++i) {
      text += (i == file_.job->nodes() ? "; not here are the stores of " : ", ") + stores[i].node;
    }
    return {Code::kIo, text};
  }

  // Rank 0 writes the record; all get it.
  Status make_record() {
    Status status;
    if (file_.rank() == 0) {
      status = fill_record();
      if (status.is_ok()) encoded_ = record_.encode();
    }
    broadcast(file_.comm(), 0, encoded_);
    PMPI_Bcast(&record_.number, 1, MPI_UINT64_T, 0, file_.comm());
    return status;
  }

  Status fill_record() {
    const std::shared_ptr<const FileView> view = file_.view();
    const service::FileInfo& info = view->info;
    DEDUP_ASSIGN(const service::SizeReply size,
                 file_.client().call(file_.home, service::GetSize{file_.identity()}));
    record_.identity = info.identity;
    record_.number = view->committed ? view->record.number + 1 : 1;
    record_.attempt = id_;
    record_.parent = view->base();
    record_.path = info.path;
    if (info.real_path != service::FileInfo::RealPath::kNone) {
      record_.directory = store::directory_id(info.path);
    }
    record_.size = size.size;
    record_.replication = file_.hints.replication;
    record_.chunk_size = file_.hints.chunk_size;
    record_.fingerprint = hash_name(file_.hints);
    record_.time = static_cast<std::uint64_t>(std::time(nullptr));
    for (NodeIndex n = 0; n < file_.job->nodes(); ++n) {
      record_.stores.push_back({info.stores[n].uuid, info.stores[n].node});
    }
    record_.shards.resize(file_.job->nodes());
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
  Status decide() {
    const bool flush = file_.hints.fsync == hints::Fsync::kCommit;
    std::uint64_t committed = 0;
    const Status mine =
        at_my_nodes(file_, service::Commit{file_.identity(), id_, flush}, &committed);
    failpoint("commit.renamed");
    committed = all_sum(file_.comm(), committed);
    const Status all = agree(file_.comm(), mine);
    if (committed == 0) {
      give_up();
      return all;
    }
    if (!all.is_ok() && file_.rank() == 0) {
      std::fprintf(stderr,
                   "dedup: warning: %s: generation %llu is committed, but not everywhere: %s\n",
                   file_.path.c_str(), static_cast<unsigned long long>(record_.number),
                   all.message().c_str());
    }
    failpoint("commit.unfenced");
    const Status fenced = agree(file_.comm(), file_.rank() == 0 ? fence_.put() : Status::ok());
    if (!fenced.is_ok()) {
      // The stores have it, but it does not count: an open takes what stands at the path.
      end_commit(false);
      return fenced;
    }
    failpoint("commit.fenced");
    return install();
  }

  // The new generation becomes the base for everybody in the job.
  Status install() {
    Status status;
    if (file_.rank() == 0) {
      std::vector<service::StoreRef> stores;
      const std::shared_ptr<const FileView> view = file_.view();
      stores.assign(view->info.stores.begin(), view->info.stores.begin() + file_.job->nodes());
      status = file_.client()
                   .call(file_.home, service::CommitDone{file_.identity(), encoded_, stores})
                   .status();
    }
    DEDUP_TRY(agree(file_.comm(), status));
    DEDUP_TRY(
        agree(file_.comm(), at_my_nodes(file_, service::EndCommit{file_.identity(), id_, true})));
    failpoint("commit.installed");
    // What cannot be freed now is freed by a later commit, or by the next job that writes.
    const Status freed = at_my_nodes(file_, service::Collect{file_.identity(), id_});
    if (!freed.is_ok()) {
      std::fprintf(stderr, "dedup: warning: %s: %s\n", file_.path.c_str(), freed.message().c_str());
    }
    failpoint("commit.collected");
    return agree(file_.comm(), file_.refresh_view());
  }

  void give_up() {
    // Whoever does not answer now has nothing that could be mistaken for a commit either.
    (void)at_my_nodes(file_, service::Abort{file_.identity(), id_});
    end_commit(false);
  }

  void end_commit(bool committed) {
    (void)at_my_nodes(file_, service::EndCommit{file_.identity(), id_, committed});
    (void)agree(file_.comm(), Status::ok());
  }

  OpenFile& file_;
  Fence fence_;  // on rank 0
  Id128 id_;
  store::CommitRecord record_;
  Bytes encoded_;
  std::vector<Bytes> gathered_;  // on rank 0
  RecipeFacts facts_;            // on rank 0
};

void report(OpenFile& file, const Attempt& attempt) {
  file.last = collect_figures(file.topology, file.since_commit);
  file.last.generation = attempt.number();
  const RecipeFacts& facts = attempt.facts();
  if (facts.lowest_copies != UINT64_MAX) file.last.lowest_copies = facts.lowest_copies;
  file.last.node_sets = facts.node_sets.size();
  file.last.copies_made = facts.copies_made;
  file.last.lost_chunks = facts.lost_chunks;
  file.since_commit = {};
  if (file.rank() != 0) return;
  if (facts.lost_chunks != 0) {
    std::fprintf(stderr,
                 "dedup: warning: %s: of %llu chunks of generation %llu no copy is left on any "
                 "node; reading them is an error\n",
                 file.path.c_str(), static_cast<unsigned long long>(facts.lost_chunks),
                 static_cast<unsigned long long>(file.last.generation));
  }
  if (file.hints.report.empty()) return;
  const Status status = append_report(file.hints.report, file.path, file.identity(), file.hints,
                                      file.job->nodes(), file.last);
  if (!status.is_ok()) std::fprintf(stderr, "dedup: warning: %s\n", status.message().c_str());
}

// What a deleted file has is of no use any more.
bool is_deleted(const OpenFile& file) {
  return all_max(file.comm(), file.rank() == 0 && file.view()->info.deleted ? 1 : 0) != 0;
}

Status commit_locked(OpenFile& file) {
  DEDUP_TRY(begin_dumps(file));
  if (is_deleted(file)) return Status::ok();
  failpoint("commit.begin");
  DEDUP_TRY(dump_logs(file));
  // Rank 0's view is the newest: the base must be the same for all builders.
  DEDUP_TRY(agree(file.comm(), file.refresh_view()));
  DEDUP_TRY(take_over(file));
  failpoint("commit.dumped");
  DEDUP_TRY(
      agree(file.comm(), file.dumper->finish_segments(file.hints.fsync == hints::Fsync::kCommit)));
  // What the commit takes of memory comes in place of what the dumps took.
  file.dumper->release_buffers();
  Attempt attempt(file);
  DEDUP_TRY(attempt.run());
  file.changed = false;
  file.local->forget_segments();
  file.dumper->new_generation();
  file.dumper_base = file.view()->base();
  report(file, attempt);
  return Status::ok();
}

}  // namespace

Status commit(OpenFile& file) {
  const bool dirty = file.changed || file.local->has_logged();
  if (all_max(file.comm(), dirty ? 1 : 0) == 0) return Status::ok();
  // All ranks are in the call: nobody whom the lock makes wait is waited for by its holder.
  std::optional<JobLock> lock;
  Status status;
  if (file.rank() == 0) {
    auto taken = JobLock::take(file, service::LockKind::kCommit);
    status = taken.status();
    if (status.is_ok()) lock.emplace(std::move(*taken));
  }
  DEDUP_TRY(agree(file.comm(), status));
  return commit_locked(file);
}

}  // namespace dedup::engine
