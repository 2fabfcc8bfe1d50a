// What a rank may ask of a node's service: every request and its reply.
//
// A service is passive: it answers from its own node's store and memory, and never asks another
// service. Whatever takes several nodes (opening, committing, reading a remote chunk) is driven by
// the ranks. Three roles live in each service:
//
//   file home    one node per file, by hash of its path: who has it open, its size, its locks
//   block home   one node per block of a file: the uncommitted state of that block
//   store node   every node: its own store's chunks, shards, records
//
// A request is encoded by encode() and decoded by decode(); decode() reads untrusted bytes and
// fails the Decoder on anything impossible. A reply is a Status and, if that is ok, the Reply's
// fields. No request carries more than about kMaxMessage bytes: callers split (see each).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/piece.h"
#include "base/types.h"
#include "service/chunks_reply.h"
#include "store/commit_record.h"
#include "store/real_path.h"
#include "store/segment.h"
#include "store/shard.h"

namespace dedup::service {

// A peer that sends more is cut off. A block of 4 MiB may consist of as many pieces of up to 53
// bytes each, and is never divided.
inline constexpr std::size_t kMaxMessage = std::size_t{256} << 20;
inline constexpr std::size_t kPayload = std::size_t{4} << 20;  // what callers aim for at most

// Which node is a file's home, and a block's. The same on every rank.
NodeIndex file_home(const std::string& path, NodeIndex nodes);
NodeIndex block_home(const Id128& identity, std::uint64_t block, NodeIndex nodes);

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
  kHeld,
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
  kAlike,
  kRecallLease,
};

// Whether a request may be made again when it is not known if it was carried out: it changes
// nothing, or the second time nothing more.
bool may_repeat(Opcode opcode);

struct Empty {
  void encode(Encoder&) const {}
  static Empty decode(Decoder&) { return {}; }
};

// A place where chunks of a file are, or were: entry i < job nodes is node i's store, later entries
// are stores of the committed generation that no node of this job has.
struct StoreRef {
  Id128 uuid;
  std::string node;  // name, for messages
};

// What every rank that has a file open knows of it.
struct FileInfo {
  Id128 identity;
  std::string path;
  std::string store_template;    // hint dedup_store, %n not yet replaced
  Bytes record;                  // CommitRecord of the committed base; empty: never committed
  std::vector<StoreRef> stores;  // what NodeIndex in every NodeSet of this file refers to
  std::uint64_t size = 0;
  bool writable = false;  // the job holds the stores' locks for writing
  Id128 session;          // of this job's writing (LineageEntry); zero if not writable
  // What stands at the real path. kNone: the nodes share no file system there, and the stores find
  // the file by its path. kPlain: the file's committed content, until the first commit.
  enum class RealPath : std::uint8_t { kNone, kPlaceholder, kPlain };
  RealPath real_path = RealPath::kNone;
  store::Stamp plain;       // kPlain: of that file when it was opened
  bool write_back = false;  // some handle that may write wants it when the last one is closed
  bool deleted = false;     // MPI_File_delete was called since

  void encode(Encoder& e) const;
  static FileInfo decode(Decoder& d);
};

#define DEDUP_MESSAGE(opcode, reply)                \
  static constexpr Opcode kOpcode = Opcode::opcode; \
  using Reply = reply;                              \
  void encode(Encoder& e) const

// ---- File home --------------------------------------------------------------------------------

