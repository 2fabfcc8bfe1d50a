// Where dedupctl is built without libfuse.
#include "tools/dedupctl/mount_session.h"

namespace dedup::ctl {

Result<std::unique_ptr<MountSession>> MountSession::begin(const std::string&, bool) {
  return Status(Code::kUnsupported,
                "this dedupctl was built without FUSE: install libfuse 3 (Debian package: "
                "libfuse3-dev), then configure and build anew");
}

}  // namespace dedup::ctl
