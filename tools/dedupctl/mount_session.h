// The FUSE file system of `dedupctl mount`: requests of the kernel, answered by MountedFiles.
//
// One thread takes requests and hands them to another, which does all the work, in turn. So a
// request that this work itself makes, since a search for placeholders led it into the mount, is
// refused in place of waited for.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tools/dedupctl/mounted_files.h"

namespace dedup::ctl {

class MountSession {
 public:
  virtual ~MountSession() = default;

  // Puts it up on an empty directory; nobody answers yet. `for_all`: not for this user alone.
  // kUnsupported if this dedupctl was built without FUSE.
  static Result<std::unique_ptr<MountSession>> begin(const std::string& directory, bool for_all);

  // Goes on in a process of its own, without a terminal, and ends this one, unless that fails.
  virtual Status go_to_background() = 0;

  // Answers until it is taken down, or SIGTERM, SIGINT or SIGHUP comes, and then takes it down.
  virtual Status serve(MountedFiles& files) = 0;
};

}  // namespace dedup::ctl
