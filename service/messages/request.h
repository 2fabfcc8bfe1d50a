// What a rank may ask of a node's service: a request of a kind, and its reply.
//
// A service is passive: it answers from its own node's store and memory, and never waits for
// another service (Restore is done beside it). Whatever takes several nodes (opening, committing,
// reading a remote chunk) is driven by the ranks. Three roles live in each service, each with its
// requests in a header of its own:
//
//   file_home.h    one node per file, by hash of its path: who has it open, its size, its locks
//   block_home.h   one node per block of a file: the uncommitted state of that block
//   store_node.h   every node: its own store's chunks, shards, records
//
// A request is a struct with its Opcode, `kOpcode`, and its `Reply`; a reply is a Status and, if
// that is ok, that struct. base/fields.h encodes and decodes both, field by field. No request
// carries more than about kMaxMessage bytes: callers split (see each).
#pragma once

#include <cstddef>
#include <cstdint>

namespace dedup::service {

// A peer that sends more is cut off. A block of 4 MiB may consist of as many pieces of up to 53
// bytes each, and is never divided.
inline constexpr std::size_t kMaxMessage = std::size_t{256} << 20;
inline constexpr std::size_t kPayload = std::size_t{4} << 20;  // what callers aim for at most

enum class Opcode : std::uint8_t {
  // file home
  kOpenBegin = 1,
  kOpenEnd,
  kCloseBegin,
  kCloseEnd,
  kGetFile,
  kGetSize,
  kExtendSize,
  kSetSize,
  kLock,
  kUnlock,
  kSharedAdd,
  kSharedSet,
  kCommitDone,
  kSetAside,
  kNextGeneration,
  kBeginWriteBack,
  kTellWritten,
  kStopWriteBack,
  // block home
  kWriteLog = 32,
  kWriteChunks,
  kConvert,
  kTruncate,
  kResolve,
  kInstallBase,
  kSnapshot,
  kEndCommit,
  kReturnLease,
  // store node
  kFind = 64,
  kAttach,
  kDetach,
  kAdopt,
  kDrop,
  kSpace,
  kOpenSegment,
  kOpenLog,
  kLook,
  kClaim,
  kRegister,
  kRelease,
  kForgetSegment,
  kDistrust,
  kLocate,
  kGetChunks,
  kPutChunks,
  kReadLog,
  kListShard,
  kReadShard,
  kPutShard,
  kReferences,
  kWriteIndex,
  kPrepare,
  kCommit,
  kAbort,
  kCollect,
  kRecallLease,
  kRestore,
  kListShares,
  kMakeUnits,
  kListUnits,
  kJoinStripes,
  kFindPlacements,
  kPutWritten,
  kListWritten,
  kPutCached,
  kGetRecord,
  kLendSegment,
  kAskWriters,
  kAwaitWriter,
  kHoldGeneration,
  kLetGo,
};

// Whether a request may be made again when it is not known if it was carried out: it changes
// nothing, or the second time nothing more.
bool may_repeat(Opcode opcode);

// Whether a request to the service of the own process is handled when it is sent, not when it is
// waited for: what is done beside the service, what its sender should not go on without in vain,
// and what nobody waits for.
bool is_handled_at_once(Opcode opcode);

// Whether a request is answered when its turn comes, which is when other ranks' ends: these may be
// of a node that is lost.
bool waits_for_others(Opcode opcode);

struct Empty {};

}  // namespace dedup::service
