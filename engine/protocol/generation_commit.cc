#include "engine/protocol/generation_commit.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/fields.h"
#include "base/warn.h"
#include "engine/protocol/at_my_nodes.h"
#include "engine/protocol/displaced_file.h"
#include "engine/protocol/failpoint.h"
#include "engine/protocol/leases.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"
#include "store/kept.h"
#include "store/real_path.h"

namespace dedup::engine {
namespace {

store::StripeShape stripes_wanted(const hints::Hints& hints) {
  return {static_cast<std::uint8_t>(hints.stripe_data),
          static_cast<std::uint8_t>(hints.stripe_parities)};
}

std::string hash_name(const hints::Hints& hints) {
  if (hints.mode == hints::Mode::kNone) return "none";
  return hints.fingerprint == FingerprintKind::kSha256 ? "sha256" : "keyed";
}

}  // namespace

GenerationCommit::GenerationCommit(JobFile& file) : file_(file), fence_(file) {
  if (file.rank() == 0) id_ = Id128::random();
  file.ranks().broadcast(id_);
}

Status GenerationCommit::run(const std::function<Status()>& wait_for_data) {
  const Status status = prepare(wait_for_data);
  if (!status.is_ok()) {
    give_up();
    return status;
  }
  failpoint("commit.prepared");
  return decide();
}

// What takes the processor goes before what waits for the disk, which has the data to write.
Status GenerationCommit::prepare(const std::function<Status()>& wait_for_data) {
  const bool flush = file_.hints.fsync == hints::Fsync::kCommit;
  const Id128 base = index_base();
  const bool all = base.is_zero() || is_small(file_.view()->origin()->record);
  service::WriteIndex request{file_.identity(), id_, flush, base, all};
  DEDUP_TRY(make_stripes());
  Recipe recipe = Recipe::kWhole;
  DEDUP_TRY(build_recipe(request, recipe));
  if (recipe == Recipe::kBroken) {
    part_ = {};
    request.all = true;
    DEDUP_TRY(build_recipe(request, recipe));
  }
  if (recipe == Recipe::kBroken) {
    return {Code::kIo, file_.path + ": a stripe that was whole is not any more: try again"};
  }
  if (untold_.is_ok()) untold_ = wait_for_data();
  DEDUP_TRY(make_record());
  failpoint("commit.indexed");
  AtMyNodes nodes(file_, service::Prepare{file_.identity(), encoded_, flush});
  const Status fence = file_.rank() == 0 ? fence_.prepare(record_) : Status::ok();
  const Status prepared = nodes.wait();
  return file_.ranks().agree(prepared.is_ok() ? fence : prepared, Waiting::kPatient);
}

Id128 GenerationCommit::index_base() const {
  // Healing looks at everything anew.
  if (file_.on_loss != OnLoss::kGoOn) return {};
  const auto view = file_.view();
  const CommittedGeneration* const origin = view->origin();
  const bool may_stay = origin != nullptr && origin->is_numbered_like(file_.nodes());
  return may_stay ? origin->record.attempt : Id128{};
}

// What the generation before has is looked at, too, where it may be kept less well than it is to
// be: nodes are gone, or others are there, or it was to be kept otherwise.
Status GenerationCommit::make_stripes() {
  if (!file_.keeping().stripes.is_possible()) return Status::ok();
  const auto view = file_.view();
  const CommittedGeneration* const origin = view->origin();
  const bool looks_at_all =
      origin != nullptr &&
      (file_.on_loss != OnLoss::kGoOn || !origin->is_numbered_like(file_.nodes()) ||
       origin->record.stripes != stripes_wanted(file_.hints) ||
       origin->record.replication != file_.wanted_copies());
  if (looks_at_all) {
    ShardBuild build(file_, id_, Referring::kToAll);
    DEDUP_TRY(build.begin());
    Status status;
    for (NodeIndex shard = 0; shard < file_.nodes() && status.is_ok(); ++shard) {
      if (file_.ranks().speaks_for(file_.block_home(shard))) status = build.restore_lost(shard);
    }
    DEDUP_TRY(file_.ranks().agree(status, Waiting::kPatient));
    copies_made_ = build.facts().copies_made;
  }
  Striping striping(file_, id_, looks_at_all);
  DEDUP_TRY(striping.run());
  stripes_ = striping.figures();
  given_up_ = striping.sparse();
  return Status::ok();
}

Status GenerationCommit::build_recipe(const service::WriteIndex& request, Recipe& recipe) {
  ShardBuild build(file_, id_, request.all ? Referring::kToAll : Referring::kToChanges, given_up_);
  DEDUP_TRY(build.begin());
  DEDUP_TRY(build_shards(build, request.all, recipe));
  failpoint("commit.shards");
  if (recipe != Recipe::kBroken) DEDUP_TRY(write_indexes(build, request, recipe));
  part_.facts = build.facts();
  part_.changed = build.changed();
  part_.facts.copies_made += copies_made_;
  return Status::ok();
}

// `all`: of all that it refers to the nodes are told.
Status GenerationCommit::build_shards(ShardBuild& build, bool all, Recipe& recipe) {
  Status status;
  for (NodeIndex shard = 0; shard < file_.nodes() && status.is_ok(); ++shard) {
    if (!file_.ranks().speaks_for(file_.block_home(shard))) continue;
    auto entry = build.build(shard);
    status = entry.status();
    if (!status.is_ok()) break;
    part_.shards.emplace_back(shard, *std::move(entry));
  }
  status = build.finish(status);
  recipe = Recipe::kWhole;
  // Then no rank has anything to add.
  if (all && !build.has_lacked()) return status;
  if (build.has_cut_off()) recipe = Recipe::kToBeReferredTo;
  if (build.has_lost_parts()) recipe = Recipe::kBroken;
  return agree_on(status, recipe);
}

Status GenerationCommit::agree_on(const Status& mine, Recipe& recipe) const {
  auto worst = static_cast<std::uint64_t>(recipe);
  DEDUP_TRY(file_.ranks().agree_max(mine, worst, Waiting::kPatient));
  recipe = static_cast<Recipe>(worst);
  return Status::ok();
}

// When all have referred to what they have to refer to.
Status GenerationCommit::write_indexes(ShardBuild& build, service::WriteIndex request,
                                       Recipe& recipe) {
  if (request.all) {
    untold_ = at_my_nodes(file_, request);
    return Status::ok();
  }
  if (recipe == Recipe::kWhole) {
    std::uint64_t is_needed = 0;
    const Status status = AtMyNodes(file_, request).wait([&](const service::WriteIndexReply& node) {
      if (node.needs_all) is_needed = 1;
    });
    DEDUP_TRY(file_.ranks().agree_max(status, is_needed, Waiting::kPatient));
    if (is_needed == 0) return Status::ok();
  }
  const Status referred = build.refer_to_rest();
  if (build.has_lost_parts()) recipe = Recipe::kBroken;
  DEDUP_TRY(agree_on(referred, recipe));
  if (recipe == Recipe::kBroken) return Status::ok();
  request.all = true;
  untold_ = at_my_nodes(file_, request);
  return Status::ok();
}

// What a rank says of the shards that it built.
Status GenerationCommit::take_part(const Bytes& part) {
  auto told = decoded<RecipePart>(part);
  const auto is_known = [&](const auto& shard) { return shard.first < record_.shards.size(); };
  if (!told || !std::all_of(told->shards.begin(), told->shards.end(), is_known)) {
    return {Code::kInternal, "a rank sent a part of the recipe that cannot be"};
  }
  facts_.lowest = std::min(facts_.lowest, told->facts.lowest);
  facts_.lost_chunks += told->facts.lost_chunks;
  facts_.unknown_bytes += told->facts.unknown_bytes;
  facts_.copies_made += told->facts.copies_made;
  facts_.fatal_sets.merge(told->facts.fatal_sets);
  for (auto& [shard, entry] : told->shards) record_.shards[shard] = std::move(entry);
  changed_.insert(changed_.end(), told->changed.begin(), told->changed.end());
  return Status::ok();
}

Status GenerationCommit::check_loss() const {
  if (facts_.lost_chunks == 0 && facts_.unknown_bytes == 0) return Status::ok();
  std::string text = file_.path + ": of " + std::to_string(facts_.lost_chunks) +
                     " chunks there is no good copy on these nodes, so nothing was changed";
  if (facts_.lost_chunks == 0) {
    text = file_.path + ": the recipe of " + std::to_string(facts_.unknown_bytes) +
           " bytes was given up before, so nothing was changed";
  }
  const auto view = file_.view();
  const auto& stores = view->info.stores;
  for (std::size_t i = file_.nodes(); i < stores.size(); ++i) {
    text += (i == file_.nodes() ? "; not here are the stores of " : ", ") + stores[i].node;
  }
  return {Code::kIo, text};
}

// Rank 0 writes the record, if all have come as far; all get it.
Status GenerationCommit::make_record() {
  const auto parts = file_.ranks().gather_if_all_ok(untold_, encoded(part_));
  Status status = parts.status();
  if (file_.rank() == 0 && status.is_ok()) {
    status = fill_record(*parts);
    if (status.is_ok()) encoded_ = record_.encode();
  }
  return file_.ranks().share(status, encoded_, Waiting::kPatient);
}

Status GenerationCommit::fill_record(const std::vector<Bytes>& parts) {
  record_.shards.resize(file_.nodes());
  for (const Bytes& part : parts) DEDUP_TRY(take_part(part));
  if (file_.on_loss == OnLoss::kRefuse) DEDUP_TRY(check_loss());
  const std::shared_ptr<const FileView> view = file_.view();
  const service::FileInfo& info = view->info;
  DEDUP_ASSIGN(record_.size, file_size(file_));
  record_.identity = info.identity;
  // Whatever fails from here on, the number is not given to another attempt.
  const std::uint64_t base_number = view->committed ? view->committed->record.number : 0;
  DEDUP_ASSIGN(
      const service::GenerationNumber next,
      file_.client().call(file_.home, service::NextGeneration{info.identity, base_number}));
  record_.number = next.number;
  record_.attempt = id_;
  record_.parent = view->base();
  record_.path = info.path;
  if (info.real_path != service::FileInfo::RealPath::kNone) {
    DEDUP_ASSIGN(record_.directory, store::directory_id(info.path));
  }
  record_.replication = file_.wanted_copies();
  record_.stripes = stripes_wanted(file_.hints);
  record_.chunk_size = file_.hints.chunk_size;
  record_.fingerprint = hash_name(file_.hints);
  record_.key = info.key;
  record_.time = static_cast<std::uint64_t>(std::time(nullptr));
  if (view->committed) keep_older(view->committed->record);
  for (NodeIndex n = 0; n < file_.nodes(); ++n) {
    record_.stores.push_back({info.stores[n].uuid, info.stores[n].node});
  }
  if (view->committed) record_.lineage = view->committed->record.lineage;
  if (record_.lineage.empty() || record_.lineage.back().session != info.session) {
    record_.lineage.push_back({info.session, 0});
  }
  record_.lineage.back().last = record_.number;
  return Status::ok();
}

// A generation that says the same as the one before does not push out another one.
void GenerationCommit::keep_older(const store::CommitRecord& base) {
  record_.kept_of = base.kept_of;
  // Where there is no room the oldest go first.
  if (!base.kept_of.file.is_zero()) record_.time = base.time;
  record_.kept = file_.heals ? base.kept : store::kept_after(base, file_.hints.keep - 1);
}

// Phase 2. From the first rename on the generation is committed, whatever else fails.
Status GenerationCommit::decide() {
  const bool flush = file_.hints.fsync == hints::Fsync::kCommit;
  std::uint64_t committed = 0;
  const Status mine =
      AtMyNodes(file_, service::Commit{file_.identity(), id_, flush}).wait([&](const auto&) {
        ++committed;
      });
  failpoint("commit.renamed");
  const Status all = file_.ranks().agree(mine);
  if (!all.is_ok() && file_.ranks().largest(committed) == 0) {
    give_up();
    return all;
  }
  if (!all.is_ok() && file_.rank() == 0) {
    warn(file_.path + ": generation " + std::to_string(record_.number) +
         " is committed, but not everywhere: " + all.message());
  }
  failpoint("commit.unfenced");
  Outcome outcome;
  const Status mine_of_rank_0 = file_.rank() == 0 ? fence_and_tell_home(outcome) : Status::ok();
  DEDUP_TRY(file_.ranks().share(Status::ok(), outcome));
  if (!outcome.counts) {
    // The stores have it, but it does not count: an open takes what stands at the path.
    end_commit(false);
    return file_.ranks().share(mine_of_rank_0);
  }
  if (file_.rank() != 0) failpoint("commit.fenced");
  if (!outcome.info) return file_.ranks().share(mine_of_rank_0);
  if (file_.rank() != 0) DEDUP_TRY(file_.set_view(*std::move(outcome.info)));
  return install();
}

// On rank 0.
Status GenerationCommit::put_placeholder() {
  DisplacedFile displaced(file_, record_, std::move(changed_));
  DEDUP_TRY(fence_.put(displaced));
  displaced.note();
  return Status::ok();
}

// On rank 0: from here on the generation is what others find.
Status GenerationCommit::fence_and_tell_home(Outcome& outcome) {
  DEDUP_TRY(put_placeholder());
  outcome.counts = true;
  failpoint("commit.fenced");
  std::vector<service::StoreRef> stores;
  const std::shared_ptr<const FileView> view = file_.view();
  stores.assign(view->info.stores.begin(), view->info.stores.begin() + file_.nodes());
  const service::CommitDone request{file_.identity(), encoded_, stores, file_.fetches};
  DEDUP_ASSIGN(service::FileInfo info, file_.client().call(file_.home, request));
  DEDUP_TRY(file_.set_view(std::move(info)));
  outcome.info = file_.view()->info;
  return Status::ok();
}

// The new generation becomes the base for everybody in the job.
Status GenerationCommit::install() {
  DEDUP_TRY(
      file_.ranks().agree(at_my_nodes(file_, service::EndCommit{file_.identity(), id_, true})));
  failpoint("commit.installed");
  // What cannot be freed now is freed by a later commit, or by the next job that writes.
  const Status freed = at_my_nodes(file_, service::Collect{file_.identity(), id_});
  if (!freed.is_ok()) {
    warn(file_.path + ": " + freed.message());
  }
  failpoint("commit.collected");
  return Status::ok();
}

void GenerationCommit::give_up() {
  // Whoever does not answer now has nothing that could be mistaken for a commit either.
  (void)at_my_nodes(file_, service::Abort{file_.identity(), id_});
  end_commit(false);
}

void GenerationCommit::end_commit(bool committed) {
  (void)at_my_nodes(file_, service::EndCommit{file_.identity(), id_, committed});
  (void)file_.ranks().agree(Status::ok());
}

}  // namespace dedup::engine
