// A node's store: a chunk store behind one interface. What it has goes in and comes out by what it
// is (a file's identity, an attempt, a number), never by where it stands: segments, logs, indexes
// and shards may be in files (store/files/), in memory (test/unit/memory_store.h), in another
// directory than yesterday, or gone.
//
//   put    segments of chunks, logs of writes that are no chunks yet, a generation's shards and
//          index, its record: prepared, then committed
//   read   chunks, logs, shards, indexes; what is read again and again is kept open, a bounded
//          number of each kind
//   pin    locks, which are values: they unlock when they are destroyed
//   live   what records, indexes and marks name
//   drop   generations, segments and files that nobody needs
//   space  what is free, and what is taken
//
// doc/format.md has what the store of a node is on its disk. Directories are 0700, files 0600.
// Nothing taken from a file's name becomes part of a path: names are hashed. No path outside the
// store's directory is ever touched; the directory itself may be created (one level), and must
// belong to the user and be a real directory, not a symbolic link. If others may enter it, it is
// made private when it is empty or a store, and refused (kAccess) when it holds other things.
//
// What is not here is kNotFound, if nothing else is said. An error's text may say where on the disk
// it happened: for people, and for nothing else.
//
// No MPI. A Store object is used by one thread at a time, what it gives out as its own header says;
// several processes of a node may have an object each of the same store, and see what the others
// do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/piece.h"
#include "base/status.h"
#include "base/store_place.h"
#include "base/types.h"
#include "store/cached.h"
#include "store/commit_record.h"
#include "store/index.h"
#include "store/log.h"
#include "store/segment.h"
#include "store/shard.h"
#include "store/written.h"

namespace dedup::store {

// What is to be in a segment, which decides in which tier it begins.
enum class SegmentUse {
  kOwn,    // what the node's own ranks wrote: in the fastest tier that has room
  kCopies  // what is kept for others, or for long: in a slower one, if there is one
};

// A tier, and how full it is.
struct TierSpace {
  std::string directory;
  std::uint64_t limit = 0;  // by dedup_store; kNoLimit: none
  std::uint64_t used = 0;   // by this store
  std::uint64_t free = 0;   // that it may still take
  bool is_leaving = false;  // gets nothing any more, and goes when it is empty

  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  bool operator==(const TierSpace&) const = default;
};

class Store {
 public:
  // Opens the store at `place`, creating it if it is missing and `create` is set. kAccess,
  // kNoSpace, kNoSuchFile (parent missing), kVersion (written by newer software), kCorrupt.
  static Result<std::unique_ptr<Store>> open(const StorePlace& place, bool create);

  // As it was opened, with absolute paths.
  virtual const StorePlace& place() const = 0;
  const std::string& directory() const { return place().directory(); }
  virtual const Id128& uuid() const = 0;

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
  virtual Result<PathEntry> find(const std::string& path, const Id128& identity = {}) const = 0;
  // The newest committed record of every identity here, damaged ones left out (for tools and for
  // freeing space).
  virtual Result<std::vector<CommitRecord>> list() const = 0;
  // The paths that a file here was opened at, going by the path entries that are sound.
  virtual Result<std::vector<std::string>> paths(const Id128& identity) const = 0;
  // Every directory in which a file here was opened, going by the path entries that are sound.
  virtual Result<std::set<std::string>> directories() const = 0;
  // Identities that have a directory here, with a committed generation or without.
  virtual Result<std::vector<Id128>> identities() const = 0;

  // --- Files ------------------------------------------------------------------------------------
  // Makes the directories of a file and enters `path`. Harmless if there. Durable when a generation
  // is that this object prepares with `flush`: before there is one, nothing of the file counts.
  virtual Status create_file(const Id128& identity, const std::string& path) = 0;
  // Enters another path of a file that is here, under which it was found; durable when it returns.
  virtual Status add_path(const Id128& identity, const std::string& path) = 0;
  class Lock;  // see below
  // Removes everything of a file at once (segments, logs, generations, path entry), by who has it
  // locked as a whole. Returns the bytes freed.
  virtual Result<std::uint64_t> drop_file(const Id128& identity, std::unique_ptr<Lock> whole) = 0;
  // The same where nothing has to be looked at before: takes that lock. Harmless if the file is not
  // there; kFileInUse as lock_whole(), also for the caller's own locks.
  virtual Result<std::uint64_t> drop_file(const Id128& identity) = 0;
  // Remembers that an identity was deleted, and which stores still have to drop it; replaces an
  // older mark. With no stores left the mark goes. Durable when it returns.
  virtual Status put_mark(const Id128& identity, const std::vector<Id128>& stores_left) = 0;
  virtual Result<std::vector<Id128>> marks() const = 0;
  // The stores that a mark names; kNotFound if there is no such mark.
  virtual Result<std::vector<Id128>> mark_stores(const Id128& identity) const = 0;
  // Takes those for which `is_done` says true out of a mark. Harmless if there is none.
  virtual Status shorten_mark(const Id128& identity,
                              const std::function<bool(const Id128&)>& is_done) = 0;

