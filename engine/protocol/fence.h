// The placeholder as a fence: a generation counts once the placeholder names it.
//
// Replaced after all commit records are there and before the old generation goes, and by one of all
// jobs that would go on from what it names; so those that cannot see each other's stores cannot
// both do so (doc/design.md, "The real path"). Used by one rank.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "engine/protocol/displaced_file.h"
#include "engine/protocol/job_file.h"
#include "service/messages/file_info.h"
#include "store/commit_record.h"
#include "store/real_path.h"
#include "store/replacement.h"

namespace dedup::engine {

class Fence {
 public:
  explicit Fence(JobFile& file) : file_(file) {}

  // Before the commit records: writes the placeholder for `record` beside the path. kConflict if
  // something else stands there than what this job opened.
  Status prepare(const store::CommitRecord& record);
  // After them; what stood there before is for `displaced` to keep. kConflict as above. After
  // another failure it is not known whether the generation counts; the job's next attempt then goes
  // on from what there is.
  Status put(DisplacedFile& displaced);

 private:
  // What stands at the path, if this job may replace it.
  Result<store::PathState> check();
  // Of one that is fetched, whether it is what was read.
  Status check_fetched();

  JobFile& file_;
  std::string path_;
  std::unique_ptr<store::Replacement> replacement_;  // null: nothing is to be replaced
};

// Whether what stands at a path is the placeholder of the very generation that `view` is based on.
bool names_base(const store::PathState& now, const FileView& view);

// Whether the name at the real path, of a file that has one, leads to it.
bool stands_at_path(const service::FileInfo& info);

// Puts a placeholder for `record` in place of an older one that a broken commit left. kConflict if
// that does not stand there any more.
Status renew_placeholder(const std::string& path, const store::PathState& old,
                         const store::CommitRecord& record, const std::string& store_template);

}  // namespace dedup::engine