// The start of an open. Waits (the reply is deferred) while another open or close of this path is
// between its Begin and its End; from the reply on, this caller has the path's turn.
struct OpenBeginReply {
  bool known = false;  // this job has the file open already: info says as what
  FileInfo info;
  std::vector<Id128> aside;  // files of that path which were set aside and are still open
  void encode(Encoder& e) const;
  static OpenBeginReply decode(Decoder& d);
};
struct OpenBegin {
  std::string path;
  DEDUP_MESSAGE(kOpenBegin, OpenBeginReply);
  static OpenBegin decode(Decoder& d);
};
// The end of an open: gives the turn back. ok: registers `handle` and replaces what is known of the
// file by `info` (size excepted if it was known already). Not ok: changes nothing.
struct OpenEnd {
  std::string path;
  bool ok = false;
  Id128 handle;
  FileInfo info;
  DEDUP_MESSAGE(kOpenEnd, Empty);
  static OpenEnd decode(Decoder& d);
};
// The start of a close: removes `handle`, takes the path's turn as OpenBegin does. `last`: nobody
// in the job has the file open any more, and the caller must detach it everywhere before CloseEnd.
struct CloseBeginReply {
  bool last = false;
  bool deleted = false;  // set aside as deleted: the last one drops the file
  FileInfo info;
  void encode(Encoder& e) const;
  static CloseBeginReply decode(Decoder& d);
};
struct CloseBegin {
  Id128 identity;
  Id128 handle;
  DEDUP_MESSAGE(kCloseBegin, CloseBeginReply);
  static CloseBegin decode(Decoder& d);
};
struct CloseEnd {
  Id128 identity;
  DEDUP_MESSAGE(kCloseEnd, Empty);
  static CloseEnd decode(Decoder& d);
};
struct GetFile {
  Id128 identity;
  DEDUP_MESSAGE(kGetFile, FileInfo);
  static GetFile decode(Decoder& d);
};
// Leave to write to a block without telling anybody; see below, under "Leases". One at a time for a
// block.
struct Lease {
  std::uint64_t block = 0;
  NodeIndex node = kNoNode;  // whose log it is …
  std::uint64_t log = 0;     // … of that number
  std::uint32_t slot = 0;    // of the log's table (store/lease_table.h)
  std::uint64_t serial = 0;  // 0: no lease

  auto operator<=>(const Lease&) const = default;  // by block first
};
struct SizeReply {
  std::uint64_t size = 0;
  std::vector<Lease> leases = {};  // see below
  void encode(Encoder& e) const;
  static SizeReply decode(Decoder& d);
};
// `leases`: of blocks that end beyond that size, so that the file may be longer.
struct GetSize {
  Id128 identity;
  DEDUP_MESSAGE(kGetSize, SizeReply);
  static GetSize decode(Decoder& d);
};
// size = max(size, end). With a lease: it begins, or ends if `ended`, and then `end` is what was
// written under it; ignored if that lease is not known any more.
struct ExtendSize {
  Id128 identity;
  std::uint64_t end = 0;
  Lease lease = {};
  bool ended = false;
  DEDUP_MESSAGE(kExtendSize, SizeReply);
  static ExtendSize decode(Decoder& d);
};
// `leases`: not empty if the size was not set, since blocks that end beyond it are leased.
struct SetSize {
  Id128 identity;
  std::uint64_t size = 0;
  DEDUP_MESSAGE(kSetSize, SizeReply);
  static SetSize decode(Decoder& d);
};
// Locks of a file within the job, granted in order of arrival (the reply is deferred). A lock whose
// connection breaks is freed. kDump is shared, kCommit excludes kDump and itself, kAtomic excludes
// itself only.
enum class LockKind : std::uint8_t { kDump = 0, kCommit = 1, kAtomic = 2 };
struct Lock {
  Id128 identity;
  LockKind kind = LockKind::kDump;
  Id128 owner;  // random, chosen by the caller; names the lock in Unlock
  DEDUP_MESSAGE(kLock, Empty);
  static Lock decode(Decoder& d);
};
struct Unlock {
  Id128 identity;
  LockKind kind = LockKind::kDump;
  Id128 owner;
  DEDUP_MESSAGE(kUnlock, Empty);
  static Unlock decode(Decoder& d);
};
// The shared file pointer of a handle; 0 at first.
struct SharedValue {
  std::uint64_t value = 0;
  void encode(Encoder& e) const;
  static SharedValue decode(Decoder& d);
};
struct SharedAdd {
  Id128 identity;
  Id128 handle;
  std::uint64_t increment = 0;             // modulo 2^64: negative ones work
  DEDUP_MESSAGE(kSharedAdd, SharedValue);  // the value before
  static SharedAdd decode(Decoder& d);
};
struct SharedSet {
  Id128 identity;
  Id128 handle;
  std::uint64_t value = 0;
  DEDUP_MESSAGE(kSharedSet, Empty);
  static SharedSet decode(Decoder& d);
};
// A commit succeeded: the new base and the table its NodeSets refer to.
struct CommitDone {
  Id128 identity;
  Bytes record;
  std::vector<StoreRef> stores;
  DEDUP_MESSAGE(kCommitDone, Empty);
  static CommitDone decode(Decoder& d);
};
// The number of the next attempt at a generation, larger than that of the base, `after`. No two
// attempts of a session get the same one, whatever became of the first: so of those that are left
// anywhere, each was made from those before it.
struct GenerationNumber {
  std::uint64_t number = 0;
  void encode(Encoder& e) const;
  static GenerationNumber decode(Decoder& d);
};
struct NextGeneration {
  Id128 identity;
  std::uint64_t after = 0;
  DEDUP_MESSAGE(kNextGeneration, GenerationNumber);
  static NextGeneration decode(Decoder& d);
};
// The path, whose turn this caller has from OpenBegin, does not lead to this file any more: the
// next open of the path knows nothing of it, and those who have it open keep it. `deleted`: the
// last one to close it drops it. Harmless if the file is not open.
struct SetAside {
  Id128 identity;
  bool deleted = false;
  DEDUP_MESSAGE(kSetAside, Empty);
  static SetAside decode(Decoder& d);
};

