#include "engine/fence.h"

#include <cstdio>

#include "engine/reader.h"
#include "plan/choose.h"

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
  DEDUP_ASSIGN(auto replacement, store::Replacement::begin(path));
  DEDUP_ASSIGN(placeholder.inode, replacement->inode());
  DEDUP_TRY(replacement->write(0, store::encode_placeholder(placeholder)));
  DEDUP_TRY(replacement->flush());
  return replacement;
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

Status Fence::prepare(const store::CommitRecord& record) {
  const auto view = file_.view();
  path_ = view->info.path;
  if (view->info.real_path == service::FileInfo::RealPath::kNone) return Status::ok();
  DEDUP_ASSIGN(const store::PathState now, store::look_at(path_));
  const bool gone = now.kind == store::PathState::Kind::kNothing ||
                    now.kind == store::PathState::Kind::kNoDirectory;
  if (gone) {
    std::fprintf(stderr,
                 "dedup: warning: %s: was removed while it was open: no name leads to %s of "
                 "identity %s, which stays in the stores until they need its space\n",
                 path_.c_str(), plan::describe(record).c_str(), record.identity.hex().c_str());
    return Status::ok();
  }
  DEDUP_TRY(check());
  store::Placeholder placeholder = placeholder_for(record, path_, view->info.store_template);
  const auto first = std::as_writable_bytes(std::span(placeholder.first));
  const Status read = read_range(file_, 0, first).status();
  if (!read.is_ok()) {
    // Lost: what is left of the file can be committed all the same.
    if (now.kind != store::PathState::Kind::kPlaceholder) return read;
    placeholder.first = now.placeholder.first;
  }
  DEDUP_ASSIGN(replacement_, write_beside(path_, std::move(placeholder)));
  return Status::ok();
}

Status Fence::check() {
  const auto view = file_.view();
  const auto now = store::look_at(path_);
  bool same = false;
  if (now.is_ok() && view->info.real_path == service::FileInfo::RealPath::kPlain) {
    same = now->kind == store::PathState::Kind::kPlain && now->stamp == view->info.plain;
  } else if (now.is_ok()) {
    same = names_base(*now, *view);
  }
  if (same) return Status::ok();
  if (!now.is_ok() && now.status().code() != Code::kCorrupt) return now.status();
  return {Code::kConflict, path_ +
                               ": another program or job has changed or replaced the file since it "
                               "was opened; nothing of it is overwritten"};
}

Status Fence::put() {
  if (!replacement_) return Status::ok();
  DEDUP_TRY(check());
  const Status status = replacement_->put();
  replacement_.reset();
  const bool was_plain = file_.view()->info.real_path == service::FileInfo::RealPath::kPlain;
  if (status.is_ok() || was_plain) return status;
  std::fprintf(stderr,
               "dedup: warning: %s: the generation is committed, but the placeholder could not be "
               "replaced (the next open for writing does it): %s\n",
               path_.c_str(), status.message().c_str());
  return Status::ok();
}

Status renew_placeholder(const std::string& path, const store::Placeholder& old,
                         const store::CommitRecord& record, const std::string& store_template) {
  store::Placeholder placeholder = placeholder_for(record, path, store_template);
  placeholder.first = old.first;
  DEDUP_ASSIGN(const auto replacement, write_beside(path, std::move(placeholder)));
  return replacement->put();
}

}  // namespace dedup::engine
