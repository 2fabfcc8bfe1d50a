#include "base/status.h"

#include <cerrno>
#include <system_error>

namespace dedup {

Status Status::from_errno(int error, const std::string& what) {
  Code code = Code::kIo;
  switch (error) {
    case ENOENT:
      code = Code::kNoSuchFile;
      break;
    case EEXIST:
      code = Code::kFileExists;
      break;
    case EACCES:
    case EPERM:
      code = Code::kAccess;
      break;
    case EROFS:
      code = Code::kReadOnly;
      break;
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR:
    case ENOTDIR:
      code = Code::kBadFile;
      break;
    case ENOSPC:
      code = Code::kNoSpace;
      break;
    case EDQUOT:
      code = Code::kQuota;
      break;
    case ENOMEM:
      code = Code::kNoMemory;
      break;
    default:
      break;
  }
  return {code, what + ": " + std::generic_category().message(error)};
}

}  // namespace dedup
