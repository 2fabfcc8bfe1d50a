// An open file as the nodes of a job know it: what opening, reading, committing and closing share,
// without MPI. engine/file_handle.h adds what the ranks need to write to it.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/ranks.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/file_view.h"
#include "engine/protocol/keeping.h"
#include "engine/protocol/local_file.h"
#include "engine/protocol/plain_file.h"
#include "hints/hints.h"
#include "plan/placement.h"
#include "service/client.h"
#include "service/messages/file_home.h"
#include "service/messages/homes.h"

namespace dedup::engine {

class Flusher;

// What a commit does where no node has what the generation before refers to.
enum class OnLoss {
  kGoOn,    // without the chunks, with a warning; it fails if a recipe is lost
  kRefuse,  // it fails
  kGiveUp   // without them: what a lost recipe described is lost for good
};

struct JobFile {
  // Both must outlive it.
  JobFile(service::Client& the_client, const Ranks& the_ranks)
      : ranks_(&the_ranks), client_(&the_client) {}

  hints::Hints hints;
  std::string path;
  Id128 handle;  // the same on all ranks of the handle, different for every handle
  NodeIndex home = 0;
  bool writable = false;
  bool delete_on_close = false;
  bool atomic = false;
  bool heals = false;              // opened to be healed: its content stays as it is
  bool fetches = false;            // its plain file is to be cached, and stays at its path
  bool had_writers = true;         // when it was opened: somebody in the job could write; likewise
  bool may_miss_nodes = false;     // some node of the job may be lost: the same on all ranks
  OnLoss on_loss = OnLoss::kGoOn;  // the same on all ranks
  // This rank changed the file through this handle since the last commit.
  std::atomic<bool> changed = false;
  std::shared_ptr<LocalFile> local;
  std::unique_ptr<PlainFile> plain;  // if the file was opened as one that has data
  // Of this process, which writes back in the background; null: closing does it. Outlives this.
  Flusher* flusher = nullptr;

  service::Client& client() const { return *client_; }
  const Ranks& ranks() const { return *ranks_; }
  int rank() const { return ranks_->rank(); }
  NodeIndex nodes() const { return client_->nodes(); }
  const Id128& identity() const { return identity_; }
  NodeIndex block_home(std::uint64_t block) const {
    return service::block_home(home_seed_, block, nodes());
  }

  // The newest view this process has; never null once the file is open.
  std::shared_ptr<const FileView> view() const {
    const std::lock_guard lock(view_mutex_);
    return view_;
  }
  // Does nothing if it has a newer one.
  void set_view(FileView view) {
    const std::lock_guard lock(view_mutex_);
    if (view_ != nullptr && view.info.version < view_->info.version) return;
    identity_ = view.info.identity;
    home_seed_ = view.info.home_seed;
    view_ = std::make_shared<const FileView>(std::move(view));
  }
  // The same, from what the file home has told.
  Status set_view(service::FileInfo info);
  // Asks the file home for the newest state. Local.
  Status refresh_view();
  // Collective: rank 0's view on all ranks, unless `of_rank_0` is an error. Rank 0 does not wait
  // for the others.
  Status share_view(const Status& of_rank_0);

  Keeping keeping() const { return {hints, nodes()}; }
  // How well each chunk must be kept at least.
  plan::Redundancy redundancy() const { return keeping().wanted; }
  // What the record says: K as it was asked for, also where there are fewer nodes; of a default
  // that nobody asked for, what can be had.
  unsigned wanted_copies() const {
    if (hints.stripe_parities != 0) return hints.stripe_parities + 1;
    return hints.replication_is_given ? hints.replication : keeping().copies;
  }

 private:
  const Ranks* ranks_;
  service::Client* client_;
  mutable std::mutex view_mutex_;
  std::shared_ptr<const FileView> view_;
  Id128 identity_;
  Id128 home_seed_;
};

// A lock of the file within the job, held until unlock() or destruction.
// Raises the file's size to `end` if it is smaller. Local.
Status extend(const JobFile& file, std::uint64_t end);
// Collective: rank 0 does so for all. `end`: the same on all ranks; 0: there is nothing to tell.
Status extend_together(const JobFile& file, std::uint64_t end);

class JobLock {
 public:
  // Waits until it is granted. With kDump and kCommit the view is then the newest: one request for
  // both.
  static Result<JobLock> take(JobFile& file, service::LockKind kind);
  // Collective: rank 0 takes it for all, and tells them in one broadcast what it learned with it.
  // All are in the call, so that nobody whom the lock makes wait is waited for by its holders. None
  // on the other ranks.
  // … Rank 0's view is then the newest, and all ranks have its base.
  static Result<std::optional<JobLock>> take_together(JobFile& file, service::LockKind kind,
                                                      Id128& base);
  // … The newest view is on all ranks.
  static Result<std::optional<JobLock>> take_with_view(JobFile& file, service::LockKind kind);

  // Gives it back, and raises the file's size to `end` if it is smaller: one request for both. Ok
  // if the size was told, whatever became of the lock.
  Status release(std::uint64_t end);
  // Collective: rank 0, which has it, does so for all.
  static Status release_together(const JobFile& file, std::optional<JobLock>& lock,
                                 std::uint64_t end);

  JobLock(JobLock&& other) noexcept;
  JobLock& operator=(JobLock&&) = delete;
  ~JobLock();

 private:
  JobLock(const JobFile& file, service::LockKind kind, const Id128& owner)
      : file_(&file), kind_(kind), owner_(owner) {}
  const JobFile* file_;  // null: given back
  service::LockKind kind_;
  Id128 owner_;
};

}  // namespace dedup::engine
