#include "engine/c_interface.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <system_error>

#include "base/warn.h"
#include "hints/node.h"

namespace dedup::engine {
namespace {

int mpi_error_class(Code code) {
  switch (code) {
    case Code::kOk:
      return MPI_SUCCESS;
    case Code::kNoSuchFile:
      return MPI_ERR_NO_SUCH_FILE;
    case Code::kFileExists:
      return MPI_ERR_FILE_EXISTS;
    case Code::kAccess:
      return MPI_ERR_ACCESS;
    case Code::kReadOnly:
      return MPI_ERR_READ_ONLY;
    case Code::kBadFile:
      return MPI_ERR_BAD_FILE;
    case Code::kNoSpace:
      return MPI_ERR_NO_SPACE;
    case Code::kQuota:
      return MPI_ERR_QUOTA;
    case Code::kFileInUse:
      return MPI_ERR_FILE_IN_USE;
    case Code::kNotSame:
      return MPI_ERR_NOT_SAME;
    case Code::kInfoValue:
      return MPI_ERR_INFO_VALUE;
    case Code::kArgument:
      return MPI_ERR_ARG;
    case Code::kCount:
      return MPI_ERR_COUNT;
    case Code::kUnsupported:
      return MPI_ERR_UNSUPPORTED_OPERATION;
    case Code::kNoMemory:
      return MPI_ERR_NO_MEM;
    case Code::kInternal:
      return MPI_ERR_INTERN;
    case Code::kIo:
    case Code::kConflict:
    case Code::kCorrupt:
    case Code::kUnreachable:
    case Code::kVersion:
    case Code::kNotFound:
      return MPI_ERR_IO;
  }
  return MPI_ERR_OTHER;
}

}  // namespace

int give(const Status& status, dedup_error* error) {
  error->error_class = mpi_error_class(status.code());
  std::snprintf(error->text, sizeof error->text, "%s", status.message().c_str());
  return error->error_class;
}

hints::Source source_of(MPI_Info info) {
  hints::Source source;
  if (info == MPI_INFO_NULL) return source;
  int keys = 0;
  PMPI_Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1];
    PMPI_Info_get_nthkey(info, i, key);
    int length = 0;
    int found = 0;
    PMPI_Info_get_valuelen(info, key, &length, &found);
    if (found == 0) continue;
    std::string value(static_cast<std::size_t>(length) + 1, '\0');
    PMPI_Info_get(info, key, length, value.data(), &found);
    value.resize(std::strlen(value.c_str()));
    source.emplace_back(key, std::move(value));
  }
  return source;
}

void print(const hints::Warnings& warnings) {
  static std::mutex mutex;
  static auto& printed = *new std::set<std::string>;  // files are opened while the process ends
  const std::lock_guard lock(mutex);
  for (const hints::Warning& warning : warnings) {
    if (printed.insert(warning.key).second) warn(warning.text);
  }
}

Result<hints::Hints> hints_of(MPI_Info info, MPI_Info hints_file) {
  hints::Warnings warnings;
  auto resolved =
      hints::resolve(source_of(info), source_of(hints_file), hints::environment_source(), warnings);
  print(warnings);
  return resolved;
}

Status check_path(std::string_view path) {
  if (path.empty()) return {Code::kBadFile, "the file's name is empty"};
  if (path.size() >= PATH_MAX) {
    return {Code::kBadFile, "the file's name has " + std::to_string(path.size()) +
                                " bytes; at most " + std::to_string(PATH_MAX - 1) +
                                " are allowed: " + std::string(path)};
  }
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end - at > NAME_MAX) {
      return {Code::kBadFile, "a part of the file's name has " + std::to_string(end - at) +
                                  " bytes; at most " + std::to_string(NAME_MAX) +
                                  " are allowed: " + std::string(path)};
    }
    at = end + 1;
  }
  // Services that looked there would wait for it, and it may be waiting for them.
  std::error_code unknown;
  const std::string named = hints::mount_directory();
  const std::string mount =
      named.empty() ? "" : std::filesystem::canonical(named, unknown).string();
  if (!mount.empty() && (path == mount || path.starts_with(mount + "/"))) {
    return {Code::kReadOnly, std::string(path) +
                                 ": is in the job's mount, which shows committed files to programs "
                                 "without the driver: use the file's own name"};
  }
  return Status::ok();
}

}  // namespace dedup::engine
