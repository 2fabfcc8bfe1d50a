#include "engine/protocol/write_back.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/byte_ranges.h"
#include "base/fields.h"
#include "engine/protocol/failpoint.h"
#include "engine/protocol/fence.h"
#include "engine/protocol/flusher.h"
#include "engine/protocol/part_writer.h"
#include "plan/write_back.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"
#include "store/replacement.h"
#include "store/written.h"

namespace dedup::engine {
namespace {

// What rank 0 tells all.
struct Plan {
  struct Part {
    std::vector<ByteRange> ranges;
  };
  CopyTarget target;
  std::vector<Part> parts;  // by writer
  Id128 handle;             // of who writes in the background
};

// What must stand at the path: the placeholder of the generation that is written back.
Result<store::PathState> find_placeholder(const JobFile& file) {
  const auto view = file.view();
  DEDUP_ASSIGN(store::PathState now, store::settle_path(view->info.path));
  if (names_base(now, *view)) return now;
  return Status(Code::kConflict, "its placeholder was changed or removed meanwhile");
}

// What the stores of the nodes that this rank speaks for know. What cannot be had is written again.
std::vector<store::WrittenPart> list_written(const JobFile& file) {
  std::vector<service::Client::Pending<service::ListWritten>> pending;
  for (NodeIndex n = 0; n < file.nodes(); ++n) {
    if (!file.ranks().speaks_for(n)) continue;
    const service::ListWritten request{file.identity(), file.view()->base()};
    pending.push_back(file.client().start(n, request));
  }
  std::vector<store::WrittenPart> parts;
  for (auto& one : pending) {
    auto reply = one.wait();
    if (!reply.is_ok()) continue;
    std::move(reply->parts.begin(), reply->parts.end(), std::back_inserter(parts));
  }
  return parts;
}

// On rank 0. Writers as they are dealt what is missing.
class Planner {
 public:
  Planner(const JobFile& file, std::uint64_t size, std::uint32_t writers, bool goes_on)
      : file_(file),
        path_(file.view()->info.path),
        size_(size),
        writers_(writers),
        goes_on_(goes_on) {}

  Result<Plan> make(const std::vector<store::WrittenPart>& known) {
    const std::vector<store::WrittenCopy> copies = store::by_copy(known);
    const Status standing = find_placeholder(file_).status();
    if (standing.code() == Code::kConflict) discard(copies);
    DEDUP_TRY(standing);
    // A killed one may have left as much as the whole file.
    (void)store::remove_leftovers(store::fs::directory_of(path_));
    std::vector<ByteRange> written;
    std::unique_ptr<store::Replacement> target = take_one_of(copies, written);
    Plan plan;
    plan.target.is_new = !target;
    if (!target) {
      DEDUP_ASSIGN(target, store::Replacement::begin_copy(path_, file_.view()->base()));
      DEDUP_TRY(target->resize(size_));
    }
    discard(copies);
    std::uint64_t block = file_.hints.striping_unit;
    if (block == 0) {
      DEDUP_ASSIGN(block, target->block_size());
    }
    plan.target.id = target->id();
    plan.handle = Id128::random();
    const std::uint64_t unit = plan::writing_unit(block);
    for (auto& ranges : plan::deal_to_writers(missing(written, size_), writers_, unit)) {
      plan.parts.push_back({std::move(ranges)});
    }
    // Before writers note theirs in the place of what was known. No writer has this number. A store
    // that cannot remember it costs writing it again, if somebody has to go on.
    const service::PutWritten request{
        file_.identity(), file_.view()->base(), {writers_, plan.target.id, std::move(written), {}}};
    (void)file_.client().call(file_.client().self(), request);
    target->set_mine(false);
    return plan;
  }

 private:
  // The best that can be had, and what is in it; none if there is none.
  std::unique_ptr<store::Replacement> take_one_of(const std::vector<store::WrittenCopy>& copies,
                                                  std::vector<ByteRange>& written) const {
    for (const store::WrittenCopy& one : copies) {
      auto taken = take(one);
      if (!taken.is_ok()) continue;
      written = one.ranges;
      return std::move(*taken);
    }
    return nullptr;
  }

  Result<std::unique_ptr<store::Replacement>> take(const store::WrittenCopy& copy) const {
    if (copy.is_untouched) {
      DEDUP_ASSIGN(auto taken, store::Replacement::take_kept(path_, copy.copy));
      DEDUP_TRY(taken->resize(size_));
      return taken;
    }
    if (!goes_on_) return Status(Code::kFileInUse, path_ + ": a writer may still be at its copy");
    DEDUP_ASSIGN(auto taken, store::Replacement::take_copy(path_, copy.copy));
    DEDUP_ASSIGN(const std::uint64_t size, taken->size());
    if (size == size_) return taken;
    return Status(Code::kCorrupt, path_ + ": its copy has another size");
  }

  // Those that are left. Whoever writes to one of them late does no harm.
  void discard(const std::vector<store::WrittenCopy>& copies) const {
    for (const store::WrittenCopy& one : copies) discard_copy(file_, one.copy);
  }

