// What stands at a file's real path: the name without its prefix, on the file system that all nodes
// share, where programs look at it with POSIX.
//
// Nothing, a placeholder (store/placeholder.h), or a plain file, which then is the file. Links are
// followed. No state is kept; all functions may be called by several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/commit_record.h"
#include "store/fs.h"
#include "store/placeholder.h"

namespace dedup::store {

// Tells a plain file from another one, and from itself after a change. Times in ns since 1970.
struct Stamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::uint64_t modified = 0;
  std::uint64_t changed = 0;
  bool operator==(const Stamp&) const = default;
};

Result<Stamp> stamp_of(const fs::File& file);
// Whether two stamps are of one file that nobody has changed, where the file's device may have
// another number.
bool is_unchanged(const Stamp& a, const Stamp& b);

struct PathState {
  enum class Kind { kNoDirectory, kNothing, kPlaceholder, kPlain };
  Kind kind = Kind::kNothing;
  Stamp stamp;              // of the file, if there is one
  Placeholder placeholder;  // if it is one

  // Made by copying a placeholder, not by moving it.
  bool is_copy() const { return kind == Kind::kPlaceholder && placeholder.inode != stamp.inode; }
};

// kBadFile: a directory, or something else that holds no data; kCorrupt, kVersion: a placeholder
// that cannot be used.
Result<PathState> look_at(const std::string& path);

// Whether a placeholder, sound or not, stands at `path`: a single look for any file that has not
// its size. What cannot be looked at or read is none.
bool is_placeholder_at(const std::string& path);

// An empty plain file, with the permissions that open() gives. kFileExists if something is there.
Result<PathState> create_empty(const std::string& path);

// Whether a file at `path` could be replaced: kAccess if the directory cannot be written.
Status check_replaceable(const std::string& path);

// ---- One file system or several ----------------------------------------------------------------

// What a node sees of a directory.
struct Seen {
  Id128 kernel;           // of the running system; the same for simulated nodes
  DirectoryId directory;  // zero: it is not there
  std::uint64_t device = 0;
};

// Of the directory that `path` is in; zero if it is not there.
Result<DirectoryId> directory_id(const std::string& path);

// The same with what tells nodes apart. A failure to look is an error: taken for a file system of
// the node's own, it would have a file there go on without its placeholder.
Result<Seen> see_directory(const std::string& path);

// Whether several systems may use a directory's file system at once.
bool is_between_systems(const DirectoryId& directory);

// Whether two nodes see one directory: on one system, the same device; between systems only on a
// file system that is made for it.
bool is_shared(const Seen& a, const Seen& b);

}  // namespace dedup::store
