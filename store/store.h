// A node's store: the directory that keeps segments, logs, recipe shards and commit records.
//
// doc/format.md gives the layout and every format. In short, below the store's directory:
//
//   STORE                                   magic, version, the store's UUID
//   paths/<sha256 of the absolute path>     which identities that path had on this store
//   marks/<identity>                        a deleted file, until every store has dropped it
//   files/<identity>/lock                   flock: exclusive while a job has the file for writing
//   files/<identity>/path-<sha256>          empty: the path entries that name this file
//   files/<identity>/segments/<number>.seg  chunks; immutable once committed
//   files/<identity>/logs/<number>.log      independent writes that are not chunks yet
//   files/<identity>/generations/<attempt>/ record (renamed from record.tmp: the commit),
//                                           index, shard-<n>; flock on the directory's file `lock`,
//                                           shared while some job reads this generation
//   files/drop-<identity>                   a file being removed
//
// Directories are 0700, files 0600. Nothing taken from a file's name becomes part of a path: names
// are hashed. No path outside the store's directory is ever touched; the directory itself may be
// created (one level), and must belong to the user and be a real directory, not a symbolic link. If
// others may enter it, it is made private when it is empty or a store, and refused (kAccess) when
// it holds other things.
//
// No MPI. A Store object is used by one thread at a time; several processes of a node may have one
// each on the same directory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/piece.h"
#include "base/status.h"
#include "base/types.h"
#include "store/commit_record.h"
#include "store/index.h"

namespace dedup::store {

namespace fs {
class File;
}

class Store {
 public:
  // Opens the store at `directory`, creating it if it is missing and `create` is set. kAccess,
  // kNoSpace, kNoSuchFile (parent missing), kVersion (written by newer software), kCorrupt.
  static Result<std::unique_ptr<Store>> open(const std::string& directory, bool create);

  const std::string& directory() const;
  const Id128& uuid() const;
  Result<std::uint64_t> free_bytes() const;  // what an unprivileged user may still write

  // --- Finding files ---------------------------------------------------------------------------
  // Newest committed record (on this store) of every identity that `path` had here, and of
  // `identity` unless it is zero; two of one identity if both have the highest number. A record
  // that is damaged is reported in `damaged` as text: it may have been the newest. `deleted` is
  // every mark on this store: a mark knows no path, and the file it is about may never have been
  // here.
  struct PathEntry {
    std::vector<CommitRecord> records;
    std::vector<Id128> deleted;
    std::vector<std::string> damaged;
  };
  Result<PathEntry> find(const std::string& path, const Id128& identity = {}) const;
  // The newest committed record of every identity here, damaged ones left out (for tools and for
  // freeing space).
  Result<std::vector<CommitRecord>> list() const;
  // The paths that a file here was opened at, going by the path entries that are sound.
  Result<std::vector<std::string>> paths(const Id128& identity) const;
  // Every directory in which a file here was opened, going by the path entries that are sound.
  Result<std::set<std::string>> directories() const;
  // Identities that have a directory here, with a committed generation or without.
  Result<std::vector<Id128>> identities() const;

  // --- Files ------------------------------------------------------------------------------------
  // Makes the directories of a file and enters `path`; durable when it returns. Harmless if there.
  Status create_file(const Id128& identity, const std::string& path);
  // Enters another path of a file that is here, under which it was found; durable when it returns.
  Status add_path(const Id128& identity, const std::string& path);
  class Lock;  // see below
  // Removes everything of a file at once (segments, logs, generations, path entry), by who has it
  // locked as a whole. Returns the bytes freed.
  Result<std::uint64_t> drop_file(const Id128& identity, std::unique_ptr<Lock> whole);
  // The same where nothing has to be looked at before: takes that lock. Harmless if the file is not
  // there; kFileInUse as lock_whole(), also for the caller's own locks.
  Result<std::uint64_t> drop_file(const Id128& identity);
  // Remembers that an identity was deleted, and which stores still have to drop it; replaces an
  // older mark. With no stores left the mark goes. Durable when it returns.
  Status put_mark(const Id128& identity, const std::vector<Id128>& stores_left);
  Result<std::vector<Id128>> marks() const;
  // The stores that a mark names; kNotFound if there is no such mark.
  Result<std::vector<Id128>> mark_stores(const Id128& identity) const;
  // Takes those for which `is_done` says true out of a mark. Harmless if there is none.
  Status shorten_mark(const Id128& identity, const std::function<bool(const Id128&)>& is_done);

  std::string file_directory(const Id128& identity) const;
  std::string segment_path(const Id128& identity, std::uint64_t number) const;
  std::string log_path(const Id128& identity, std::uint64_t number) const;
  std::string generation_directory(const Id128& identity, const Id128& attempt) const;
  std::string index_path(const Id128& identity, const Id128& attempt) const;
  std::string shard_path(const Id128& identity, const Id128& attempt, std::uint32_t shard) const;
  // Segments and logs that are there, ascending, with the size of their files.
  Result<std::vector<SegmentSize>> segments(const Id128& identity) const;
  Result<std::vector<std::uint64_t>> logs(const Id128& identity) const;

