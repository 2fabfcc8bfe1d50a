#include "engine/fetch.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/warn.h"
#include "engine/commit.h"
#include "engine/open_handle.h"
#include "engine/protocol/cached_file.h"
#include "engine/protocol/leave.h"

namespace dedup::engine {
namespace {

using RealPath = service::FileInfo::RealPath;

// A change after what was read must have another time than those before. File systems that have
// whole seconds only take up to two of them for one.
void outlast_clock(const store::Stamp& plain) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::chrono::milliseconds kTick{20};
  constexpr std::chrono::milliseconds kCoarse{2100};
  const bool is_coarse = plain.modified % kSecond == 0 && plain.changed % kSecond == 0;
  std::this_thread::sleep_for(is_coarse ? kCoarse : kTick);
}

// On rank 0, before it is read: what others change from then on shows in its times. What they have
// changed through memory (mmap) does so once it is written out; a tmpfs writes nothing out.
Status settle_times(const std::string& path, const store::Stamp& plain) {
  DEDUP_ASSIGN(const auto file, store::fs::open_read(path));
  DEDUP_TRY(store::fs::sync(file));
  outlast_clock(plain);
  return Status::ok();
}

Status fetch_open(FileHandle& file) {
  const auto view = file.view();
  if (view->committed) return Status::ok();
  if (view->info.real_path != RealPath::kPlain) {
    return {Code::kConflict, file.path + ": its nodes share no file system at its path"};
  }
  const store::Stamp plain = view->info.plain;
  DEDUP_TRY(file.ranks().share(file.rank() == 0 ? settle_times(file.path, plain) : Status::ok()));
  file.changed = true;
  DEDUP_TRY(commit(file));
  if (note_cached(file, plain)) return Status::ok();
  return {Code::kIo, file.path + ": no store can remember that it has it"};
}

}  // namespace

Status fetch(MPI_Comm comm, const std::string& path, const Status& mine,
             const hints::Hints& hints) {
  hints::Hints used = hints;
  used.flush = hints::Flush::kNone;
  DEDUP_ASSIGN(const auto file,
               open_handle(comm, path, MPI_MODE_RDWR, mine, used, Purpose::kFetching));
  const Status status = fetch_open(*file);
  const Status left = leave(*file, Leaving::kAsItIs);
  return status.is_ok() ? left : status;
}

Result<std::unique_ptr<FileHandle>> open_fetched(MPI_Comm comm, std::unique_ptr<FileHandle> file,
                                                 int amode) {
  const auto view = file->view();
  const bool is_to_be_fetched = file->hints.fetch == hints::Fetch::kOpen && !file->writable &&
                                !view->committed && view->info.real_path == RealPath::kPlain &&
                                view->info.plain.size > 0;
  if (!is_to_be_fetched) return file;
  const std::string path = file->path;
  const hints::Hints hints = file->hints;
  const bool is_root = file->rank() == 0;
  // That is what the handle is opened for which the caller gets.
  file->delete_on_close = false;
  DEDUP_TRY(leave(*file, Leaving::kAsItIs));
  file.reset();
  const Status fetched = fetch(comm, path, Status::ok(), hints);
  if (!fetched.is_ok() && is_root) {
    warn(path + ": is read where it is, as it cannot be brought into the stores (dedup_fetch): " +
         fetched.message());
  }
  return open_handle(comm, path, amode, Status::ok(), hints);
}

}  // namespace dedup::engine
