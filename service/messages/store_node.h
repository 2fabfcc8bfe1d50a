// What is asked of a node about its own store (service/messages/request.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/piece.h"
#include "base/types.h"
#include "plan/placement.h"
#include "service/chunks_reply.h"
#include "service/messages/file_info.h"
#include "service/messages/lease.h"
#include "service/messages/request.h"
#include "store/cached.h"
#include "store/commit_record.h"
#include "store/real_path.h"
#include "store/segment.h"
#include "store/shard.h"
#include "store/shared_record.h"
#include "store/written.h"

namespace dedup::service {

// Whether the placement of each is one of these.
template <typename Chunk>
bool all_are_placed(const std::vector<Chunk>& chunks,
                    const std::vector<plan::Placement>& placements) {
  return std::all_of(chunks.begin(), chunks.end(),
                     [&](const Chunk& chunk) { return chunk.placement < placements.size(); });
}

// Which generations of `path` and of `identity` (zero: none) this node's store has. Creates the
// store if there is none.
struct FindReply {
  StoreRef store;
  store::Seen seen;  // the directory that the path is in
  std::uint64_t free_bytes = 0;
  std::vector<store::SharedRecord> records;  // newest of each identity
  std::vector<Id128> deleted;                // identities that were deleted
  std::vector<std::string> damaged;
  // If it is here: the newest generation of `donor`, and that which the plain donor is cached as.
  std::vector<store::SharedRecord> donor;
  bool makes_kept = false;                 // another job is just making the kept generation a file
  std::vector<store::CommitRecord> whole;  // if it was asked for: those above
  std::vector<store::CachedNote> cached;   // of those of `records` that are
};
struct Find {
  std::string path;
  Id128 identity;
  std::string store_template;
  Id128 donor{};  // another file; zero: none
  // If `identity` is a kept generation (store/kept.h): of which file, and its attempt there. A
  // store that has not made it a file of its own yet does so.
  Id128 kept_of{};
  Id128 kept_attempt{};
  bool whole = false;  // the records, too: of one node, which spares asking for what all have
  std::string plain_donor{};  // the path of a plain file, which has this stamp; empty: none
  store::Stamp plain_donor_stamp{};
  static constexpr Opcode kOpcode = Opcode::kFind;
  using Reply = FindReply;
};
// A record that Find has told of. None if it is here no more: another job has committed meanwhile.
struct GetRecordReply {
  std::optional<store::CommitRecord> record;
};
struct GetRecord {
  std::string store_template;
  store::RecordDigest digest;
  static constexpr Opcode kOpcode = Opcode::kGetRecord;
  using Reply = GetRecordReply;
};
// This job begins to use a file on this node (all later requests need it): takes the store's locks
// (for writing: kFileInUse if another job has it; for reading: shared on generation `base`, if the
// store has it and nobody is just removing it for a newer one), makes the file's directories if
// `create`, sets the block homes' base. Again with write = true: upgrades. With write: also removes
// what earlier jobs left uncommitted.
struct AttachReply {
  Id128 newest;  // attempt of the newest generation here, once the lock was tried; zero if none
  bool overtaken = false;  // to be created, but another job has committed a file of this path
};
struct Attach {
  Id128 identity;
  std::string path;
  std::string store_template;
  Id128 base;  // attempt; zero: none
  bool write = false;
  bool create = false;
  bool by_path = false;  // the stores find the file by its path: there must not be another one
  // Of a new file: it gets the segments of this generation of another one as well, if the store has
  // them.
  Id128 donor{};
  Id128 donor_attempt{};
  static constexpr Opcode kOpcode = Opcode::kAttach;
  using Reply = AttachReply;
};
// Answered when one of the files that AskWriters has named with this ticket is attached for writing
// by this job, to read another generation, or detached. Who has asked looks whether there is an
// answer (Client::Pending::is_ready): as long as there is none nobody can have written to any of
// them, since who writes has attached the file so on all nodes before. One for all files of a
// process: it keeps a connection for as long as it waits.
struct AwaitWriter {
  Id128 ticket;  // of the asker's choice, random
  static constexpr Opcode kOpcode = Opcode::kAwaitWriter;
  using Reply = Empty;
};
// Whether somebody can write to a file. If not, and the AwaitWriter of the ticket is waiting, the
// file is what generation `base` is until that is answered.
struct AskWritersReply {
  bool may_write = true;    // at the moment somebody can
  bool is_awaited = false;  // an AwaitWriter of the ticket is waiting, now for this file too
  Id128 base;               // attempt; zero: none
};
struct AskWriters {
  Id128 identity;
  Id128 ticket;
  static constexpr Opcode kOpcode = Opcode::kAskWriters;
  using Reply = AskWritersReply;
};
// A committed generation, for a process that has no file open in this job, as one that shows what
// is in the stores: it stays until LetGo, or until the connection ends that this came on. What
// reads a file's generation (ReadShard, Locate, GetChunks, LendSegment) reads it with the ticket in
// place of the identity. Harmless if it is held already. kNotFound if it is not in that store, or
// that store is not here.
struct HoldGeneration {
  Id128 ticket;  // of the asker's choice, random
  Id128 identity;
  Id128 attempt;
  Id128 store;                               // its id
  std::vector<std::string> store_templates;  // one of them leads to it
  static constexpr Opcode kOpcode = Opcode::kHoldGeneration;
  using Reply = Empty;
};
// Harmless if it is not held.
struct LetGo {
  Id128 ticket;
  static constexpr Opcode kOpcode = Opcode::kLetGo;
  using Reply = Empty;
};
// Ends it: uncommitted state, logs and attempts are dropped, locks released. `drop`: the whole file
// goes, and a mark stays that names `stores_left` (stores of the record that were not there).
struct Detach {
  Id128 identity;
  bool drop = false;
  std::vector<Id128> stores_left;
  static constexpr Opcode kOpcode = Opcode::kDetach;
  using Reply = Empty;
};
// Makes a generation that is committed elsewhere committed here too.
struct Adopt {
  Id128 identity;
  Bytes record;
  static constexpr Opcode kOpcode = Opcode::kAdopt;
  using Reply = Empty;
};
// Deletes a file that this job does not have open.
struct Drop {
  std::string store_template;
  Id128 identity;
  std::vector<Id128> stores_left;
  static constexpr Opcode kOpcode = Opcode::kDrop;
  using Reply = Empty;
};
// What this node's store has room for. If that is less than `needed`, files that no name leads to
// any more are dropped first (store/unnamed.h), once for each generation of the file; then, if
// `gives_up`, kept generations, the oldest first (store/kept.h), until it is enough. kAnything:
// until something was freed.
struct SpaceReply {
  std::uint64_t free_bytes = 0;
  std::vector<std::string> given_up;  // names of kept generations that were dropped
};
struct Space {
  static constexpr std::uint64_t kAnything = ~std::uint64_t{0};
  Id128 identity;
  std::uint64_t needed = 0;  // bytes
  bool gives_up = true;
  static constexpr Opcode kOpcode = Opcode::kSpace;
  using Reply = SpaceReply;
};
// A new number for a segment or log that the calling rank (on this node) will create in the node's
// store. The service keeps the file from being collected until the next commit or detach.
struct NumberReply {
  std::uint64_t number = 0;
};
struct OpenSegment {
  Id128 identity;
  // A log of the calling rank that becomes a segment, too: then it is that number.
  std::optional<std::uint64_t> log{};
  static constexpr Opcode kOpcode = Opcode::kOpenSegment;
  using Reply = NumberReply;
};
struct OpenLog {
  Id128 identity;
  static constexpr Opcode kOpcode = Opcode::kOpenLog;
  using Reply = NumberReply;
};
// A round of a dump: of which handle, and its number among that handle's. The same on all ranks.
struct DumpRound {
  Id128 handle;
  std::uint64_t number = 0;
};
// What this node's store has of chunks that a rank is about to dump, committed or registered, by
// what they are called by their content; under other names, too, that chunks have that were single.
// Those that may have a twin and are not here are kept until the handle's next round, or the
// commit: claims of copies in this round yield to whoever looked.
enum class Held : std::uint8_t {
  kNot,
  kCommitted,  // in the committed generation
  kSince,      // came since then
};
constexpr Held last_of(Held) {
  return Held::kSince;
}
struct FoundChunk {
  static constexpr std::uint64_t kShared = ~std::uint64_t{0};
  std::uint64_t single = kShared;  // its number, if it is named as a single one
  std::uint32_t placement = 0;     // index into one of the lists of placements
};
struct LookReply {
  Id128 base;                               // attempt of what is committed; zero: nothing is
  std::vector<plan::Placement> placements;  // of what came since then
  // Of what is committed: as that generation's record numbers the stores; on none: not known.
  std::vector<plan::Placement> committed;
  std::vector<Held> held;         // one per chunk
  std::vector<FoundChunk> found;  // one per chunk that is held, in order
  bool possible() const {
    std::size_t next = 0;
    for (const Held one : held) {
      if (one == Held::kNot) continue;
      const auto& list = one == Held::kSince ? placements : committed;
      if (next == found.size() || found[next++].placement >= list.size()) return false;
    }
    return next == found.size();
  }
};
struct Look {
  Id128 identity;
  DumpRound round;
  Id128 searched{};  // attempt whose index the rank has searched for all of them; zero: none
  std::vector<Fingerprint> names;    // one per chunk
  std::vector<std::uint8_t> shared;  // one per chunk: whether it may have a twin
  static constexpr Opcode kOpcode = Opcode::kLook;
  using Reply = LookReply;
  bool possible() const { return shared.size() == names.size(); }
};
// For each fingerprint: 1 if the caller is to store it, 0 if this node has it or somebody else is
// storing it. What is claimed must be registered, or released after a failure.
struct ClaimReply {
  std::vector<std::uint8_t> granted;
};
struct Claim {
  Id128 identity;
  std::vector<Fingerprint> fingerprints;
  DumpRound round{};
  // One per fingerprint, empty: none. Not granted either if a rank of this node has looked at it in
  // this round: then one of these stores it.
  std::vector<std::uint8_t> yields{};
  static constexpr Opcode kOpcode = Opcode::kClaim;
  using Reply = ClaimReply;
  bool possible() const { return yields.empty() || yields.size() == fingerprints.size(); }
};
// The caller has appended these chunks to a segment of this node's store and written them out.
struct Registration {
  Fingerprint fingerprint;
  store::ChunkLocation location;
  std::uint32_t placement = 0;  // index into Register::placements
};
struct Register {
  Id128 identity;
  std::vector<plan::Placement> placements;
  std::vector<Registration> chunks;
  static constexpr Opcode kOpcode = Opcode::kRegister;
  using Reply = Empty;
  bool possible() const { return all_are_placed(chunks, placements); }
};
struct Release {
  Id128 identity;
  std::vector<Fingerprint> fingerprints;
  static constexpr Opcode kOpcode = Opcode::kRelease;
  using Reply = Empty;
};
// Chunks that were registered in this segment are not here after all: it could not be flushed.
struct ForgetSegment {
  Id128 identity;
  std::uint64_t number = 0;
  static constexpr Opcode kOpcode = Opcode::kForgetSegment;
  using Reply = Empty;
};
// What this node's store has of these chunks in the committed generation is bad, as a rank that
// read it found: it counts as not here, so that the next commit stores them again.
struct Distrust {
  Id128 identity;
  std::vector<Fingerprint> fingerprints;
  static constexpr Opcode kOpcode = Opcode::kDistrust;
  using Reply = Empty;
};
// Where chunks are in this node's store; length 0: not here.
struct LocateReply {
  std::vector<store::ChunkLocation> locations;
};
struct Locate {
  Id128 identity;
  std::vector<Fingerprint> fingerprints;
  static constexpr Opcode kOpcode = Opcode::kLocate;
  using Reply = LocateReply;
};
// Chunks' bytes, checked by their checksums; one of another length counts as missing, unless it has
// no header and its beginning has the same checksum: who is not sure of a length locates first.
struct GetChunks {
  Id128 identity;
  std::vector<NamedChunk> chunks;  // at most kPayload bytes of them
  static constexpr Opcode kOpcode = Opcode::kGetChunks;
  using Reply = ChunksReply;
};
// A segment, for who asks to read it by himself (store::LentSegment): it comes with the reply.
// kUnsupported to who is on another host, or if the store does not lend.
struct LendReply {
  bool may_move = false;  // down: not to be kept (Store::segment)
};
struct LendSegment {
  Id128 identity;
  std::uint64_t number = 0;
  static constexpr Opcode kOpcode = Opcode::kLendSegment;
  using Reply = LendReply;
};
// A chunk's bytes in a request: its own, or somebody else's, who must keep them for as long as the
// request is used. Encoded as Bytes are; what was decoded stands in the message.
class ChunkBytes {
 public:
  ChunkBytes() = default;
  ChunkBytes(Bytes own) : own_(std::move(own)) {}
  static ChunkBytes of(std::span<const std::byte> others) {
    ChunkBytes bytes;
    bytes.others_ = others;
    return bytes;
  }
  std::span<const std::byte> view() const { return own_.empty() ? others_ : own_; }