  // Whether anything of a file is here.
  virtual Result<bool> has_file(const Id128& identity) const = 0;

  // --- Segments and logs ------------------------------------------------------------------------
  // Those that are there, ascending, with the bytes that they have.
  virtual Result<std::vector<SegmentSize>> segments(const Id128& identity) const = 0;
  virtual Result<std::vector<std::uint64_t>> logs(const Id128& identity) const = 0;
  // A number that no segment or log of the file has: kFileExists if one does.
  virtual Result<std::unique_ptr<SegmentWriter>> create_segment(
      const Id128& identity, std::uint64_t number, SegmentUse use = SegmentUse::kOwn) = 0;
  // Where segments may be, fastest first; others may change that for who opens the store later.
  virtual std::vector<std::string> directories_of_segments() const = 0;
  // Whether the use of a segment may make a difference.
  bool has_tiers() const { return directories_of_segments().size() > 1; }
  virtual Result<std::unique_ptr<LogWriter>> create_log(const Id128& identity,
                                                        std::uint64_t number) = 0;
  // Makes a log of this store a segment, too; once for each. kUnsupported if the store has no such
  // thing, or it has been done.
  virtual Result<std::unique_ptr<AdoptedLog>> adopt_log(const Id128& /*identity*/,
                                                        LogWriter& /*log*/) {
    return Status(Code::kUnsupported, "a log that cannot become a segment");
  }
  // To read one that some process of this node has written, or still appends to. Kept open for the
  // next who asks, unless it may move down: as long as somebody has it open it takes its space
  // where it was, which nobody counts. So it is for one piece of work, and not to be kept.
  virtual Result<std::shared_ptr<const SegmentReader>> segment(const Id128& identity,
                                                               std::uint64_t number) const = 0;
  // The same for another process of this host, which need not reach the store. kUnsupported if the
  // store does not lend.
  struct Loan {
    LentSegment segment;
    bool may_move = false;
  };
  virtual Result<Loan> lend_segment(const Id128& /*identity*/, std::uint64_t /*number*/) const {
    return Status(Code::kUnsupported, "a segment that is not in a file cannot be lent");
  }
  virtual Result<std::shared_ptr<const LogReader>> log(const Id128& identity,
                                                       std::uint64_t number) const = 0;
  // The table of leases of a log whose make_leases() has succeeded.
  virtual Result<std::shared_ptr<const LeaseTable>> leases(const Id128& identity,
                                                           std::uint64_t log) const = 0;
  // What is kept open of a file keeps the space of what was removed since.
  virtual void close_readers(const Id128& identity) const = 0;

  // Gives `identity`, which has no segments yet, what this generation of another file has: its
  // segments, under their numbers, and its recipe shards and index, as those of an attempt by the
  // same id, which is not committed, for others to begin with. From then on they are both files',
  // and stay when either goes. Their names are durable when a generation that needs them is.
  // Returns the index. kNotFound, kFileInUse as lock_generation(); after another error some may be
  // shared: all are if the index is there.
  virtual Result<std::unique_ptr<IndexReader>> share_generation(const Id128& donor,
                                                                const Id128& attempt,
                                                                const Id128& identity) = 0;

  // As segments() has it, of one.
  virtual Result<std::uint64_t> segment_size(const Id128& identity, std::uint64_t number) const = 0;
  // Makes durable what another process wrote out. Never call it again on a segment where it failed.
  virtual Status flush_segment(const Id128& identity, std::uint64_t number) = 0;
  // Harmless if it is not there.
  virtual Status remove_segment(const Id128& identity, std::uint64_t number) = 0;
  // Makes no chunk of a sound one whose content is not what it is named after, so that whoever
  // comes upon it does not take it. Durable when it returns. Twice undoes it. Of a chunk with a
  // header: one without is what it is named after if it can be read.
  virtual Status spoil_chunk(const Id128& identity, const ChunkLocation& location) = 0;

