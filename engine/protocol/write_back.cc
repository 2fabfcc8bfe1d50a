#include "engine/protocol/write_back.h"

#include <algorithm>

#include "engine/protocol/failpoint.h"
#include "engine/protocol/fence.h"
#include "engine/protocol/reader.h"
#include "store/replacement.h"

namespace dedup::engine {
namespace {

constexpr std::uint64_t kCopiedAtOnce = std::uint64_t{8} << 20;

// Copies this rank's part of the file. Parts are multiples of what is copied at once.
Status copy_part(JobFile& file, std::uint64_t size, store::Replacement& out) {
  const auto ranks = static_cast<std::uint64_t>(file.ranks().size());
  const std::uint64_t pieces = (size + kCopiedAtOnce - 1) / kCopiedAtOnce;
  const std::uint64_t each = (pieces + ranks - 1) / ranks * kCopiedAtOnce;
  const std::uint64_t begin = std::min(size, static_cast<std::uint64_t>(file.rank()) * each);
  const std::uint64_t end = std::min(size, begin + each);
  Bytes buffer(std::min(kCopiedAtOnce, end - begin));
  for (std::uint64_t at = begin; at < end;) {
    const std::span part(buffer.data(), std::min<std::uint64_t>(buffer.size(), end - at));
    DEDUP_TRY(read_range(file, at, part));
    DEDUP_TRY(out.write_sparse(at, part));
    at += part.size();
  }
  return begin == end ? Status::ok() : out.flush();
}

// What must stand at the path: the placeholder of the generation that is written back.
Result<store::PathState> find_placeholder(const JobFile& file) {
  const auto view = file.view();
  DEDUP_ASSIGN(store::PathState now, store::settle_path(view->info.path));
  if (names_base(now, *view)) return now;
  return Status(Code::kConflict, "its placeholder was changed or removed meanwhile");
}

Status write_back_to(JobFile& file, std::uint64_t size) {
  const std::string path = file.view()->info.path;
  std::unique_ptr<store::Replacement> replacement;
  Status status;
  if (file.rank() == 0) {
    status = find_placeholder(file).status();
    if (status.is_ok()) {
      // A killed one may have left as much as the whole file.
      (void)store::remove_leftovers(store::fs::directory_of(path));
      auto begun = store::Replacement::begin(path, Id128::random());
      status = begun.status();
      if (status.is_ok()) {
        replacement = std::move(*begun);
        status = replacement->resize(size);
      }
    }
  }
  DEDUP_TRY(file.ranks().share(status));
  Id128 id = replacement ? replacement->id() : Id128();
  file.ranks().broadcast(id);
  failpoint("writeback.begun");
  if (file.rank() != 0) {
    auto joined = store::Replacement::join(path, id);
    status = joined.status();
    if (status.is_ok()) replacement = std::move(*joined);
  }
  if (status.is_ok()) status = copy_part(file, size, *replacement);
  DEDUP_TRY(file.ranks().agree(status, Waiting::kPatient));
  failpoint("writeback.copied");
  if (file.rank() == 0) {
    // The permissions and the size are rank 0's to flush.
    status = replacement->flush();
    const auto before = find_placeholder(file);
    if (status.is_ok()) status = before.status();
    if (status.is_ok()) status = replacement->put_after(*before);
  }
  failpoint("writeback.renamed");
  return file.ranks().agree(status, Waiting::kPatient);
}

}  // namespace

Status write_back(JobFile& file) {
  const auto view = file.view();
  // What was written since is not all in the generation, nor is all of the generation left: what
  // would be read is neither.
  const std::uint64_t size = view->committed ? view->committed->record.size : 0;
  const bool is_cut = view->info.size < size;
  const bool is_changed = file.changed || (file.local && file.local->has_logged());
  Status status(Code::kIo, "the file has changes that could not be committed");
  if (!is_cut && file.ranks().largest(is_changed ? 1 : 0) == 0) {
    status = write_back_to(file, size);
  }
  return status.with_context(view->info.path +
                             ": could not be written back (its data stays in "
                             "the stores)");
}

}  // namespace dedup::engine