  const JobFile& file_;
  const std::string path_;
  const std::uint64_t size_;
  const std::uint32_t writers_;
  const bool goes_on_;
};

// Collective.
Status make_plan(const JobFile& file, std::uint64_t size, std::uint32_t writers, bool goes_on,
                 Plan& plan) {
  const service::ListWrittenReply mine{list_written(file)};
  std::vector<store::WrittenPart> known;
  for (const Bytes& bytes : file.ranks().gather(encoded(mine))) {
    auto of_rank = decoded<service::ListWrittenReply>(bytes).value_or(service::ListWrittenReply{});
    std::move(of_rank.parts.begin(), of_rank.parts.end(), std::back_inserter(known));
  }
  Status status;
  if (file.ranks().is_root()) {
    auto made = Planner(file, size, writers, goes_on).make(known);
    status = made.status();
    if (status.is_ok()) plan = std::move(*made);
  }
  return file.ranks().share(status, plan);
}

// On rank 0: the copy, which is whole, takes the placeholder's place.
Result<std::optional<store::Stamp>> put_at_path(const JobFile& file, const Id128& copy) {
  const std::string& path = file.view()->info.path;
  DEDUP_TRY(find_placeholder(file).status());
  auto target = store::Replacement::join_copy(path, copy);
  if (target.status().code() == Code::kNoSuchFile) {
    return Status(Code::kConflict, "somebody has removed the copy beside it");
  }
  DEDUP_TRY(target.status());
  (*target)->set_mine(true);
  DEDUP_TRY((*target)->take_permissions());
  DEDUP_TRY((*target)->flush());
  bool is_outlasted = false;
  if (file.hints.flushed == hints::Flushed::kKeep) {
    const auto outlasted = (*target)->outlast_clock();
    is_outlasted = outlasted.is_ok() && *outlasted;
  }
  DEDUP_ASSIGN(const store::Stamp copied, (*target)->stamp());
  DEDUP_ASSIGN(const auto before, find_placeholder(file));
  DEDUP_TRY((*target)->put_unless_written(before));
  const auto now = store::look_at(path);
  // Its name is another one, which is a change.
  const bool is_it = now.is_ok() && now->kind == store::PathState::Kind::kPlain &&
                     now->stamp.inode == copied.inode && now->stamp.size == copied.size &&
                     now->stamp.modified == copied.modified;
  return is_outlasted && is_it ? std::optional(now->stamp) : std::nullopt;
}

// Collective.
Result<WriteBackResult> put_copy(const JobFile& file, const Id128& copy) {
  Status status;
  WriteBackResult result{true, {}};
  if (file.ranks().is_root()) {
    auto put = put_at_path(file, copy);
    status = put.status();
    if (status.is_ok()) {
      result.plain = *put;
    } else {
      discard_copy(file, copy);
    }
  }
  failpoint("writeback.renamed");
  DEDUP_TRY(file.ranks().share(status, result));
  return result;
}

// A rank's own part of it, at once.
Status write_part(JobFile& file, const CopyTarget& target, std::vector<ByteRange> ranges) {
  PartWriter writer(file, target, static_cast<std::uint32_t>(file.rank()), std::move(ranges));
  while (!writer.is_done()) {
    DEDUP_TRY(writer.step().status());
    if (!writer.is_to_be_noted()) continue;
    DEDUP_TRY(writer.flush());
    writer.note();
  }
  return Status::ok();
}

Result<WriteBackResult> write_at_once(JobFile& file, std::uint64_t size, bool goes_on) {
  Plan plan;
  const auto writers = static_cast<std::uint32_t>(file.ranks().size());
  DEDUP_TRY(make_plan(file, size, writers, goes_on, plan));
  failpoint("writeback.begun");
  const auto rank = static_cast<std::size_t>(file.rank());
  Status status = write_part(file, plan.target, std::move(plan.parts[rank].ranges));
  status = file.ranks().agree(status, Waiting::kPatient);
  failpoint("writeback.copied");
  if (status.is_ok()) return put_copy(file, plan.target.id);
  if (file.ranks().is_root()) discard_copy(file, plan.target.id);
  return status;
}

// Each node's part is written by the rank that speaks for it.
Result<WriteBackResult> begin_in_background(JobFile& file, std::uint64_t size, bool goes_on) {
  Plan plan;
  DEDUP_TRY(make_plan(file, size, file.nodes(), goes_on, plan));
  failpoint("writeback.begun");
  service::BeginWriteBack request{file.identity(), plan.handle, {}};
  for (std::uint32_t n = 0; n < plan.parts.size(); ++n) {
    if (!plan.parts[n].ranges.empty()) request.writers.push_back(n);
  }
  if (request.writers.empty()) return put_copy(file, plan.target.id);
  Status status;
  if (file.ranks().is_root()) status = file.client().call(file.home, request).status();
  DEDUP_TRY(file.ranks().share(status));
  for (const std::uint32_t n : request.writers) {
    if (!file.ranks().speaks_for(static_cast<NodeIndex>(n))) continue;
    file.flusher->add(file, plan.handle, plan.target, n, std::move(plan.parts[n].ranges));
  }
  return WriteBackResult{};
}

}  // namespace

Result<WriteBackResult> write_back(JobFile& file, const WholeCopy& known, bool goes_on) {
  const auto view = file.view();
  // What was written since is not all in the generation, nor is all of the generation left: what
  // would be read is neither.
  const std::uint64_t size = view->committed ? view->committed->record.size : 0;
  const bool is_cut = view->info.size < size;
  const bool is_changed = file.changed || (file.local && file.local->has_logged());
  const auto begin = [&]() -> Result<WriteBackResult> {
    if (is_cut || file.ranks().largest(is_changed ? 1 : 0) != 0) {
      return Status(Code::kIo, "the file has changes that could not be committed");
    }
    if (!known.id.is_zero() && known.attempt == view->base()) return put_copy(file, known.id);
    const bool is_in_background =
        view->info.write_back == service::WriteBack::kInBackground && file.flusher != nullptr;
    return is_in_background ? begin_in_background(file, size, goes_on)
                            : write_at_once(file, size, goes_on);
  };
  auto result = begin();
  if (result.is_ok()) return result;
  return result.status().with_context(view->info.path +
                                      ": could not be written back (its data stays in the stores)");
}

void discard_copy(const JobFile& file, const Id128& copy) {
  store::remove_copy(file.view()->info.path, copy);
}

}  // namespace dedup::engine
