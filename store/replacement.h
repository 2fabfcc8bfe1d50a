// Replacing what stands at a real path (store/real_path.h), by one of all who would.
//
// Needed of the file system: that rename() is atomic, that symlink() fails if the name is there,
// and that who has made a name in a directory finds what others renamed in it before. No locks: two
// nodes of which neither sees the other's do no harm (doc/design.md, "The real path"). No state is
// kept; one thread at a time for each Replacement.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/fs.h"
#include "store/real_path.h"

namespace dedup::store {

// A file that is to take the place of what stands at a path, with that one's permissions and, where
// allowed, owner. Until then it has a name of its own beside the path, and is removed again unless
// it was put there.
//
// What put_after() does. A claim is a symbolic link beside the path; its name says what stands at
// the path and has a number, from 0; it leads to the name of the replacement that would follow. To
// claim is to make the first link that is not there, behind those that lead to nothing; and it
// holds if what it is on still stands at the path afterwards. Who holds it renames his replacement.
// So the name of a replacement is what decides: as long as it is there its claim stands, and
// renaming it and removing it exclude each other, whoever does it and however late. Claims on what
// stands at the path are never removed; those on what stood there before mean nothing.
class Replacement {
 public:
  // `id` is to be part of its name, and must be new; its id() is another if somebody who tidied the
  // directory took that one for a leftover. `permissions`, less the umask, is what the file gets if
  // nothing is there yet.
  static Result<std::unique_ptr<Replacement>> begin(const std::string& path, const Id128& id,
                                                    mode_t permissions = 0600);
  // One that is the copy of generation `attempt`, whose placeholder stands at the path: as long as
  // that is so it stays, and others may go on with it, today or after a kill.
  static Result<std::unique_ptr<Replacement>> begin_copy(const std::string& path,
                                                         const Id128& attempt);
  // The one that another process has begun, by its id(), to write a part of it; only the other one
  // may put it.
  static Result<std::unique_ptr<Replacement>> join(const std::string& path, const Id128& id);
  // The same of a copy, which any one of them may put. kNoSuchFile if it is gone.
  static Result<std::unique_ptr<Replacement>> join_copy(const std::string& path, const Id128& id);
  // To go on with a copy that others have left: it gets another id, and is mine. kNoSuchFile if
  // somebody else has taken it, kFileInUse if somebody who joined it still has it, as far as locks
  // tell: what he writes late would be in what stands at the path by then.
  static Result<std::unique_ptr<Replacement>> take_copy(const std::string& path, const Id128& id);
  // To go on with a plain file that keep_as_copy() has kept: a copy of the same bytes, which is
  // mine and has another id. kFileInUse if somebody may have the file open, or has changed it;
  // kNoSuchFile if it is gone.
  static Result<std::unique_ptr<Replacement>> take_kept(const std::string& path, const Id128& id);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  const Id128& id() const { return id_; }
  // Whether it goes with this object, as what begin() and begin_copy() give does, or stays there.
  void set_mine(bool is_mine) { is_mine_ = is_mine; }
  // From what stands at the path now, as begin() does: it may have changed since. Nothing if
  // nothing stands there.
  Status take_permissions();
  Result<std::uint64_t> inode() const;
  Result<Stamp> stamp() const;
  Result<std::uint64_t> size() const;
  Result<std::uint64_t> block_size() const;  // see fs::Info
  Status write(std::uint64_t offset, std::span<const std::byte> data);
  // The same, but leaves holes where there are whole blocks of zeros, as a program that never wrote
  // there would.
  Status write_sparse(std::uint64_t offset, std::span<const std::byte> data);
  Status resize(std::uint64_t size);
  Status flush();
  // Waits, a twentieth of a second at most, until whoever changes the file from then on gives it
  // another time of modification. False if that is not to be had, since the file system's clock is
  // too coarse.
  Result<bool> outlast_clock() const;

  // Of one that is mine. What it has must be flushed. On success it is at the path, durably; each
  // at most once.
  //
  // If a plain file or a placeholder, `before`, still stands there; else kConflict. Of all who name
  // the same one succeeds. After another error it may be put there all the same, later, too, by
  // settle_path(); not if it could be removed.
  Status put_after(const PathState& before);
  // The same, and what programs write to the file that stands there, as to any, is not lost: it is
  // not replaced while somebody has it open for writing, which is waited for a moment; kFileInUse
  // after that, and if somebody opens it just then, by which this file is gone. Where file systems
  // do not tell, as those that several systems share: put_after().
  Status put_unless_written(const PathState& before);
  // If nothing stands there; else kFileExists.
  Status put_new();
  // Whatever stands there, and whoever is about to replace it.
  Status put();

 private:
  static Result<std::unique_ptr<Replacement>> make(const std::string& path, std::string_view kind,
                                                   Id128 id, mode_t permissions);
  static Result<std::unique_ptr<Replacement>> find(const std::string& path, std::string_view kind,
                                                   const Id128& id);
  Replacement(fs::File file, std::string path, const Id128& id, bool is_mine)
      : file_(std::move(file)), path_(std::move(path)), id_(id), is_mine_(is_mine) {}

  class Writers;

  bool stands_there() const;
  Status claim_path(const PathState& before, std::vector<std::string>& claims);
  Status take_path();
  Status put_claimed(const PathState& before, Writers* writers);

  fs::File file_;
  std::string path_;  // what a link at the path leads to
  Id128 id_;
  bool is_mine_;  // to be removed
};

// Before generation `attempt` is put where a plain file stands: gives that a second name, by which
// it stays as a copy of the generation that nobody has written to yet (Replacement::take_kept), all
// of it on its disk. Its id. kConflict if the plain file has another stamp.
Result<Id128> keep_as_copy(const std::string& path, const Stamp& plain, const Id128& attempt);
// The same of one that was kept for another generation: its new id. kNoSuchFile if somebody has
// taken it.
Result<Id128> keep_for(const std::string& path, const Id128& id, const Id128& attempt);

// Whether a copy (Replacement::begin_copy) is there.
bool has_copy(const std::string& path, const Id128& id);

void remove_copy(const std::string& path, const Id128& id);

// What stands at the path once what was claimed to follow on it was put there, as a killed job may
// have left it. For who would go on from it.
Result<PathState> settle_path(const std::string& path);

// Whether a file is a replacement or a claim, by its name.
bool is_beside_a_path(std::string_view name);

// Removes what killed jobs left in a directory: replacements, copies whose placeholder does not
// stand there any more, and claims that mean nothing any more. Replacements of jobs that are
// running stay where locks say so; otherwise their commits fail.
Status remove_leftovers(const std::string& directory);

}  // namespace dedup::store
