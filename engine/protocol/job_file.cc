#include "engine/protocol/job_file.h"

#include <utility>

#include "base/fields.h"

namespace dedup::engine {

Status JobFile::refresh_view() {
  DEDUP_ASSIGN(service::FileInfo info, client().call(home, service::GetFile{identity_}));
  DEDUP_ASSIGN(FileView fresh, FileView::from(std::move(info)));
  set_view(std::move(fresh));
  return Status::ok();
}

Status JobFile::refresh_together(const Status& of_rank_0) {
  Status status = of_rank_0;
  Bytes info;
  if (rank() == 0 && status.is_ok()) {
    status = refresh_view();
    info = encoded(view()->info);
  }
  DEDUP_TRY(ranks().share(status, info));
  if (rank() == 0) return Status::ok();
  auto told = decoded<service::FileInfo>(info);
  if (!told) return {Code::kInternal, path + ": rank 0 told something that cannot be"};
  DEDUP_ASSIGN(FileView fresh, FileView::from(*std::move(told)));
  set_view(std::move(fresh));
  return Status::ok();
}

Result<JobLock> JobLock::take(const JobFile& file, service::LockKind kind) {
  const Id128 owner = Id128::random();
  DEDUP_ASSIGN([[maybe_unused]] const service::Empty granted,
               file.client().call(file.home, service::Lock{file.identity(), kind, owner}));
  return JobLock(file, kind, owner);
}

Result<std::optional<JobLock>> JobLock::take_together(const JobFile& file, service::LockKind kind) {
  std::optional<JobLock> lock;
  Status status;
  if (file.ranks().rank() == 0) {
    auto taken = take(file, kind);
    status = taken.status();
    if (status.is_ok()) lock.emplace(std::move(*taken));
  }
  DEDUP_TRY(file.ranks().share(status));
  return lock;
}

JobLock::JobLock(JobLock&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)), kind_(other.kind_), owner_(other.owner_) {}

JobLock::~JobLock() {
  if (file_ == nullptr) return;
  // If the home does not answer any more, there is nobody left to wait for the lock either.
  (void)file_->client().call(file_->home, service::Unlock{file_->identity(), kind_, owner_});
}

}  // namespace dedup::engine