  // --- Locks (kernel locks, freed when the process dies) -----------------------------------------
  // A Lock unlocks when it is destroyed.
  //
  // kFileInUse if another job has it, kNoSuchFile (file) or kNotFound (generation) if it is not
  // here or was removed meanwhile. A lock belongs to the object, not to the process: taking one a
  // second time through any Store fails while the first is held.
  Result<std::unique_ptr<Lock>> lock_for_writing(const Id128& identity);
  // Against writers and against readers of any generation: who removes a file takes it, looks
  // whether it still is to go, and drops it. `writing`: the lock for writing of who has it already;
  // it becomes part of this one, and is freed if that is not to be had.
  Result<std::unique_ptr<Lock>> lock_whole(const Id128& identity,
                                           std::unique_ptr<Lock> writing = nullptr);
  // create_file and lock_for_writing in one step, for a file that is new. kFileInUse if another job
  // has a file of this path locked for writing here; with `by_path`, kFileExists if one was
  // committed. Files in `own`, those of the caller's job, do not count. Of several callers at once
  // one wins.
  Result<std::unique_ptr<Lock>> create_for_writing(const Id128& identity, const std::string& path,
                                                   const std::vector<Id128>& own, bool by_path);
  Result<std::unique_ptr<Lock>> lock_generation(const Id128& identity, const Id128& attempt);

  // --- Generations ------------------------------------------------------------------------------
  // Newest committed generation of a file here; kNotFound if there is none, kCorrupt if a record is
  // damaged (it may be the newest), kConflict if two have the highest number.
  Result<CommitRecord> newest(const Id128& identity) const;
  // Every attempt that has a directory, sorted by what became of it. For tools.
  struct Generations {
    std::vector<CommitRecord> committed;
    std::vector<CommitRecord> prepared;  // have a record.tmp only: another store may have committed
    std::vector<Id128> begun;            // have neither, or an empty record.tmp
    std::vector<std::string> damaged;    // records that do not hold
  };
  Result<Generations> generations(const Id128& identity) const;
  // Makes an attempt's directory, into which its shards and index go. Harmless if it is there.
  Status begin_attempt(const Id128& identity, const Id128& attempt);
  // Writes `bytes` at `offset` of a shard file of an attempt; offset 0 starts the file anew.
  Status write_shard(const Id128& identity, const Id128& attempt, std::uint32_t shard,
                     std::uint64_t offset, std::span<const std::byte> bytes);
  // Phase 1, after segments, shards and index were written: writes record.tmp (a new one if there
  // is one). With `flush`, flushes it, every other file of the attempt, and the directories that
  // name them and the segments; the segments' content is flushed by their writers.
  Status prepare(const CommitRecord& record, bool flush);
  // Phase 2: renames it, flushes the directory. Harmless if already renamed; kNotFound if there is
  // nothing to rename. After an error of the flush the generation is committed all the same.
  Status commit(const Id128& identity, const Id128& attempt, bool flush);
  // For a node that lacks a committed record: create_file, prepare and commit in one. Harmless if
  // it is there.
  Status adopt(const CommitRecord& record);
  // Removes an attempt that was not committed: its shards, index and record.tmp. Harmless if it is
  // not there; kArgument if it was committed.
  Status abandon(const Id128& identity, const Id128& attempt);
  // Removes an attempt whose commit failed, or that was not committed: durably, and its record
  // before anything else. Only as long as nobody has relied on it.
  Status withdraw(const Id128& identity, const Id128& attempt);
  // Removes generations that are not in `keep` and that nobody has locked, every uncommitted
  // attempt that is not, and every segment (and, if `with_logs` is set, log) that no remaining
  // generation's index refers to. The caller holds the lock for writing, and names in
  // `open_segments` those it still appends to or that hold chunks which no index names yet. If the
  // index of a generation that remains is damaged, no segment goes. Returns the bytes freed.
  //
  // kKeep: attempts that were prepared here and on other stores on top of one in `keep` stay: a
  // killed job may have committed them on nodes that are not here to say so.
  enum class Prepared { kDrop, kKeep };
  Result<std::uint64_t> collect(const Id128& identity, const std::vector<Id128>& keep,
                                const std::vector<std::uint64_t>& open_segments, bool with_logs,
                                Prepared prepared = Prepared::kDrop);

  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

 private:
  struct Private;
  explicit Store(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

// Held as long as the object lives and the process does. May be moved between threads.
class Store::Lock {
 public:
  explicit Lock(std::vector<std::unique_ptr<fs::File>> files);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  friend class Store;
  std::vector<std::unique_ptr<fs::File>> files_;
};

}  // namespace dedup::store
