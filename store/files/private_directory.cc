#include "store/files/private_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "store/fs.h"

namespace dedup::store {

namespace {

constexpr mode_t kForOthers = 077;
constexpr mode_t kPrivate = 0700;

}  // namespace

Result<std::string> absolute(const std::string& directory) {
  if (directory.empty()) return Status(Code::kBadFile, "the store's directory has an empty name");
  std::string path = directory;
  if (path.front() != '/') {
    DEDUP_ASSIGN(const std::string here, fs::current_directory());
    path = here + "/" + path;
  }
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Status refuse(const std::string& path, const std::string& why) {
  return {Code::kAccess, "store directory " + path + " " + why};
}

// A parent that may be entered but not read, or that is reached by a link, cannot be flushed from
// here; that what is in it lasts is up to its file system then.
Status sync_above(const std::string& directory) {
  const Status synced = fs::sync_directory(directory);
  return synced.code() == Code::kAccess || synced.code() == Code::kBadFile ? Status::ok() : synced;
}

namespace {

// What is not there of `path`, a directory above a store's. What is found on the way down was made
// meanwhile, perhaps by another of the user's processes; who else can make it could put another
// store in the place of this one.
Status make_above(const std::string& path) {
  DEDUP_ASSIGN(const bool is_there, fs::exists(path));
  if (is_there) return Status::ok();
  const std::string above = fs::directory_of(path);
  DEDUP_TRY(make_above(above));
  DEDUP_TRY(fs::make_directory(path).status());
  DEDUP_ASSIGN(const fs::Info about, fs::info(path));
  if (about.is_link || about.owner != ::geteuid()) {
    return refuse(path, "was made by another user meanwhile: set dedup_store to one of your own");
  }
  return sync_above(above);
}

// No name that a program gave is wrong: the class of error is not a bad file name's.
Status not_below_a_directory(const std::string& path) {
  return refuse(path,
                "cannot be: what is named above it is no directory; set dedup_store to another");
}

bool is_expected_in_new_store(const std::string& name) {
  return name == "lost+found" || name.starts_with("STORE") || name.starts_with("TIER");
}

}  // namespace

Result<bool> is_there(const std::string& path) {
  const Result<bool> exists = fs::exists(path);
  if (exists.status().code() == Code::kBadFile) return not_below_a_directory(path);
  return exists;
}

Status make_private(const std::string& path) {
  Status made = make_above(fs::directory_of(path));
  if (made.is_ok()) made = fs::make_directory(path).status();
  return made.with_context("store directory " + path);
}

Status check_private(const std::string& path, const std::string& marker) {
  DEDUP_ASSIGN(const fs::Info named, fs::info(path));
  if (named.is_link) {
    return refuse(path, "is a symbolic link: set dedup_store to the directory itself");
  }
  if (!named.is_directory) return refuse(path, "is not a directory: set dedup_store to one");
  DEDUP_ASSIGN(const fs::File directory, fs::open_directory(path));
  DEDUP_ASSIGN(const fs::Info about, fs::info(directory));
  if (about.owner != ::geteuid()) {
    return refuse(path, "belongs to user " + std::to_string(about.owner) + ", not to user " +
                            std::to_string(::geteuid()) +
                            ": set dedup_store to a directory of your own");
  }
  if ((about.permissions & kForOthers) == 0) return Status::ok();
  DEDUP_ASSIGN(const bool is_store, fs::exists(marker));
  if (!is_store) {
    DEDUP_ASSIGN(const auto names, fs::list(path));
    if (!std::all_of(names.begin(), names.end(), is_expected_in_new_store)) {
      return refuse(path,
                    "is open to other users and holds other files: set dedup_store to a directory "
                    "of its own, or make this one private (chmod 700)");
    }
  }
  return fs::set_permissions(directory, kPrivate);
}

}  // namespace dedup::store
