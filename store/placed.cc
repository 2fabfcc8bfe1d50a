#include "store/placed.h"

#include <sys/stat.h>

#include <cerrno>

#include "store/fs.h"
#include "store/real_path.h"
#include "store/replacement.h"
#include "store/system.h"

namespace dedup::store {
namespace {

// A directory in which files come and go is seldom still for long enough at the first look.
constexpr int kLooks = 3;

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Links are followed.
int stat_of(const std::string& path, struct stat& s) {
  return fs::retried([&] { return system().stat(path.c_str(), &s); });
}

int stat_of_link(const std::string& path, struct stat& s) {
  return fs::retried([&] { return system().lstat(path.c_str(), &s); });
}

Status changing(const std::string& directory) {
  return {Code::kConflict, directory + ": it is just changing"};
}

// Adds what stands at `path`, if that may be of interest.
Status look_at_entry(const std::string& path, DirectoryLook& look) {
  struct stat s {};
  // What is renamed while we look may be seen under neither name.
  if (stat_of_link(path, s) != 0) return changing(fs::directory_of(path));
  if (S_ISDIR(s.st_mode)) {
    look.directories.push_back(path);
    return Status::ok();
  }
  const bool possible = stat_of(path, s) == 0 && S_ISREG(s.st_mode) &&
                        s.st_size == static_cast<off_t>(kPlaceholderSize);
  if (!possible) return Status::ok();
  // One that cannot be read may name any file.
  DEDUP_ASSIGN(PathState state, look_at(path));
  if (state.kind != PathState::Kind::kPlaceholder) return Status::ok();
  if (is_beside_a_path(path.substr(path.rfind('/') + 1))) {
    look.to_be_placed.push_back(state.placeholder.identity);
    return Status::ok();
  }
  const bool is_copy = state.is_copy();
  look.placeholders.push_back({path, std::move(state.placeholder), is_copy});
  return Status::ok();
}

DirectoryLook look_once(const std::string& directory) {
  DirectoryLook look;
  const auto id = directory_id(directory + "/.");
  look.whole = id.status();
  if (!id.is_ok() || *id == DirectoryId{}) return look;
  look.id = *id;
  struct stat before {};
  struct stat after {};
  const auto names = stat_of(directory, before) == 0
                         ? fs::list(directory)
                         : Result<std::vector<std::string>>(fs::failed("look at", directory));
  look.whole = names.status();
  if (!names.is_ok()) return look;
  for (const std::string& name : *names) {
    const Status status = look_at_entry(directory + "/" + name, look);
    if (!status.is_ok() && look.whole.is_ok()) look.whole = status;
  }
  const bool is_same = stat_of(directory, after) == 0 && before.st_ino == after.st_ino &&
                       same_time(before.st_mtim, after.st_mtim) &&
                       same_time(before.st_ctim, after.st_ctim);
  if (!is_same && look.whole.is_ok()) look.whole = changing(directory);
  return look;
}

}  // namespace

DirectoryLook look_in(const std::string& directory) {
  DirectoryLook look = look_once(directory);
  for (int i = 1; i < kLooks && look.whole.code() == Code::kConflict; ++i) {
    look = look_once(directory);
  }
  return look;
}

const DirectoryLook& Directories::look_in(const std::string& directory) {
  const auto [it, is_new] = looks_.try_emplace(directory);
  if (is_new) it->second = store::look_in(directory);
  return it->second;
}

}  // namespace dedup::store
