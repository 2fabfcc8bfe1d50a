#include "service/attached_file.h"

#include <utility>

#include "store/deletion.h"
#include "store/kept.h"
#include "store/unnamed.h"

namespace dedup::service {

AttachedFile::AttachedFile(std::shared_ptr<store::Store> store, const Id128& identity,
                           const Id128& base)
    : store_(std::move(store)), identity_(identity), chunks_(*store_, identity, base) {}

Result<AttachedFile::Newest> AttachedFile::newest_here() const {
  if (newest_) return *newest_;
  auto record = store_->newest(identity_);
  if (!record.is_ok() && record.status().code() != Code::kNotFound) return record.status();
  const Result<Newest> newest =
      record.is_ok() ? Result<Newest>(Newest{record->attempt, std::move(record->kept)})
                     : Result<Newest>(record.status());
  if (write_lock_) newest_ = newest;
  return newest;
}

Result<Id128> AttachedFile::newest() const {
  const auto here = newest_here();
  if (here.is_ok()) return here->attempt;
  const Code code = here.status().code();
  if (code == Code::kNotFound || code == Code::kCorrupt) return Id128{};
  return here.status();
}

Result<bool> AttachedFile::in_doubt() const {
  if (commit_ && commit_->prepared() && !commit_->committed()) return true;
  if (chunks_.base().is_zero()) return false;
  DEDUP_ASSIGN(const bool here, store_->has_attempt(identity_, chunks_.base()));
  if (!here) return false;
  DEDUP_ASSIGN(const Id128 committed, newest());
  return committed != chunks_.base();
}

Status AttachedFile::tidy() {
  DEDUP_ASSIGN(const bool doubt, in_doubt());
  if (doubt) return Status::ok();
  const auto newest = newest_here();
  if (!newest.is_ok() && newest.status().code() != Code::kNotFound) return Status::ok();
  const store::Store::Prepared prepared = store::Store::Prepared::kKeep;
  const auto collected =
      newest.is_ok() ? store::collect_older(*store_, identity_, newest->attempt, newest->kept,
                                            {.with_logs = true, .prepared = prepared})
                     : store_->collect(identity_, {}, {}, true, prepared);
  DEDUP_TRY(collected.status());
  tidied_ = true;
  return Status::ok();
}

Result<AttachReply> AttachedFile::attach(const Attach& request, const std::vector<Id128>& own) {
  std::unique_ptr<store::Store::Lock> write_lock;
  std::unique_ptr<store::Store::Lock> generation_lock;
  const bool is_new = request.write && !write_lock_ && request.base.is_zero();
  bool is_first = false;
  if (is_new) {
    DEDUP_ASSIGN(const bool is_here, store_->has_file(identity_));
    is_first = !is_here;
    auto lock = store_->create_for_writing(identity_, request.path, own, request.by_path);
    if (lock.status().code() == Code::kFileExists) return AttachReply{{}, true};
    DEDUP_ASSIGN(write_lock, std::move(lock));
  } else if (request.create || request.write) {
    DEDUP_TRY(store_->create_file(identity_, request.path));
  }
  if (request.write && !write_lock_ && !write_lock) {
    auto lock = store_->lock_for_writing(identity_);
    if (lock.status().code() == Code::kNoSuchFile) {
      // Another job created the file, gave up and removed it meanwhile.
      DEDUP_TRY(store_->create_file(identity_, request.path));
      lock = store_->lock_for_writing(identity_);
    }
    DEDUP_ASSIGN(write_lock, std::move(lock));
  }
  const bool begins_to_write = write_lock != nullptr;
  const bool writes = write_lock_ || begins_to_write;
  const bool other_base = !request.base.is_zero() && request.base != chunks_.base();
  if (!writes && !request.base.is_zero() && (!generation_lock_ || other_base)) {
    auto lock = store_->lock_generation(identity_, request.base);
    const Code code = lock.status().code();
    if (lock.is_ok()) {
      generation_lock = std::move(*lock);
    } else if (code == Code::kFileInUse) {
      // By a job that has committed a newer one, which the reply then names; or that deletes all.
      const auto newer = newest();
      const bool is_newer = newer.is_ok() && !newer->is_zero() && *newer != request.base;
      if (!is_newer) return lock.status();
    } else if (code != Code::kNotFound && code != Code::kNoSuchFile) {
      return lock.status();
    }
  }
  Id128 committed;
  if (!is_first) {
    DEDUP_ASSIGN(committed, newest());
  }

  if (other_base) chunks_.set_base(request.base);
  if (generation_lock) generation_lock_ = std::move(generation_lock);
  if (write_lock) write_lock_ = std::move(write_lock);
  if (begins_to_write) {
    tidied_ = tidied_ || is_first;
    // Space that earlier jobs left taken is no reason not to open the file.
    if (!tidied_) (void)tidy();
    if (is_new && !request.donor.is_zero()) share_with(request.donor, request.donor_attempt);
  } else if (!writes && !committed.is_zero()) {
    // Who looks for the file's placeholder then knows where; not to know it is no reason either.
    (void)store_->add_path(identity_, request.path);
  }
  return AttachReply{committed, false};
}

// What cannot be shared is stored anew.
void AttachedFile::share_with(const Id128& donor, const Id128& attempt) {
  auto index = store_->share_generation(donor, attempt, identity_);
  // It is there last. Ranks go by whether it is, so this must too: what failed may have been done.
  if (!index.is_ok()) index = store_->index(identity_, attempt);
  if (index.is_ok()) chunks_.set_donor(std::move(*index));
}

bool AttachedFile::make_room(const std::vector<Id128>& own) {
  if (!std::exchange(may_make_room_, false)) return false;
  // What cannot be dropped takes its space: no more can be said of it here.
  bool freed = store::drop_unnamed(*store_, own).is_ok();
  const auto doubt = in_doubt();
  if (!write_lock_ || commit_ || !doubt.is_ok() || *doubt) return freed;
  const auto newest = newest_here();
  if (!newest.is_ok()) return freed;
  const store::Collection how{.open_segments = chunks_.open_segments(),
                              .prepared = store::Store::Prepared::kKeep};
  return store::collect_older(*store_, identity_, newest->attempt, newest->kept, how).is_ok() ||
         freed;
}

std::vector<std::string> AttachedFile::give_up_kept(std::uint64_t bytes) {
  if (!may_give_up_) return {};
  auto names = store::give_up_kept(*store_, bytes);
  may_give_up_ = !names.empty();
  return names;
}

Status AttachedFile::adopt(const store::CommitRecord& record) {
  if (record.identity != identity_) return {Code::kArgument, "a record of another file"};
  // For a reader, until it is adopted.
  std::unique_ptr<store::Store::Lock> writing;
  if (!write_lock_) {
    DEDUP_TRY(store_->create_file(identity_, record.path));
    auto lock = store_->lock_for_writing(identity_);
    // Another job is just committing it, or has a newer one: that is no broken commit. What was
    // prepared can be read.
    const bool can_be_read = record.attempt == chunks_.base() && generation_lock_;
    if (lock.status().code() == Code::kFileInUse && can_be_read) return Status::ok();
    DEDUP_ASSIGN(writing, std::move(lock));
    const auto newest = store_->newest(identity_);
    const bool is_overtaken = newest.is_ok() && newest->attempt != record.attempt &&
                              store::descends_from(*newest, record);
    if (is_overtaken) return {Code::kFileInUse, "another job has committed a newer generation"};
  }
  newest_.reset();
  DEDUP_TRY(store_->adopt(record));
  if (record.attempt != chunks_.base()) return Status::ok();
  chunks_.set_base(record.attempt);
  if (write_lock_) {
    if (!tidied_) (void)tidy();
  } else if (!generation_lock_) {
    DEDUP_ASSIGN(generation_lock_, store_->lock_generation(identity_, record.attempt));
  }
  return Status::ok();
}

Status AttachedFile::detach() {
  generation_lock_.reset();
  if (!write_lock_) return Status::ok();
  chunks_.close_own_segment();
  const Status status = tidy();
  const auto newest = newest_here();
  const bool nothing = !newest.is_ok() && newest.status().code() == Code::kNotFound;
  DEDUP_ASSIGN(const bool doubt, in_doubt());
  auto writing = std::move(write_lock_);
  if (!nothing || doubt) return status;
  // Created and never committed. Locked until it is gone: no other job's commit gets between.
  auto whole = store_->lock_whole(identity_, std::move(writing));
  const Code code = whole.status().code();
  if (code == Code::kFileInUse || code == Code::kNoSuchFile) return status;
  DEDUP_TRY(whole.status());
  DEDUP_TRY(store_->drop_file(identity_, std::move(*whole)).status());
  return status;
}

Status AttachedFile::drop(const std::vector<Id128>& stores_left) {
  chunks_.close_own_segment();
  generation_lock_.reset();
  if (!write_lock_) return store::drop_with_mark(*store_, identity_, stores_left);
  DEDUP_ASSIGN(auto whole, store_->lock_whole(identity_, std::move(write_lock_)));
  return store::drop_with_mark(*store_, identity_, stores_left, std::move(whole)).status();
}

Status AttachedFile::check_writable() const {
  if (write_lock_) return Status::ok();
  return {Code::kReadOnly, "the file is not attached for writing"};
}

// ---- Commit -----------------------------------------------------------------------------------

Result<NodeCommit*> AttachedFile::begin_commit(const Id128& id) {
  DEDUP_TRY(check_writable());
  if (id.is_zero()) return Status(Code::kArgument, "an attempt without an id");
  if (id == aborted_) return Status(Code::kArgument, "the attempt was aborted");
  if (commit_ && commit_->id() == id) return commit_.get();
  // Only one commit of a file is under way at a time: whoever made an older attempt is gone.
  if (commit_ && !commit_->committed()) {
    newest_.reset();
    DEDUP_TRY(commit_->abandon());
  }
  commit_.reset();
  DEDUP_ASSIGN(commit_, NodeCommit::begin(*store_, chunks_, identity_, id));
  return commit_.get();
}

Status AttachedFile::prepare(const Prepare& request) {
  DEDUP_ASSIGN(const store::CommitRecord record, store::CommitRecord::decode(request.record));
  if (record.identity != identity_) {
    return {Code::kArgument, "a commit record of another file"};
  }
  DEDUP_ASSIGN(NodeCommit* const current, begin_commit(record.attempt));
  return current->prepare(record, request.flush);
}

Status AttachedFile::commit(const Id128& id, bool flush) {
  if (!commit_ || commit_->id() != id) {
    return {Code::kArgument, "a commit of an attempt that is not being made here"};
  }
  newest_.reset();
  return commit_->commit(flush);
}

Status AttachedFile::abort(const Id128& id) {
  DEDUP_TRY(check_writable());
  newest_.reset();
  if (!commit_ || commit_->id() != id) {
    aborted_ = id;
    return store_->abandon(identity_, id);
  }
  // If the commit failed here and at all other nodes, it is taken back.
  if (commit_->committed() && !commit_->commit_failed()) {
    return {Code::kArgument, "the attempt is committed"};
  }
  DEDUP_TRY(commit_->abandon());
  commit_.reset();
  aborted_ = id;
  return Status::ok();
}

Result<CollectReply> AttachedFile::collect(const Id128& id) {
  DEDUP_TRY(check_writable());
  if (!commit_ || commit_->id() != id || !commit_->committed()) {
    return Status(Code::kArgument, "a generation that was not committed here");
  }
  commit_->install();
  const std::unique_ptr<NodeCommit> committed = std::move(commit_);
  generation_lock_.reset();  // of the time before this job wrote: it would keep the old generation
  tidied_ = true;
  may_make_room_ = true;
  may_give_up_ = true;
  const store::Collection how{.open_segments = chunks_.open_segments(),
                              .flush = committed->flushed()};
  DEDUP_ASSIGN(const std::uint64_t freed,
               store::collect_older(*store_, identity_, id, committed->record().kept, how));
  return CollectReply{freed};
}

}  // namespace dedup::service