  // --- Locks (kernel locks, freed when the process dies) -----------------------------------------
  // A Lock unlocks when it is destroyed.
  //
  // kFileInUse if another job has it, kNoSuchFile (file) or kNotFound (generation) if it is not
  // here or was removed meanwhile. A lock belongs to the object, not to the process: taking one a
  // second time through any Store fails while the first is held.
  virtual Result<std::unique_ptr<Lock>> lock_for_writing(const Id128& identity) = 0;
  // Against writers and against readers of any generation: who removes a file takes it, looks
  // whether it still is to go, and drops it. `writing`: the lock for writing of who has it already;
  // it becomes part of this one, and is freed if that is not to be had.
  virtual Result<std::unique_ptr<Lock>> lock_whole(const Id128& identity,
                                                   std::unique_ptr<Lock> writing = nullptr) = 0;
  // create_file and lock_for_writing in one step, for a file that is new. kFileInUse if another job
  // has a file of this path locked for writing here; with `by_path`, kFileExists if one was
  // committed. Files in `own`, those of the caller's job, do not count. Of several callers at once
  // one wins.
  virtual Result<std::unique_ptr<Lock>> create_for_writing(const Id128& identity,
                                                           const std::string& path,
                                                           const std::vector<Id128>& own,
                                                           bool by_path) = 0;
  virtual Result<std::unique_ptr<Lock>> lock_generation(const Id128& identity,
                                                        const Id128& attempt) = 0;

  // What is locked, as far as can be told without taking a lock: that could get in the way of a job
  // that is just opening the file. One look, for all files.
  class Locked {
   public:
    virtual ~Locked() = default;
    virtual bool writing(const Id128& identity) const = 0;
    virtual bool reading(const Id128& identity, const Id128& attempt) const = 0;
  };
  virtual std::unique_ptr<const Locked> look_at_locks() const = 0;

  // --- Generations ------------------------------------------------------------------------------
  // Newest committed generation of a file here; kNotFound if there is none, kCorrupt if a record is
  // damaged (it may be the newest), kConflict if two have the highest number.
  virtual Result<CommitRecord> newest(const Id128& identity) const = 0;
  // Every attempt that has a directory, sorted by what became of it. For tools.
  struct Generations {
    std::vector<CommitRecord> committed;
    std::vector<CommitRecord> prepared;  // have a record.tmp only: another store may have committed
    std::vector<Id128> begun;            // have neither, or an empty record.tmp
    std::vector<std::string> damaged;    // records that do not hold
  };
  virtual Result<Generations> generations(const Id128& identity) const = 0;
  // Makes an attempt's directory, into which its shards and index go. Harmless if it is there.
  virtual Status begin_attempt(const Id128& identity, const Id128& attempt) = 0;
  // Whether the attempt has been begun here, or more than that.
  virtual Result<bool> has_attempt(const Id128& identity, const Id128& attempt) const = 0;
  // The index of an attempt, or of a generation; one that is there already is replaced. It begins
  // with runs of `base`, an attempt of this file, which may go afterwards.
  virtual Result<std::unique_ptr<IndexWriter>> create_index(const Id128& identity,
                                                            const Id128& attempt,
                                                            const IndexBase& base = {}) = 0;
  // kCorrupt if it is damaged, or another attempt's.
  virtual Result<std::unique_ptr<IndexReader>> index(const Id128& identity,
                                                     const Id128& attempt) const = 0;
  // kCorrupt if it is not this shard of this attempt, or its digest is not `digest`. Kept open.
  virtual Result<std::shared_ptr<const ShardReader>> shard(const Id128& identity,
                                                           const Id128& attempt,
                                                           std::uint32_t number,
                                                           const Digest& digest) const = 0;
  // A shard of an attempt; one that is there already is replaced. `base`: a generation whose blocks
  // of that shard may stay; no error if it is not here, or damaged (ShardWriter::can_carry). It may
  // be removed when the shard is finished.
  virtual Result<std::unique_ptr<ShardWriter>> create_shard(const Id128& identity,
                                                            const Id128& attempt,
                                                            std::uint32_t number,
                                                            const ShardBase& base) = 0;
  // Phase 1, after segments, shards and index were written: writes record.tmp (a new one if there
  // is one). With `flush`, flushes it, every other file of the attempt, and the directories that
  // name them and the segments; the segments' content is flushed by their writers.
  virtual Status prepare(const CommitRecord& record, bool flush) = 0;
  // Phase 2: renames it, flushes the directory. Harmless if already renamed; kNotFound if there is
  // nothing to rename. After an error of the flush the generation is committed all the same.
  virtual Status commit(const Id128& identity, const Id128& attempt, bool flush) = 0;
  // For a node that lacks a committed record: create_file, prepare and commit in one. Harmless if
  // it is there.
  virtual Status adopt(const CommitRecord& record) = 0;
  // Removes an attempt that was not committed: its shards, index and record.tmp. Harmless if it is
  // not there; kArgument if it was committed.
  virtual Status abandon(const Id128& identity, const Id128& attempt) = 0;
  // Removes an attempt whose commit failed, or that was not committed: durably, and its record
  // before anything else. Only as long as nobody has relied on it.
  virtual Status withdraw(const Id128& identity, const Id128& attempt) = 0;
  // Removes generations that are not in `keep` and that nobody has locked, every uncommitted
  // attempt that is not, and every segment (and, if `with_logs` is set, log) that no remaining
  // generation's index refers to. The caller holds the lock for writing, and names in
  // `open_segments` those it still appends to or that hold chunks which no index names yet. If the
  // index of a generation that remains is damaged, no segment goes. Returns the bytes freed.
  //
  // kKeep: attempts that were prepared here and on other stores on top of one in `keep` stay: a
  // killed job may have committed them on nodes that are not here to say so.
  enum class Prepared { kDrop, kKeep };
  virtual Result<std::uint64_t> collect(const Id128& identity, const std::vector<Id128>& keep,
                                        const std::vector<std::uint64_t>& open_segments,
                                        bool with_logs, Prepared prepared = Prepared::kDrop) = 0;

