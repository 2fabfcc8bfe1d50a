#include "engine/close_handle.h"

#include "base/warn.h"
#include "engine/commit.h"
#include "engine/protocol/failpoint.h"
#include "engine/protocol/flusher.h"
#include "engine/protocol/leave.h"
#include "store/choose.h"

namespace dedup::engine {
namespace {

std::string standing_generation(const FileHandle& file) {
  const auto view = file.view();
  if (!view->committed) return "no generation of it was committed";
  return store::describe(view->committed->record) + " stands";
}

}  // namespace

Status close_handle(std::unique_ptr<FileHandle> file) {
  Status status;
  if (file->writable && !file->delete_on_close) {
    status = commit(*file);
    if (!status.is_ok() && file->rank() == 0) {
      say_error(file->path + ": close could not commit: " + status.message() + "; " +
                standing_generation(*file));
    }
  }
  failpoint("close.committed");
  file->flusher->retry();
  const Status left = leave(*file);
  if (status.is_ok() && !left.is_ok() && file->rank() == 0) {
    say_error(left.message());
  }
  return status.is_ok() ? left : status;
}

}  // namespace dedup::engine
