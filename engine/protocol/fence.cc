#include "engine/protocol/fence.h"

#include <algorithm>
#include <utility>

#include "base/warn.h"
#include "engine/protocol/reader.h"
#include "service/messages/file_home.h"
#include "store/choose.h"

namespace dedup::engine {
namespace {

store::Placeholder placeholder_for(const store::CommitRecord& record, const std::string& path,
                                   const std::string& store_template) {
  store::Placeholder p;
  p.identity = record.identity;
  p.attempt = record.attempt;
  p.session = record.lineage.back().session;
  p.number = record.number;
  p.size = record.size;
  p.time = record.time;
  p.path = path;
  p.store = store_template;
  for (const store::StoreEntry& store : record.stores) p.nodes.push_back(store.node);
  return p;
}

Result<std::unique_ptr<store::Replacement>> write_beside(const std::string& path,
                                                         store::Placeholder placeholder) {
  // Another one of the same generation has another name.
  DEDUP_ASSIGN(auto replacement, store::Replacement::begin(path, Id128::random()));
  DEDUP_ASSIGN(placeholder.inode, replacement->inode());
  DEDUP_TRY(replacement->write(0, store::encode_placeholder(placeholder)));
  DEDUP_TRY(replacement->flush());
  return replacement;
}

// Whether it names an attempt of this job at what follows on its base: one that failed, as far as
// the job knows.
bool names_own_attempt(const store::PathState& now, const FileView& view) {
  const std::uint64_t base = view.committed ? view.committed->record.number : 0;
  return now.kind == store::PathState::Kind::kPlaceholder &&
         now.placeholder.identity == view.info.identity &&
         now.placeholder.session == view.info.session && now.placeholder.number > base;
}

}  // namespace

bool names_base(const store::PathState& now, const FileView& view) {
  return now.kind == store::PathState::Kind::kPlaceholder &&
         now.placeholder.identity == view.info.identity && now.placeholder.attempt == view.base();
}

bool stands_at_path(const service::FileInfo& info) {
  const auto now = store::look_at(info.path);
  if (!now.is_ok()) return false;
  if (now->kind == store::PathState::Kind::kPlaceholder) {
    return now->placeholder.identity == info.identity;
  }
  return now->kind == store::PathState::Kind::kPlain &&
         info.real_path == service::FileInfo::RealPath::kPlain &&
         now->stamp.inode == info.plain.inode;
}

// What is written to in this job is not what stands at the path any more, committed or not.
Status Fence::check_fetched() {
  DEDUP_ASSIGN(const service::FileInfo info,
               file_.client().call(file_.home, service::GetFile{file_.identity()}));
  if (!info.has_writer) return check().status();
  return {Code::kFileInUse, path_ + ": this job has it open for writing"};
}

Status Fence::prepare(const store::CommitRecord& record) {
  const auto view = file_.view();
  path_ = view->info.path;
  if (view->info.real_path == service::FileInfo::RealPath::kNone) return Status::ok();
  if (file_.fetches) return check_fetched();
  DEDUP_ASSIGN(const store::PathState now, store::look_at(path_));
  const bool gone = now.kind == store::PathState::Kind::kNothing ||
                    now.kind == store::PathState::Kind::kNoDirectory;
  if (gone) {
    warn(path_ + ": was removed while it was open: no name leads to " + store::describe(record) +
         ", which stays in the stores until they need its space");
    return Status::ok();
  }
  DEDUP_TRY(check().status());
  store::Placeholder placeholder = placeholder_for(record, path_, view->info.store_template);
  const auto first = std::as_writable_bytes(std::span(placeholder.first));
  const Status read =
      read_range(file_, 0, first.first(std::min<std::uint64_t>(first.size(), record.size)));
  if (!read.is_ok()) {
    // Lost: what is left of the file can be committed all the same.
    if (now.kind != store::PathState::Kind::kPlaceholder) return read;
    placeholder.first = now.placeholder.first;
  }
  DEDUP_ASSIGN(replacement_, write_beside(path_, std::move(placeholder)));
  return Status::ok();
}

Result<store::PathState> Fence::check() {
  const auto view = file_.view();
  auto now = file_.fetches ? store::look_at(path_) : store::settle_path(path_);
  bool same = false;
  if (now.is_ok() && view->info.real_path == service::FileInfo::RealPath::kPlain) {
    store::Stamp stamp = now->stamp;
    // What is cached shows by its other time that it was changed. A commit of this job that failed
    // may have given it another name for a while.
    if (view->committed) stamp.changed = view->info.plain.changed;
    same = now->kind == store::PathState::Kind::kPlain && stamp == view->info.plain;
  } else if (now.is_ok()) {
    same = names_base(*now, *view);
  }
  same = same || (now.is_ok() && names_own_attempt(*now, *view));
  if (same || (!now.is_ok() && now.status().code() != Code::kCorrupt)) return now;
  return Status(Code::kConflict,
                path_ +
                    ": another program or job has changed or replaced the file since it "
                    "was opened; nothing of it is overwritten");
}

Status Fence::put(DisplacedFile& displaced) {
  if (file_.fetches) return check_fetched();
  if (!replacement_) return Status::ok();
  const auto replacement = std::exchange(replacement_, nullptr);
  DEDUP_ASSIGN(store::PathState before, check());
  before = displaced.keep(before);
  const Status status = replacement->put_after(before);
  if (!status.is_ok()) displaced.discard();
  return status;
}

Status renew_placeholder(const std::string& path, const store::PathState& old,
                         const store::CommitRecord& record, const std::string& store_template) {
  store::Placeholder placeholder = placeholder_for(record, path, store_template);
  placeholder.first = old.placeholder.first;
  DEDUP_ASSIGN(const auto replacement, write_beside(path, std::move(placeholder)));
  return replacement->put_after(old);
}

}  // namespace dedup::engine