  std::size_t encoded_size() const { return sizeof(std::uint32_t) + view().size(); }
  void encode(Encoder& encoder) const { encoder.put_bytes(view()); }
  static ChunkBytes decode(Decoder& decoder) { return of(decoder.get_bytes()); }

 private:
  Bytes own_;
  std::span<const std::byte> others_;
};

// The service stores these chunks (those it does not hold) in a segment of its own, if none was
// damaged since it was sealed (kCorrupt).
struct PutChunk {
  Fingerprint fingerprint;
  std::uint32_t placement = 0;  // index into PutChunks::placements
  std::uint64_t seal = 0;       // its checksum, without a salt
  ChunkBytes data;

  static PutChunk sealed(const Fingerprint& fingerprint, std::uint32_t placement, ChunkBytes data) {
    const std::uint64_t seal = store::seal_of({fingerprint, data.view()}).checksum;
    return {fingerprint, placement, seal, std::move(data)};
  }
  bool possible() const { return !data.view().empty() && data.view().size() <= kMaxChunkSize; }
};
struct PutReply {
  std::uint32_t stored = 0;  // that it did not hold
};
struct PutChunks {
  Id128 identity;
  std::vector<plan::Placement> placements;
  std::vector<PutChunk> chunks;
  static constexpr Opcode kOpcode = Opcode::kPutChunks;
  using Reply = PutReply;
  bool possible() const { return all_are_placed(chunks, placements); }
};
// The node gets those of these chunks that it does not hold from the nodes that have them, and
// stores them as if they came with PutChunks. It is done beside the service (executor.h), and
// answered when it is over; if the connection ends before, it is given up. `in_background`:
// nobody's commit waits for it; then `bytes_per_second` is how fast the node goes on, 0: as fast as
// it can.
struct RestoreChunk {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  std::uint32_t sources = 0;    // index into Restore::sources
  std::uint32_t placement = 0;  // index into Restore::placements
  bool possible() const { return length != 0 && length <= kMaxChunkSize; }
};
struct RestoreReply {
  std::uint32_t stored = 0;        // that it did not hold
  std::vector<std::uint8_t> lost;  // one per chunk: 1 if it is not here, for no node gave it
};
struct Restore {
  Id128 identity;
  bool in_background = false;
  std::uint64_t bytes_per_second = 0;
  std::vector<plan::Placement> sources;     // who should have it
  std::vector<plan::Placement> placements;  // how it is kept then: by this node, too
  std::vector<RestoreChunk> chunks;         // about kPayload bytes of them, at most
  static constexpr Opcode kOpcode = Opcode::kRestore;
  using Reply = RestoreReply;
  bool possible() const {
    return all_are_placed(chunks, placements) &&
           std::all_of(chunks.begin(), chunks.end(),
                       [&](const RestoreChunk& chunk) { return chunk.sources < sources.size(); });
  }
};
// What the file needs of the units of stripes that this node has, as it was found when all chunks
// were referred to: of those that it does not need whole.
struct UnitShare {
  Id128 stripe;
  std::uint8_t data = 0;    // units that the stripe has
  std::uint32_t live = 0;   // bytes of chunks that the file refers to
  std::uint32_t bytes = 0;  // of the whole unit
  bool possible() const { return data != 0 && live <= bytes && bytes <= kMaxChunkSize; }
};
struct ListSharesReply {
  std::vector<UnitShare> shares;
};
// `looks_at_all`, `stores`: see MakeUnits. What is not known otherwise is found from the committed
// generation's index.
struct ListShares {
  Id128 identity;
  Id128 attempt;
  bool looks_at_all = false;
  std::vector<NodeIndex> stores;
  static constexpr Opcode kOpcode = Opcode::kListShares;
  using Reply = ListSharesReply;
};
// Stripes (plan/stripe_content.h) are made of units, and these by the nodes of what they have. Of
// an attempt, before its recipe is built: this node makes units of the chunks that are not kept as
// well as `wanted` says, as copies on so many nodes, and of which it is to take care
// (plan::Placement::keeper()): of those that came since the last commit, and if `looks_at_all`, of
// what that generation has; and of what is in stripes that are `sparse`.
struct MakeUnitsReply {
  std::uint32_t units = 0;
  std::uint32_t longest = 0;  // bytes of the longest of them
};
struct MakeUnits {
  Id128 identity;
  Id128 attempt;
  std::uint32_t wanted = 0;
  std::uint8_t data = 1;  // units of data that a stripe has, at most
  bool looks_at_all = false;
  // Of the generation before, or the donor: its record's stores as nodes of this job.
  std::vector<NodeIndex> stores{};
  std::vector<Id128> sparse{};  // stripes; what of them is live is to be in others from now on
  static constexpr Opcode kOpcode = Opcode::kMakeUnits;
  using Reply = MakeUnitsReply;
  bool possible() const { return data > 0 && data < plan::StripeUnit::kMostNodes; }
};
// The chunks of some of these units.
struct ListUnitsReply {
  std::vector<std::vector<NamedChunk>> units;
};
struct ListUnits {
  Id128 identity;
  Id128 attempt;
  std::vector<std::uint32_t> units;
  static constexpr Opcode kOpcode = Opcode::kListUnits;
  using Reply = ListUnitsReply;
};
// Units of this node are in these stripes now, whose parities are made: their chunks are kept so.
struct JoinedUnit {
  std::uint32_t unit = 0;
  plan::StripeUnit stripe;
};
struct JoinStripes {
  Id128 identity;
  Id128 attempt;
  std::vector<JoinedUnit> units;
  static constexpr Opcode kOpcode = Opcode::kJoinStripes;
  using Reply = Empty;
};
// How chunks that this node has are kept now, as JoinStripes said, in this attempt or in one
// before, or as the generation before has them; on none: it does not know.
struct FindPlacementsReply {
  std::vector<plan::Placement> placements;
  std::vector<std::uint32_t> of;  // one per chunk: index into them
  bool possible() const {
    return std::all_of(of.begin(), of.end(),
                       [&](std::uint32_t number) { return number < placements.size(); });
  }
};
struct FindPlacements {
  Id128 identity;
  Id128 attempt;
  std::vector<Fingerprint> fingerprints;
  static constexpr Opcode kOpcode = Opcode::kFindPlacements;
  using Reply = FindPlacementsReply;
};
// `checksum`: XXH3 of the bytes, made where they were read.
struct BytesReply {
  Bytes bytes;
  std::uint64_t checksum = 0;
};
struct ReadLog {
  Id128 identity;
  std::uint64_t log = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  static constexpr Opcode kOpcode = Opcode::kReadLog;
  using Reply = BytesReply;
  bool possible() const { return offset <= kMaxOffset && length <= kMaxMessage; }
};
// Ends a lease of a log of this node: what was written under it. Not `here`: the rank itself has
// ended it, and told the homes.
struct RecallReply {
  bool here = false;
  std::vector<LogPiece> pieces;  // in the order in which they were written
};
struct RecallLease {
  Id128 identity;
  Lease lease;
  static constexpr Opcode kOpcode = Opcode::kRecallLease;
  using Reply = RecallReply;
  bool possible() const { return lease.serial != 0; }
};
// Block numbers that a committed shard on this node has, from `cursor` on; at most kPayload bytes.
struct ListShardReply {
  std::vector<std::uint64_t> blocks;
  bool done = false;
};
struct ListShard {
  Id128 identity;
  Id128 attempt;
  std::uint32_t shard = 0;
  store::Digest digest{};
  std::uint64_t cursor = 0;  // first block number wanted
  static constexpr Opcode kOpcode = Opcode::kListShard;
  using Reply = ListShardReply;
};
// Blocks of a committed shard on this node, with their checksums from its table.
struct ReadShardReply {
  std::vector<store::EncodedBlock> blocks;
};
struct ReadShard {
  Id128 identity;
  Id128 attempt;
  std::uint32_t shard = 0;
  store::Digest digest{};
  std::vector<std::uint64_t> blocks;  // at most kPayload / 64 KiB of them
  static constexpr Opcode kOpcode = Opcode::kReadShard;
  using Reply = ReadShardReply;
};
// Blocks of shard `shard` of the attempt being made: those that come whole, and those that stay as
// the base's shard of that number has them, which the node carries over in its own store (kCorrupt
// if one that comes whole was damaged on its way). The reply says which of the latter it has no
// sound copy of: they are to come whole. In any order, each once.
struct PutShardReply {
  bool can_carry = false;  // the base's shard is here: it is worth naming blocks of it
  std::vector<std::uint64_t> lacking;
};
struct PutShard {
  Id128 identity;
  Id128 attempt;
  std::uint32_t shard = 0;
  store::ShardBase base;  // of blocks that are carried; the same in all requests for a shard
  bool begins = false;    // the shard's first blocks; drops what there is of it
  bool ends = false;      // its last ones, unless the reply says that some are lacking
  std::vector<store::EncodedBlock> blocks;  // about kPayload bytes of them
  std::vector<store::BlockSummary> carried;
  static constexpr Opcode kOpcode = Opcode::kPutShard;
  using Reply = PutShardReply;
};
// The attempt's recipe refers to these chunks as held by this node, and, as their placements say,
// by others. Reply: 1 for each that this node does not hold after all.
struct Reference {
  Fingerprint fingerprint;
  std::uint32_t placement = 0;  // index into References::placements
};
struct ReferencesReply {
  std::vector<std::uint8_t> missing;
};
struct References {
  Id128 identity;
  Id128 attempt;
  std::vector<plan::Placement> placements;  // as the attempt's record numbers the stores
  std::vector<Reference> chunks;
  // Chunks that this node has take so many bytes (store::stored_size()) to which blocks that
  // changed referred in the base, and do not any more; others may.
  std::uint64_t dropped = 0;
  static constexpr Opcode kOpcode = Opcode::kReferences;
  using Reply = ReferencesReply;
  bool possible() const { return all_are_placed(chunks, placements); }
};
// Everything is referred to that has to be: writes what is new in the index.
//
// `all`: every chunk of the generation was referred to; the others go, and live ones are moved out
// of segments that are less than half live (with `flush`, to the disk). Otherwise blocks of the
// recipe that are as in the base were left out, and what this node's index of it names stays. If
// that cannot be relied on, or too much of it is dead (References::dropped), nothing is written:
// all chunks have to be referred to, then this is asked again.
//
// `base`: the base, or the donor, of whose index runs may stay, since its stores have the numbers
// that they have in this generation. Zero: none; then `all`.
struct WriteIndexReply {
  bool needs_all = false;
  std::uint64_t chunks = 0;  // that the index names
};
struct WriteIndex {
  Id128 identity;
  Id128 attempt;
  bool flush = true;
  Id128 base;
  bool all = true;
  static constexpr Opcode kOpcode = Opcode::kWriteIndex;
  using Reply = WriteIndexReply;
};
// Phase 1, after WriteIndex: writes record.tmp; with `flush`, all of the attempt's files are on
// disk when the reply comes, and the segments it needs (the ranks have flushed those they wrote).
struct Prepare {
  Id128 identity;
  Bytes record;
  bool flush = true;
  static constexpr Opcode kOpcode = Opcode::kPrepare;
  using Reply = Empty;
};
// Phase 2.
struct Commit {
  Id128 identity;
  Id128 attempt;
  bool flush = true;
  static constexpr Opcode kOpcode = Opcode::kCommit;
  using Reply = Empty;
};
struct Abort {
  Id128 identity;
  Id128 attempt;
  static constexpr Opcode kOpcode = Opcode::kAbort;
  using Reply = Empty;
};
// After the commit everywhere: the generation's chunks become the node's index; frees what only the
// old generation referred to, and what was dumped but overwritten before it was committed.
struct CollectReply {
  std::uint64_t freed_bytes = 0;
};
struct Collect {
  Id128 identity;
  Id128 attempt;
  static constexpr Opcode kOpcode = Opcode::kCollect;
  using Reply = CollectReply;
};

// What a writer has written back of a generation, for who goes on with it; see
// store::Store::put_written().
struct PutWritten {
  Id128 identity;
  Id128 attempt;
  store::WrittenPart part;
  static constexpr Opcode kOpcode = Opcode::kPutWritten;
  using Reply = Empty;
};
struct ListWrittenReply {
  std::vector<store::WrittenPart> parts;
};
struct ListWritten {
  Id128 identity;
  Id128 attempt;
  static constexpr Opcode kOpcode = Opcode::kListWritten;
  using Reply = ListWrittenReply;
};

// A generation is cached: see store/cached.h.
struct PutCached {
  Id128 identity;
  store::CachedNote note;
  static constexpr Opcode kOpcode = Opcode::kPutCached;
  using Reply = Empty;
};

}  // namespace dedup::service