// ---- Block home -------------------------------------------------------------------------------
//
// A block's uncommitted state has layers; what is above hides what is below:
//   log pieces   newest writes that are still in some rank's log
//   fresh        chunks and zeros dumped since the last snapshot
//   committing   fresh pieces of the snapshot that a commit is working on
//   base         the committed generation's block, installed by a rank when first needed, or
//                laid below the others by who reads much of it; only bytes below the smallest size
//                the file had since (base limit) count
// Updates take effect in the order in which they arrive: later wins. WriteChunks erases log pieces
// in its ranges; Convert replaces log pieces only where they still are the newest.

// Leases. A rank that goes on writing small pieces to one block asks for a lease with WriteLog.
// From then on the home lets nobody else read or write the block, and the rank notes its writes in
// its log's table, where its node's service sees them. Whoever meets the lease has it recalled:
// takes the writes from that service (RecallLease), tells the file home how long they made the file
// (ExtendSize), gives them to the block home (ReturnLease), and asks again. The rank itself does
// the same, but for the first step, when it commits or finds its lease recalled; the one who is
// late changes nothing. The file home knows the leases too, since they make the file longer without
// telling it.

// `leases`: not empty if nothing was done, since they stand in the way.
struct LeasesReply {
  std::vector<Lease> leases;
  void encode(Encoder& e) const;
  static LeasesReply decode(Decoder& d);
};
struct WriteLogReply {
  std::vector<Lease> leases;  // as in LeasesReply
  bool granted = false;       // the lease that was asked for
  void encode(Encoder& e) const;
  static WriteLogReply decode(Decoder& d);
};
struct LogUpdate {
  std::uint64_t block = 0;
  LogPiece piece;
};
struct WriteLog {
  Id128 identity;
  std::vector<LogUpdate> updates;
  Lease wanted = {};  // on a block of `updates`; serial 0: none
  DEDUP_MESSAGE(kWriteLog, WriteLogReply);
  static WriteLog decode(Decoder& d);
};
struct BlockUpdate {
  std::uint64_t block = 0;
  Block content;
};
struct WriteChunks {
  Id128 identity;
  std::vector<BlockUpdate> updates;
  bool below =
      false;  // what was written before it stays: it hides only what the file was opened as
  DEDUP_MESSAGE(kWriteChunks, LeasesReply);
  static WriteChunks decode(Decoder& d);
};
// Piece i of `content` holds the same bytes as [log_offsets[i], + length) of the log: wherever log
// pieces of that very log and position are the newest, the piece goes to `fresh` in their place.
struct ConvertUpdate {
  std::uint64_t block = 0;
  Block content;
  std::vector<std::uint64_t> log_offsets;
};
struct Convert {
  Id128 identity;
  NodeIndex node = kNoNode;
  std::uint64_t log = 0;
  std::vector<ConvertUpdate> updates;
  DEDUP_MESSAGE(kConvert, Empty);
  static Convert decode(Decoder& d);
};
// The file shrinks to `size`: drops everything beyond it in this home's blocks and lowers the base
// limit.
struct Truncate {
  Id128 identity;
  std::uint64_t size = 0;
  DEDUP_MESSAGE(kTruncate, LeasesReply);
  static Truncate decode(Decoder& d);
};
// From so many bytes on, whoever asks for a range reads its base block without the home: that is
// less than to bring the block there and to get most of it back.
inline constexpr std::uint64_t kOwnBase = kBlockSpan / 2;