  // --- Write-back -------------------------------------------------------------------------------
  // Remembers what a writer has written back of a generation that is committed here, in place of
  // what this store knew of that writer's; durable when it returns. Goes with the generation.
  virtual Status put_written(const Id128& identity, const Id128& attempt,
                             const WrittenPart& part) = 0;
  // All of a generation's, those that are damaged left out. None if it is not here.
  virtual Result<std::vector<WrittenPart>> written(const Id128& identity,
                                                   const Id128& attempt) const = 0;

  // Remembers that a generation that is committed here is cached, and forgets what was written back
  // of it; durable when it returns. Goes with the generation.
  virtual Status put_cached(const Id128& identity, const CachedNote& note) = 0;
  // None if it is not, or the note is damaged.
  virtual Result<std::optional<CachedNote>> cached(const Id128& identity,
                                                   const Id128& attempt) const = 0;

  // --- Space ------------------------------------------------------------------------------------
  // What an unprivileged user may still write, in all tiers together.
  virtual Result<std::uint64_t> free_bytes() const = 0;
  virtual Result<std::uint64_t> file_system_bytes() const = 0;  // that the store is on
  // Fastest first; one if there is nothing but the store's own directory.
  virtual Result<std::vector<TierSpace>> tiers() const = 0;
  // Whether some tier but the last has more than it should, so that segments are to move down.
  virtual bool is_overfull() const = 0;
  // Moves whole segments down that a committed generation names, the coldest first. Each has one
  // whole copy at any moment, and readers notice nothing.
  class Mover {
   public:
    // Why a segment stays in a tier that is leaving.
    enum class Reason : std::uint8_t {
      kNotCommitted,  // no generation names it: a job writes it, or has left it
      kOpen,          // a job still has it open to write to
      kOtherBelow,    // below is another one with its number, of which one is out of date
      kNoRoom         // no slower tier has room for it
    };
    struct Stays {
      std::string directory;  // the tier's
      Reason reason = Reason::kNotCommitted;
      std::uint64_t segments = 0;
      std::uint64_t bytes = 0;
    };
    struct Moved {
      bool done = false;
      std::uint64_t bytes = 0;  // copied
    };
    virtual ~Mover() = default;
    // A bounded part of it; called until it is done. After an error whoever comes next goes on.
    virtual Result<Moved> step() = 0;
    // Of the steps so far.
    virtual std::vector<Stays> stays() const = 0;
  };
  // The store must outlive it. kFileInUse if somebody else is just doing it.
  virtual Result<std::unique_ptr<Mover>> move_down() = 0;
  // What is taken, by all of the store and by one file, whatever it is for.
  virtual Result<std::uint64_t> taken_bytes() const = 0;
  virtual Result<std::uint64_t> taken_bytes(const Id128& identity) const = 0;
  virtual Result<std::uint64_t> log_bytes(const Id128& identity, std::uint64_t number) const = 0;

  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

 protected:
  Store() = default;
};

class Store::Lock {
 public:
  virtual ~Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 protected:
  Lock() = default;
};

// How stores are opened: Store::open, where a test has nothing else.
using StoreOpener =
    std::function<Result<std::unique_ptr<Store>>(const StorePlace& place, bool create)>;

}  // namespace dedup::store
