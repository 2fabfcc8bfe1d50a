#include "engine/protocol/displaced_file.h"

#include <algorithm>
#include <utility>

#include "base/byte_ranges.h"
#include "engine/protocol/failpoint.h"
#include "plan/block.h"
#include "service/messages/store_node.h"
#include "store/replacement.h"

namespace dedup::engine {
namespace {

using Kind = store::PathState::Kind;

}  // namespace

DisplacedFile::DisplacedFile(const JobFile& file, const store::CommitRecord& record,
                             std::vector<std::uint64_t> changed)
    : file_(file), record_(record), changed_(std::move(changed)) {}

std::vector<ByteRange> DisplacedFile::unchanged() const {
  const std::uint64_t end = std::min(file_.view()->committed->record.size, record_.size);
  std::vector<ByteRange> changed;
  for (const std::uint64_t block : changed_) changed.push_back({block * kBlockSpan, kBlockSpan});
  return missing(std::move(changed), end);
}

store::PathState DisplacedFile::keep(const store::PathState& before) {
  const auto view = file_.view();
  const bool is_wanted = view->committed && view->info.write_back != service::WriteBack::kNone;
  if (!is_wanted) return before;
  part_ = before.kind == Kind::kPlain ? keep_plain(before) : keep_copy();
  if (!part_ || before.kind != Kind::kPlain) return before;
  failpoint("commit.displaced");
  // Its other name has changed the last of its times.
  auto now = store::look_at(view->info.path);
  if (!now.is_ok() || now->kind != Kind::kPlain) return before;
  store::Stamp same = now->stamp;
  same.changed = before.stamp.changed;
  return same == before.stamp ? *std::move(now) : before;
}

std::optional<store::WrittenPart> DisplacedFile::keep_plain(const store::PathState& before) const {
  auto ranges = unchanged();
  if (ranges.empty()) return std::nullopt;
  const auto id = store::keep_as_copy(file_.view()->info.path, before.stamp, record_.attempt);
  if (!id.is_ok()) return std::nullopt;
  return store::WrittenPart{store::WrittenPart::kNobody, *id, std::move(ranges), {}};
}

std::optional<store::WrittenPart> DisplacedFile::keep_copy() const {
  const auto view = file_.view();
  const auto known = file_.client().call(file_.client().self(),
                                         service::ListWritten{file_.identity(), view->base()});
  if (!known.is_ok()) return std::nullopt;
  for (const store::WrittenPart& part : known->parts) {
    if (part.writer != store::WrittenPart::kNobody) continue;
    auto ranges = common(part.ranges, unchanged());
    if (ranges.empty()) continue;
    const auto id = store::keep_for(view->info.path, part.copy, record_.attempt);
    if (!id.is_ok()) continue;
    return store::WrittenPart{store::WrittenPart::kNobody, *id, std::move(ranges), {}};
  }
  return std::nullopt;
}

void DisplacedFile::discard() {
  if (part_) store::remove_copy(file_.view()->info.path, part_->copy);
  part_.reset();
}

void DisplacedFile::note() {
  if (!part_) return;
  const service::PutWritten request{file_.identity(), record_.attempt, *part_};
  if (!file_.client().call(file_.client().self(), request).is_ok()) discard();
}

}  // namespace dedup::engine