// What the ranges (each within one block of this home) consist of.
struct ResolvedRange {
  Block content;              // pieces within the range, `begin` relative to the block
  std::vector<LogPiece> log;  // likewise, disjoint from `content`; uncovered bytes are zeros …
  bool base_needed = false;   // … unless this is set: install the block's base and ask again
  // Of a long range: the uncovered bytes below it are the base's. Relative to the block.
  std::uint32_t base_end = 0;
  // Of a file without a committed base: what is uncovered below it is a plain file's, if the file
  // was opened as one. Relative to the block.
  std::uint32_t plain_end = 0;
};
struct ResolveReply {
  Id128 base;  // attempt id of the generation that base blocks must come from; zero: there is none
  std::vector<ResolvedRange> ranges;
  std::vector<Lease> leases;  // not empty: `ranges` may lack what was written under them
  void encode(Encoder& e) const;
  static ResolveReply decode(Decoder& d);
};
struct Resolve {
  Id128 identity;
  std::vector<ByteRange> ranges;  // file offsets
  DEDUP_MESSAGE(kResolve, ResolveReply);
  static Resolve decode(Decoder& d);
};
// Where in FileInfo::stores each store of a record is, in the record's order.
struct StoreTable {
  std::vector<NodeIndex> nodes;
};
// Base blocks of generation `attempt`, as its shards have them. Ignored if the base is another
// generation by now, or is there; kCorrupt if a block's checksum does not hold. A home keeps a
// bounded number of them.
struct InstallBase {
  Id128 identity;
  Id128 attempt;
  StoreTable stores;
  std::vector<store::EncodedBlock> blocks;
  DEDUP_MESSAGE(kInstallBase, Empty);
  static InstallBase decode(Decoder& d);
};
// First call of an attempt (cursor 0): moves `fresh` to `committing`. Returns the blocks that
// `committing` has from block number `cursor` on, about kPayload bytes of them, in ascending order.
struct SnapshotReply {
  std::vector<BlockUpdate> blocks;
  bool done = false;             // nothing after these
  std::uint64_t cursor = 0;      // for the next call
  std::uint64_t base_limit = 0;  // bytes of the base at and beyond this offset do not count
  void encode(Encoder& e) const;
  static SnapshotReply decode(Decoder& d);
};
struct Snapshot {
  Id128 identity;
  Id128 attempt;
  std::uint64_t cursor = 0;
  DEDUP_MESSAGE(kSnapshot, SnapshotReply);
  static Snapshot decode(Decoder& d);
};
// Committed: `committing` is dropped, the base is `attempt` and not installed, the base limit is as
// if never lowered (unless a Truncate came after the snapshot). Else: `committing` goes back under
// `fresh`.
struct EndCommit {
  Id128 identity;
  Id128 attempt;
  bool committed = false;
  DEDUP_MESSAGE(kEndCommit, Empty);
  static EndCommit decode(Decoder& d);
};

// The lease ends, and the writes that were made under it are the block's newest. Ignored if the
// block has another lease, or none. `recalled`: somebody wanted the block. A block for which that
// happens often gets no leases any more while it has uncommitted writes.
struct ReturnLease {
  Id128 identity;
  Lease lease;
  std::vector<LogPiece> pieces;  // in the order in which they were written
  bool recalled = false;
  DEDUP_MESSAGE(kReturnLease, Empty);
  static ReturnLease decode(Decoder& d);
};

// ---- Store node -------------------------------------------------------------------------------

