#include "store/files/open_store.h"

#include <unistd.h>

#include <algorithm>

#include "base/codec.h"
#include "store/format.h"
#include "store/fs.h"
#include "store/may_be_store.h"

namespace dedup::store {
namespace {

constexpr mode_t kForOthers = 077;
constexpr mode_t kPrivate = 0700;

// A program may change its directory later: the path must not depend on it. Without slashes at the
// end, which would make the system follow a symbolic link.
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

// What makes the store's own names last. While it has no file everybody does it: who made them may
// have been killed before.
Status flush_names(const Layout& layout) {
  DEDUP_ASSIGN(const auto files, fs::list(layout.files()));
  if (!files.empty()) return Status::ok();
  DEDUP_TRY(fs::sync_directory(layout.root));
  return sync_above(fs::directory_of(layout.root));
}

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

Status make_root(const std::string& path) {
  Status made = make_above(fs::directory_of(path));
  if (made.is_ok()) made = fs::make_directory(path).status();
  return made.with_context("store directory " + path);
}

bool is_expected_in_new_store(const std::string& name) {
  return name == "lost+found" || name.starts_with("STORE");
}

Status check_root(const Layout& layout) {
  const std::string& path = layout.root;
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
  DEDUP_ASSIGN(const bool is_store, fs::exists(layout.store_file()));
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

Bytes encode_store_file(const Id128& uuid) {
  Encoder out;
  format::put_start(out, format::kStore);
  out.put(std::uint32_t{0});
  out.put(uuid);
  format::put_checksum(out);
  return out.take();
}

Result<Id128> read_store_file(const Layout& layout) {
  const std::string path = layout.store_file();
  DEDUP_ASSIGN(const Bytes bytes, fs::read_file(path));
  Decoder in(bytes);
  DEDUP_TRY(format::check_start(in, format::kStore, path));
  in.get<std::uint32_t>();
  const Id128 uuid = in.get_id();
  std::span<const std::byte> all = bytes;
  if (!format::take_checksum(all) || !in.ok() || in.left() != sizeof(std::uint64_t)) {
    return format::corrupt(path, "damaged: its checksum does not hold");
  }
  return uuid;
}

// Several processes may do this at once: the first one's stands.
Status create_store_file(const Layout& layout) {
  DEDUP_ASSIGN(const fs::File turn, fs::open_directory(layout.root));
  DEDUP_TRY(fs::lock_exclusively(turn));
  DEDUP_ASSIGN(const bool had_files, fs::exists(layout.files()));
  DEDUP_ASSIGN(const bool is_there, fs::exists(layout.store_file()));
  if (is_there) return Status::ok();
  if (had_files) {
    return format::corrupt(layout.root,
                           "the file STORE of this store is missing; remove the directory if its "
                           "content is not needed");
  }
  return fs::write_file_atomically(layout.store_file(), encode_store_file(Id128::random()));
}

Status make_directories(const Layout& layout) {
  for (const auto& path : {layout.paths(), layout.marks(), layout.files()}) {
    DEDUP_TRY(fs::make_directory(path).status());
  }
  return flush_names(layout);
}

}  // namespace

Result<OpenedStore> open_store_directory(const std::string& directory, bool create) {
  OpenedStore store;
  DEDUP_ASSIGN(store.layout.root, absolute(directory));
  const Result<bool> is_there = fs::exists(store.layout.root);
  if (is_there.status().code() == Code::kBadFile) return not_below_a_directory(store.layout.root);
  DEDUP_TRY(is_there.status());
  if (!*is_there) {
    if (!create) return Status(Code::kNoSuchFile, "no store at " + store.layout.root);
    DEDUP_TRY(make_root(store.layout.root));
  }
  DEDUP_TRY(check_root(store.layout));
  DEDUP_ASSIGN(const bool is_store, fs::exists(store.layout.store_file()));
  if (!is_store) {
    if (!create) return Status(Code::kNoSuchFile, "no store at " + store.layout.root);
    DEDUP_TRY(create_store_file(store.layout));
  }
  DEDUP_ASSIGN(store.uuid, read_store_file(store.layout));
  if (create) DEDUP_TRY(make_directories(store.layout));
  return store;
}

bool may_be_store(const std::string& directory) {
  const Layout layout{directory};
  for (const std::string& path : {layout.store_file(), layout.files()}) {
    const auto is_there = fs::exists(path);
    if (!is_there.is_ok() || *is_there) return true;
  }
  return false;
}

}  // namespace dedup::store
