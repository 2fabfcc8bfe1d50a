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

#include "base/codec.h"
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

  void encode(Encoder& e) const;
  static Stamp decode(Decoder& d);
};

Result<Stamp> stamp_of(const fs::File& file);

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

// A file that is to take the place of what stands at a path, with that one's permissions and, where
// allowed, owner. It is removed again unless put() has succeeded. A name that depends on the path
// alone is used, under a lock, so that what a killed job left is used again, or removed by
// remove_leftover().
class Replacement {
 public:
  // kFileInUse if somebody else is just replacing that file. `permissions`, less the umask, is what
  // the file gets if nothing is there yet.
  static Result<std::unique_ptr<Replacement>> begin(const std::string& path,
                                                    mode_t permissions = 0600);
  // The one that another process has begun, to write a part of it; only the other one may put() it.
  static Result<std::unique_ptr<Replacement>> join(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  Result<std::uint64_t> inode() const;
  Status write(std::uint64_t offset, std::span<const std::byte> data);
  // The same, but leaves holes where there are whole blocks of zeros, as a program that never wrote
  // there would.
  Status write_sparse(std::uint64_t offset, std::span<const std::byte> data);
  Status resize(std::uint64_t size);
  Status flush();
  // Renames it and makes that durable. What it has must be flushed.
  Status put();
  // The same where nothing may be there: kFileExists if something is.
  Status put_new();

 private:
  Replacement(fs::File file, std::string path, bool is_mine)
      : file_(std::move(file)), path_(std::move(path)), is_mine_(is_mine) {}

  fs::File file_;
  std::string path_;
  bool is_mine_;  // to be removed
};

void remove_leftover(const std::string& path);

// ---- One file system or several ----------------------------------------------------------------

// What a node sees of a directory.
struct Seen {
  Id128 kernel;           // of the running system; the same for simulated nodes
  DirectoryId directory;  // zero: it is not there
  std::uint64_t device = 0;

  void encode(Encoder& e) const;
  static Seen decode(Decoder& d);
};

// Of the directory that `path` is in; zero if it is not there.
Result<DirectoryId> directory_id(const std::string& path);

// The same with what tells nodes apart. With DEDUP_TEST_PRIVATE_PATHS set, as if every node had a
// file system of its own. A failure to look is an error: taken for a file system of the node's own,
// it would have a file there go on without its placeholder.
Result<Seen> see_directory(const std::string& path);

// Whether two nodes see one directory: on one system, the same device; between systems only on a
// file system that is made for it.
bool is_shared(const Seen& a, const Seen& b);

}  // namespace dedup::store