// Which generations of `path` and of `identity` (zero: none) this node's store has. Creates the
// store if there is none.
struct FindReply {
  StoreRef store;
  store::Seen seen;  // the directory that the path is in
  std::uint64_t free_bytes = 0;
  std::vector<Bytes> records;  // encoded CommitRecords: newest of each identity
  std::vector<Id128> deleted;  // identities that were deleted
  std::vector<std::string> damaged;
  void encode(Encoder& e) const;
  static FindReply decode(Decoder& d);
};
struct Find {
  std::string path;
  Id128 identity;
  std::string store_template;
  DEDUP_MESSAGE(kFind, FindReply);
  static Find decode(Decoder& d);
};
// This job begins to use a file on this node (all later requests need it): takes the store's locks
// (for writing: kFileInUse if another job has it; for reading: shared on generation `base`, if the
// store has it and nobody is just removing it for a newer one), makes the file's directories if
// `create`, sets the block homes' base. Again with write = true: upgrades. With write: also removes
// what earlier jobs left uncommitted.
struct AttachReply {
  Id128 newest;  // attempt of the newest generation here, once the lock was tried; zero if none
  bool overtaken = false;  // to be created, but another job has committed a file of this path
  void encode(Encoder& e) const;
  static AttachReply decode(Decoder& d);
};
struct Attach {
  Id128 identity;
  std::string path;
  std::string store_template;
  Id128 base;  // attempt; zero: none
  bool write = false;
  bool create = false;
  bool by_path = false;  // the stores find the file by its path: there must not be another one
  DEDUP_MESSAGE(kAttach, AttachReply);
  static Attach decode(Decoder& d);
};
// Ends it: uncommitted state, logs and attempts are dropped, locks released. `drop`: the whole file
// goes, and a mark stays that names `stores_left` (stores of the record that were not there).
struct Detach {
  Id128 identity;
  bool drop = false;
  std::vector<Id128> stores_left;
  DEDUP_MESSAGE(kDetach, Empty);
  static Detach decode(Decoder& d);
};
// Makes a generation that is committed elsewhere committed here too.
struct Adopt {
  Id128 identity;
  Bytes record;
  DEDUP_MESSAGE(kAdopt, Empty);
  static Adopt decode(Decoder& d);
};
// Deletes a file that this job does not have open.
struct Drop {
  std::string store_template;
  Id128 identity;
  std::vector<Id128> stores_left;
  DEDUP_MESSAGE(kDrop, Empty);
  static Drop decode(Decoder& d);
};
// What this node's store has room for. If that is less than `needed`, files that no name leads to
// any more are dropped first (store/unnamed.h), once for each generation of the file.
struct SpaceReply {
  std::uint64_t free_bytes = 0;
  void encode(Encoder& e) const;
  static SpaceReply decode(Decoder& d);
};
struct Space {
  Id128 identity;
  std::uint64_t needed = 0;  // bytes
  DEDUP_MESSAGE(kSpace, SpaceReply);
  static Space decode(Decoder& d);
};
// A new number for a segment or log that the calling rank (on this node) will create in the store's
// directory. The service keeps the file from being collected until the next commit or detach.
struct NumberReply {
  std::uint64_t number = 0;
  std::string path;
  void encode(Encoder& e) const;
  static NumberReply decode(Decoder& d);
};
struct OpenSegment {
  Id128 identity;
  DEDUP_MESSAGE(kOpenSegment, NumberReply);
  static OpenSegment decode(Decoder& d);
};
struct OpenLog {
  Id128 identity;
  DEDUP_MESSAGE(kOpenLog, NumberReply);
  static OpenLog decode(Decoder& d);
};
// For each fingerprint: does this node hold it (committed or registered), and which nodes are known
// here to hold it (empty: only that this one does).
struct HeldReply {
  std::vector<std::uint8_t> held;  // one per fingerprint
  std::vector<NodeSet> holders;    // one per fingerprint that is held, in order
  void encode(Encoder& e) const;
  static HeldReply decode(Decoder& d);
};
struct Held {
  Id128 identity;
  std::vector<Fingerprint> fingerprints;
  DEDUP_MESSAGE(kHeld, HeldReply);
  static Held decode(Decoder& d);
};
// For each fast hash: is a single chunk with it in this node's store (committed or registered)?
struct AlikeReply {
  bool strong = false;              // chunks with strong fingerprints are committed here, too
  std::vector<std::uint8_t> found;  // one per hash; empty: none
  std::vector<Fingerprint> names;   // one per hash that was found, in order
  void encode(Encoder& e) const;
  static AlikeReply decode(Decoder& d);
};
struct Alike {
  Id128 identity;
  std::vector<FastHash> hashes;
  DEDUP_MESSAGE(kAlike, AlikeReply);
  static Alike decode(Decoder& d);
};
// For each fingerprint: 1 if the caller is to store it, 0 if this node has it or somebody else is
// storing it. What is claimed must be registered, or released after a failure.
struct ClaimReply {
  std::vector<std::uint8_t> granted;
  void encode(Encoder& e) const;
  static ClaimReply decode(Decoder& d);
};
struct Claim {
  Id128 identity;
  std::vector<Fingerprint> fingerprints;
  DEDUP_MESSAGE(kClaim, ClaimReply);
  static Claim decode(Decoder& d);
};
// The caller has appended these chunks to a segment of this node's store and written them out.
struct Registration {
  Fingerprint fingerprint;
  store::ChunkLocation location;
  std::uint32_t holders = 0;  // index into Register::holder_sets
};
struct Register {
  Id128 identity;
  std::vector<NodeSet> holder_sets;
  std::vector<Registration> chunks;
  DEDUP_MESSAGE(kRegister, Empty);
  static Register decode(Decoder& d);
};
struct Release {
  Id128 identity;
  std::vector<Fingerprint> fingerprints;
  DEDUP_MESSAGE(kRelease, Empty);
  static Release decode(Decoder& d);
};
// Chunks that were registered in this segment are not here after all: it could not be flushed.
struct ForgetSegment {
  Id128 identity;
  std::uint64_t number = 0;
  DEDUP_MESSAGE(kForgetSegment, Empty);
  static ForgetSegment decode(Decoder& d);
};
// What this node's store has of these chunks in the committed generation is bad, as a rank that
// read it found: it counts as not here, so that the next commit stores them again.
struct Distrust {
  Id128 identity;
  std::vector<Fingerprint> fingerprints;
  DEDUP_MESSAGE(kDistrust, Empty);
  static Distrust decode(Decoder& d);
};
// Where chunks are in this node's store; length 0: not here.
struct LocateReply {
  std::vector<store::ChunkLocation> locations;
  void encode(Encoder& e) const;
  static LocateReply decode(Decoder& d);
};
struct Locate {
  Id128 identity;
  std::vector<Fingerprint> fingerprints;
  DEDUP_MESSAGE(kLocate, LocateReply);
  static Locate decode(Decoder& d);
};
// Chunks' bytes, checked by their checksums; one of another length counts as missing, unless it has
// no header and its beginning has the same fast hash: who is not sure of a length locates first.
struct GetChunks {
  Id128 identity;
  std::vector<NamedChunk> chunks;  // at most kPayload bytes of them
  DEDUP_MESSAGE(kGetChunks, ChunksReply);
  static GetChunks decode(Decoder& d);
};
// The service stores these chunks (those it does not hold) in a segment of its own, if none was
// damaged since it was sealed (kCorrupt).
struct PutChunk {
  Fingerprint fingerprint;
  std::uint32_t holders = 0;  // index into PutChunks::holder_sets
  std::uint64_t seal = 0;     // its checksum, without a salt
  Bytes data;

