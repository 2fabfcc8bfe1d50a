#include "engine/commit.h"

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/warn.h"
#include "engine/chunks/timer.h"
#include "engine/log_dump.h"
#include "engine/mpi/agreement.h"
#include "engine/protocol/failpoint.h"
#include "engine/protocol/flusher.h"
#include "engine/protocol/generation_commit.h"
#include "engine/report.h"
#include "engine/take_over.h"
#include "engine/tell.h"
#include "engine/writer.h"
#include "hints/hints.h"
#include "service/messages/file_home.h"

namespace dedup::engine {
namespace {

// Once a process: what is so for one file of a job is so for all.
void say_that_copies_are_lacking(const FileHandle& file) {
  static std::atomic_flag is_said;
  const hints::Hints& hints = file.hints;
  const Keeping keeping = file.keeping();
  const unsigned wanted = file.wanted_copies();
  const bool has_fewer = keeping.wanted < plan::Redundancy::copies(wanted);
  const bool has_short_stripes = keeping.stripes.data < hints.stripe_data;
  if ((!has_fewer && !has_short_stripes) || is_said.test_and_set()) return;
  const std::string nodes = "this job has " + std::to_string(file.nodes()) + " nodes: ";
  if (has_fewer) {
    warn(file.path + ": " + std::to_string(wanted) + " copies are wanted, and " + nodes +
         "each chunk is on " + std::to_string(keeping.copies) +
         "; dedupctl heal, on more nodes, makes the others");
    return;
  }
  warn(file.path + ": stripes of " + std::to_string(hints.stripe_data) + " units and " +
       std::to_string(hints.stripe_parities) + " parities are wanted, and " + nodes +
       (keeping.stripes.is_possible()
            ? "stripes have " + std::to_string(keeping.stripes.data) + " units"
            : "each chunk is on " + std::to_string(wanted) + " of them"));
}

// Of what was committed, on rank 0.
plan::LossOdds loss_odds(const FileHandle& file, const GenerationCommit& generation) {
  const std::set<plan::FatalSet>& of_chunks = generation.facts().fatal_sets;
  std::vector<plan::FatalSet> sets(of_chunks.begin(), of_chunks.end());
  const store::CommitRecord& record = file.view()->committed->record;
  for (std::size_t s = 0; s < record.shards.size(); ++s) {
    if (!record.is_shard_of_use(s)) continue;
    sets.push_back(plan::fatal_set(plan::Placement::copies_on(record.shards[s].stores)));
  }
  return {file.nodes(), std::move(sets)};
}

// Collective, where some rank has any.
std::map<std::string, std::string> all_troubles(const FileHandle& file,
                                                const Flusher::Troubles& mine) {
  std::map<std::string, std::string> all;
  for (const Bytes& bytes : file.ranks().gather(encoded(mine))) {
    const auto theirs = decoded<Flusher::Troubles>(bytes);
    if (theirs) all.insert(theirs->begin(), theirs->end());
  }
  return all;
}

void report(FileHandle& file, const GenerationCommit& generation, const Stopwatch& began) {
  file.since_commit.bytes_stored += generation.stripes().stored_bytes;
  file.since_commit.bytes_sent += generation.stripes().sent_bytes;
  file.since_commit.seconds_writing = file.seconds_writing.exchange(0) + began.seconds();
  Flusher::Troubles troubles;
  if (file.flusher != nullptr) troubles = file.flusher->troubles();
  std::size_t count = troubles.size();
  file.last = collect_figures(file.topology, file.since_commit, count);
  if (count != 0) file.last.not_written_back = all_troubles(file, troubles);
  file.last.generation = file.view()->committed->record.number;
  file.last.time = file.view()->committed->record.time;
  const RecipeFacts& facts = generation.facts();
  if (!facts.lowest.is_boundless()) file.last.lowest_copies = facts.lowest.as_copies();
  file.last.node_sets = facts.fatal_sets.size();
  file.last.copies_made = facts.copies_made;
  file.last.lost_chunks = facts.lost_chunks;
  file.last.unknown_bytes = facts.unknown_bytes;
  file.since_commit = {};
  if (file.rank() != 0) return;
  say_that_copies_are_lacking(file);
  if (facts.lost_chunks != 0) {
    warn(file.path + ": of " + std::to_string(facts.lost_chunks) + " chunks of generation " +
         std::to_string(file.last.generation) +
         " no copy is left on any node; reading them is an error");
  }
  if (facts.unknown_bytes != 0) {
    warn(file.path + ": the recipe of " + std::to_string(facts.unknown_bytes) +
         " bytes of generation " + std::to_string(file.last.generation) +
         " is lost; reading them is an error");
  }
  tell_of_commit(file);
  if (file.hints.report.empty()) return;
  const Status status = append_report(file.hints.report, file.path, file.identity(), file.hints,
                                      file.job->nodes(), file.last, loss_odds(file, generation));
  if (!status.is_ok()) warn(status.message());
}

Status commit_locked(FileHandle& file, const Stopwatch& began) {
  begin_dumps_on(file, file.view()->base());
  // What a deleted file has is of no use any more.
  if (file.view()->info.deleted) return Status::ok();
  failpoint("commit.begin");
  DEDUP_TRY(dump_logs(file, store::LogWriter::Space::kFree));
  DEDUP_TRY(take_over(file));
  failpoint("commit.dumped");
  const Status finished = file.dumper->finish_segments(file.hints.fsync == hints::Fsync::kCommit);
  // What the commit takes of memory comes in place of what the dumps took.
  file.dumper->release_buffers();
  GenerationCommit generation(file);
  DEDUP_TRY(generation.run([&] {
    const Status flushed = file.dumper->wait_for_flush();
    return finished.is_ok() ? flushed : finished;
  }));
  file.changed = false;
  file.local->forget_segments();
  file.dumper->new_generation();
  file.dumper_base = file.view()->base();
  // Has all ranks add up: so all have come as far, and the lock may go.
  report(file, generation, began);
  return Status::ok();
}

}  // namespace

Status commit(FileHandle& file) {
  const Stopwatch began;
  const bool dirty = file.changed || file.local->has_logged();
  if (all_max(file.comm(), dirty ? 1 : 0) == 0) return Status::ok();
  // The base must be the same for all.
  DEDUP_ASSIGN(const auto lock, JobLock::take_with_view(file, service::LockKind::kCommit));
  return commit_locked(file, began);
}

}  // namespace dedup::engine
