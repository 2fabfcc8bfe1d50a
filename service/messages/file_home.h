// What is asked of a file's home (service/messages/request.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "service/messages/file_info.h"
#include "service/messages/lease.h"
#include "service/messages/request.h"
#include "store/commit_record.h"

namespace dedup::service {

// The start of an open. Waits (the reply is deferred) while another open or close of this path is
// between its Begin and its End; from the reply on, this caller has the path's turn.
struct OpenBeginReply {
  bool known = false;  // this job has the file open already: info says as what
  FileInfo info;
  std::vector<Id128> aside;  // files of that path which were set aside and are still open
  // The session in which this job wrote to the path last and the largest number that an attempt of
  // it was given, if the home still knows: a generation that is just that can be followed by others
  // of the session.
  store::LineageEntry ended;
};
struct OpenBegin {
  std::string path;
  static constexpr Opcode kOpcode = Opcode::kOpenBegin;
  using Reply = OpenBeginReply;
};
// The end of an open: gives the turn back. ok: registers `handle` and replaces what is known of the
// file by `info` (size excepted if it was known already). Not ok: changes nothing.
struct OpenEnd {
  std::string path;
  bool ok = false;
  Id128 handle;
  FileInfo info;
  bool writes = false;  // the handle may: a write-back that goes on is not wanted any more
  static constexpr Opcode kOpcode = Opcode::kOpenEnd;
  using Reply = Empty;
};
// The start of a close: removes `handle`, takes the path's turn as OpenBegin does. `last`: nobody
// in the job has the file open any more, and the caller must detach it everywhere before CloseEnd.
struct CloseBeginReply {
  bool last = false;
  bool deleted = false;  // set aside as deleted: the last one drops the file
  // A write-back of it was stopped in this job: its writers may still be at a copy.
  bool was_stopped = false;
  FileInfo info;
};
struct CloseBegin {
  Id128 identity;
  Id128 handle;
  static constexpr Opcode kOpcode = Opcode::kCloseBegin;
  using Reply = CloseBeginReply;
};
struct CloseEnd {
  Id128 identity;
  static constexpr Opcode kOpcode = Opcode::kCloseEnd;
  using Reply = Empty;
};
struct GetFile {
  Id128 identity;
  static constexpr Opcode kOpcode = Opcode::kGetFile;
  using Reply = FileInfo;
};
struct SizeReply {
  std::uint64_t size = 0;
  std::vector<Lease> leases = {};  // see each request
};
// `leases`: of blocks that end beyond that size, so that the file may be longer.
struct GetSize {
  Id128 identity;
  static constexpr Opcode kOpcode = Opcode::kGetSize;
  using Reply = SizeReply;
};
// size = max(size, end). With a lease: it begins, or ends if `ended`, and then `end` is what was
// written under it; ignored if that lease is not known any more.
struct ExtendSize {
  Id128 identity;
  std::uint64_t end = 0;
  Lease lease = {};
  bool ended = false;
  static constexpr Opcode kOpcode = Opcode::kExtendSize;
  using Reply = SizeReply;
};
// `leases`: not empty if the size was not set, since blocks that end beyond it are leased.
struct SetSize {
  Id128 identity;
  std::uint64_t size = 0;
  static constexpr Opcode kOpcode = Opcode::kSetSize;
  using Reply = SizeReply;
};
// Locks of a file within the job, granted in order of arrival (the reply is deferred). A lock whose
// connection breaks is freed. kDump is shared, kCommit excludes kDump and itself, kAtomic excludes
// itself only.
enum class LockKind : std::uint8_t { kDump = 0, kCommit = 1, kAtomic = 2 };
constexpr LockKind last_of(LockKind) {
  return LockKind::kAtomic;
}
// What the file is when the lock is granted, unless the caller knows it or the kind is kAtomic.
struct LockReply {
  bool changed = false;
  FileInfo info;  // if changed
};
struct Lock {
  Id128 identity;
  LockKind kind = LockKind::kDump;
  Id128 owner;              // random, chosen by the caller; names the lock in Unlock
  std::uint64_t known = 0;  // FileInfo::version that the caller has
  static constexpr Opcode kOpcode = Opcode::kLock;
  using Reply = LockReply;
};
// size = max(size, end), whatever became of the lock; see ExtendSize.
struct Unlock {
  Id128 identity;
  LockKind kind = LockKind::kDump;
  Id128 owner;
  std::uint64_t end = 0;
  static constexpr Opcode kOpcode = Opcode::kUnlock;
  using Reply = Empty;
};
// The shared file pointer of a handle; 0 at first.
struct SharedValue {
  std::uint64_t value = 0;
};
struct SharedAdd {
  Id128 identity;
  Id128 handle;
  std::uint64_t increment = 0;  // modulo 2^64: negative ones work
  static constexpr Opcode kOpcode = Opcode::kSharedAdd;
  using Reply = SharedValue;  // the value before
};
struct SharedSet {
  Id128 identity;
  Id128 handle;
  std::uint64_t value = 0;
  static constexpr Opcode kOpcode = Opcode::kSharedSet;
  using Reply = Empty;
};
// A commit succeeded: the new base and the table that its placements refer to. Returns what the
// file is now.
struct CommitDone {
  Id128 identity;
  Bytes record;
  std::vector<StoreRef> stores;
  bool is_cached = false;  // the plain file stays at the path
  static constexpr Opcode kOpcode = Opcode::kCommitDone;
  using Reply = FileInfo;
  bool possible() const { return stores.size() <= kNoNode; }
};
// The number of the next attempt at a generation, larger than that of the base, `after`. No two
// attempts of a session get the same one, whatever became of the first: so of those that are left
// anywhere, each was made from those before it.
struct GenerationNumber {
  std::uint64_t number = 0;
};
struct NextGeneration {
  Id128 identity;
  std::uint64_t after = 0;
  static constexpr Opcode kOpcode = Opcode::kNextGeneration;
  using Reply = GenerationNumber;
};
// The path, whose turn this caller has from OpenBegin, does not lead to this file any more: the
// next open of the path knows nothing of it, and those who have it open keep it. `deleted`: the
// last one to close it drops it. Harmless if the file is not open.
struct SetAside {
  Id128 identity;
  bool deleted = false;
  static constexpr Opcode kOpcode = Opcode::kSetAside;
  using Reply = Empty;
};

// In the turn of the last close: the file stays open in the job, as `handle`, while `writers` write
// its committed generation back. Who is last of them closes `handle`; it is closed as well, and
// they are stopped, when somebody opens the file for writing.
struct BeginWriteBack {
  Id128 identity;
  Id128 handle;
  std::vector<std::uint32_t> writers;  // numbers of at least one
  static constexpr Opcode kOpcode = Opcode::kBeginWriteBack;
  using Reply = Empty;
};
// A writer of it asks whether to go on, has an error for now, or has ended: with all of its part,
// or given up.
struct WriteBackState {
  bool is_wanted = false;  // else what was read since it was last may be another generation's
  bool is_first_trouble = false;  // this writer is the first that has one
  // All writers have ended, with this one, which is to close `handle`. Once. Then also: whether
  // some have given up, and what the first of them said.
  bool is_last = false;
  bool has_failed = false;
  bool has_no_room = false;
  std::string trouble;
};
struct TellWritten {
  Id128 identity;
  Id128 handle;
  std::uint32_t writer = 0;
  enum class Of : std::uint8_t { kProgress, kTrouble, kEnd, kGivenUp };
  friend constexpr Of last_of(Of) { return Of::kGivenUp; }
  Of of = Of::kProgress;
  bool has_no_room = false;  // with kGivenUp, as the next
  std::string trouble;
  static constexpr Opcode kOpcode = Opcode::kTellWritten;
  using Reply = WriteBackState;
};
// The file stands at another path now, and somebody opens it there: its write-back, if one has it
// open, is stopped. With the turn of the path that it had, from OpenBegin.
struct StopWriteBack {
  Id128 identity;
  static constexpr Opcode kOpcode = Opcode::kStopWriteBack;
  using Reply = Empty;
};

}  // namespace dedup::service