  static PutChunk sealed(const Fingerprint& fingerprint, std::uint32_t holders, Bytes data) {
    const std::uint64_t seal = store::seal_of({fingerprint, data}).checksum;
    return {fingerprint, holders, seal, std::move(data)};
  }
};
struct PutReply {
  std::uint32_t stored = 0;  // that it did not hold
  void encode(Encoder& e) const;
  static PutReply decode(Decoder& d);
};
struct PutChunks {
  Id128 identity;
  std::vector<NodeSet> holder_sets;
  std::vector<PutChunk> chunks;
  DEDUP_MESSAGE(kPutChunks, PutReply);
  static PutChunks decode(Decoder& d);
};
// `checksum`: XXH3 of the bytes, made where they were read.
struct BytesReply {
  Bytes bytes;
  std::uint64_t checksum = 0;
  void encode(Encoder& e) const;
  static BytesReply decode(Decoder& d);
};
struct ReadLog {
  Id128 identity;
  std::uint64_t log = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  DEDUP_MESSAGE(kReadLog, BytesReply);
  static ReadLog decode(Decoder& d);
};
// Ends a lease of a log of this node: what was written under it. Not `here`: the rank itself has
// ended it, and told the homes.
struct RecallReply {
  bool here = false;
  std::vector<LogPiece> pieces;  // in the order in which they were written
  void encode(Encoder& e) const;
  static RecallReply decode(Decoder& d);
};
struct RecallLease {
  Id128 identity;
  Lease lease;
  DEDUP_MESSAGE(kRecallLease, RecallReply);
  static RecallLease decode(Decoder& d);
};
// Block numbers that a committed shard on this node has, from `cursor` on; at most kPayload bytes.
struct ListShardReply {
  std::vector<std::uint64_t> blocks;
  bool done = false;
  void encode(Encoder& e) const;
  static ListShardReply decode(Decoder& d);
};
struct ListShard {
  Id128 identity;
  Id128 attempt;
  std::uint32_t shard = 0;
  store::Digest digest{};
  std::uint64_t cursor = 0;  // first block number wanted
  DEDUP_MESSAGE(kListShard, ListShardReply);
  static ListShard decode(Decoder& d);
};
// Blocks of a committed shard on this node, with their checksums from its table.
struct ReadShardReply {
  std::vector<store::EncodedBlock> blocks;
  void encode(Encoder& e) const;
  static ReadShardReply decode(Decoder& d);
};
struct ReadShard {
  Id128 identity;
  Id128 attempt;
  std::uint32_t shard = 0;
  store::Digest digest{};
  std::vector<std::uint64_t> blocks;  // at most kPayload / 64 KiB of them
  DEDUP_MESSAGE(kReadShard, ReadShardReply);
  static ReadShard decode(Decoder& d);
};
// Appends to shard `shard` of the attempt being made; offset 0 creates it anew.
struct PutShard {
  Id128 identity;
  Id128 attempt;
  std::uint32_t shard = 0;
  std::uint64_t offset = 0;
  Bytes bytes;
  DEDUP_MESSAGE(kPutShard, Empty);
  static PutShard decode(Decoder& d);
};
// The attempt's recipe refers to these chunks as held by this node. Reply: 1 for each that this
// node does not hold after all.
struct ReferencesReply {
  std::vector<std::uint8_t> missing;
  void encode(Encoder& e) const;
  static ReferencesReply decode(Decoder& d);
};
struct References {
  Id128 identity;
  Id128 attempt;
  std::vector<Fingerprint> fingerprints;
  DEDUP_MESSAGE(kReferences, ReferencesReply);
  static References decode(Decoder& d);
};
// All chunks are referred to: moves live ones out of segments that are less than half live (with
// `flush`, to the disk), and writes the index of the chunks referred to.
struct WriteIndexReply {
  std::uint64_t chunks = 0;  // that the generation has on this node
  std::uint64_t bytes = 0;
  void encode(Encoder& e) const;
  static WriteIndexReply decode(Decoder& d);
};
struct WriteIndex {
  Id128 identity;
  Id128 attempt;
  bool flush = true;
  DEDUP_MESSAGE(kWriteIndex, WriteIndexReply);
  static WriteIndex decode(Decoder& d);
};
// Phase 1, after WriteIndex: writes record.tmp; with `flush`, all of the attempt's files are on
// disk when the reply comes, and the segments it needs (the ranks have flushed those they wrote).
struct Prepare {
  Id128 identity;
  Bytes record;
  bool flush = true;
  DEDUP_MESSAGE(kPrepare, Empty);
  static Prepare decode(Decoder& d);
};
// Phase 2.
struct Commit {
  Id128 identity;
  Id128 attempt;
  bool flush = true;
  DEDUP_MESSAGE(kCommit, Empty);
  static Commit decode(Decoder& d);
};
struct Abort {
  Id128 identity;
  Id128 attempt;
  DEDUP_MESSAGE(kAbort, Empty);
  static Abort decode(Decoder& d);
};
// After the commit everywhere: the generation's chunks become the node's index; frees what only the
// old generation referred to, and what was dumped but overwritten before it was committed.
struct CollectReply {
  std::uint64_t freed_bytes = 0;
  void encode(Encoder& e) const;
  static CollectReply decode(Decoder& d);
};
struct Collect {
  Id128 identity;
  Id128 attempt;
  DEDUP_MESSAGE(kCollect, CollectReply);
  static Collect decode(Decoder& d);
};

#undef DEDUP_MESSAGE

}  // namespace dedup::service
