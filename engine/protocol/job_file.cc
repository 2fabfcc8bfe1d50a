#include "engine/protocol/job_file.h"

#include <utility>

#include "base/fields.h"

namespace dedup::engine {

Status JobFile::set_view(service::FileInfo info) {
  DEDUP_ASSIGN(FileView fresh, FileView::from(std::move(info)));
  set_view(std::move(fresh));
  return Status::ok();
}

Status JobFile::refresh_view() {
  DEDUP_ASSIGN(service::FileInfo info, client().call(home, service::GetFile{identity_}));
  return set_view(std::move(info));
}

Status JobFile::share_view(const Status& of_rank_0) {
  service::FileInfo info;
  if (rank() == 0 && of_rank_0.is_ok()) info = view()->info;
  DEDUP_TRY(ranks().share(of_rank_0, info));
  return rank() == 0 ? Status::ok() : set_view(std::move(info));
}

Status extend(const JobFile& file, std::uint64_t end) {
  return file.client().call(file.home, service::ExtendSize{file.identity(), end}).status();
}

Status extend_together(const JobFile& file, std::uint64_t end) {
  if (end == 0) return Status::ok();
  return file.ranks().share(file.rank() == 0 ? extend(file, end) : Status::ok());
}

Result<JobLock> JobLock::take(JobFile& file, service::LockKind kind) {
  const Id128 owner = Id128::random();
  const service::Lock request{file.identity(), kind, owner, file.view()->info.version};
  DEDUP_ASSIGN(service::LockReply reply, file.client().call(file.home, request));
  JobLock lock(file, kind, owner);
  if (reply.changed) DEDUP_TRY(file.set_view(std::move(reply.info)));
  return lock;
}

namespace {

Status take_into(std::optional<JobLock>& lock, JobFile& file, service::LockKind kind) {
  DEDUP_ASSIGN(JobLock taken, JobLock::take(file, kind));
  lock.emplace(std::move(taken));
  return Status::ok();
}

}  // namespace

Result<std::optional<JobLock>> JobLock::take_together(JobFile& file, service::LockKind kind,
                                                      Id128& base) {
  std::optional<JobLock> lock;
  Status status;
  if (file.rank() == 0) {
    status = take_into(lock, file, kind);
    base = file.view()->base();
  }
  DEDUP_TRY(file.ranks().share(status, base));
  return lock;
}

Result<std::optional<JobLock>> JobLock::take_with_view(JobFile& file, service::LockKind kind) {
  std::optional<JobLock> lock;
  DEDUP_TRY(file.share_view(file.rank() == 0 ? take_into(lock, file, kind) : Status::ok()));
  return lock;
}

Status JobLock::release(std::uint64_t end) {
  const JobFile& file = *std::exchange(file_, nullptr);
  const service::Unlock request{file.identity(), kind_, owner_, end};
  const Status unlocked = file.client().call(file.home, request).status();
  // The lock may have gone with a connection. The size counts all the same.
  return unlocked.is_ok() || end == 0 ? Status::ok() : extend(file, end);
}

Status JobLock::release_together(const JobFile& file, std::optional<JobLock>& lock,
                                 std::uint64_t end) {
  return file.ranks().share(lock ? lock->release(end) : Status::ok());
}

JobLock::JobLock(JobLock&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)), kind_(other.kind_), owner_(other.owner_) {}

JobLock::~JobLock() {
  // If the home does not answer any more, there is nobody left to wait for the lock either.
  if (file_ != nullptr) (void)release(0);
}

}  // namespace dedup::engine
