#include "service/messages.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <span>
#include <string_view>

#include "store/format.h"

namespace dedup::service {

namespace {

// File offsets are signed 64-bit numbers to MPI.
constexpr std::uint64_t kMaxOffset = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kBlocks = kMaxOffset / kBlockSpan + 1;

// How a piece is encoded: one byte of these, then what they do not say.
enum PieceFlag : std::uint8_t {
  kFollows = 1,  // begins where the piece before it ends
  kZero = 2,     // zeros, no chunk
  kWhole = 4,    // a chunk from its first byte to its last
};
constexpr std::uint8_t kPieceFlags = kFollows | kZero | kWhole;

struct Writer {
  Encoder& e;

  template <typename... T>
  void all(const T&... fields) {
    (put(fields), ...);
  }

  template <std::unsigned_integral T>
  void put(T value) {
    e.put(value);
  }
  void put(bool value) { e.put(static_cast<std::uint8_t>(value)); }
  void put(LockKind kind) { e.put(static_cast<std::uint8_t>(kind)); }
  void put(FileInfo::RealPath kind) { e.put(static_cast<std::uint8_t>(kind)); }
  void put(const store::Stamp& stamp) { stamp.encode(e); }
  void put(const store::Seen& seen) { seen.encode(e); }
  void put(const Id128& id) { e.put(id); }
  void put(const Fingerprint& fingerprint) { e.put(fingerprint); }
  void put(const FastHash& hash) { all(hash.low, hash.high); }
  void put(const store::Digest& digest) { e.put_raw(digest.data(), digest.size()); }
  void put(const std::string& text) { e.put(std::string_view(text)); }
  void put(const NodeSet& nodes) { e.put(nodes); }
  void put(const Bytes& bytes) { e.put_bytes(bytes); }
  void put(const std::vector<std::uint8_t>& flags) { e.put_bytes(std::as_bytes(std::span(flags))); }
  template <typename T>
  void put(const std::vector<T>& items) {
    e.put(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) put(item);
  }

  void put(const FileInfo& info) { info.encode(e); }
  void put(const StoreRef& store) { all(store.uuid, store.node); }
  void put(const ByteRange& range) { all(range.offset, range.length); }
  void put(const store::ChunkLocation& l) { all(l.segment, l.offset, l.length); }
  void put(const NamedChunk& c) { all(c.fingerprint, c.length); }
  void put(const Registration& r) { all(r.fingerprint, r.location, r.holders); }
  void put(const PutChunk& c) { all(c.fingerprint, c.holders, c.seal, c.data); }
  void put(const StoreTable& stores) { e.put(stores.nodes); }
  void put(const store::EncodedBlock& block) { all(block.number, block.bytes, block.checksum); }
  void put(const LogPiece& p) { all(p.begin, p.length, p.node, p.log, p.log_offset); }
  void put(const LogUpdate& u) { all(u.block, u.piece); }
  void put(const Lease& l) { all(l.block, l.node, l.log, l.slot, l.serial); }
  void put(const BlockUpdate& u) { all(u.block, u.content); }
  void put(const ConvertUpdate& u) { all(u.block, u.content, u.log_offsets); }
  void put(const ResolvedRange& r) {
    all(r.content, r.log, r.base_needed, r.base_end, r.plain_end);
  }
  void put(const Block& block) {
    put(block.holder_sets);
    e.put(static_cast<std::uint32_t>(block.pieces.size()));
    std::uint32_t end = 0;
    for (const Piece& p : block.pieces) {
      const bool whole = !p.is_zero() && p.chunk_offset == 0 && p.length == p.chunk_length;
      const auto flags = static_cast<std::uint8_t>(
          (p.begin == end ? kFollows : 0) | (p.is_zero() ? kZero : 0) | (whole ? kWhole : 0));
      e.put(flags);
      if (!(flags & kFollows)) e.put(p.begin);
      e.put(p.length);
      if (!p.is_zero()) {
        if (!whole) all(p.chunk_offset, p.chunk_length);
        all(p.holders, p.fingerprint);
      }
      end = p.end();
    }
  }
};

struct Reader {
  Decoder& d;

  template <typename... T>
  void all(T&... fields) {
    (get(fields), ...);
  }
  void check(bool possible) {
    if (!possible) d.fail();
  }

  template <std::unsigned_integral T>
  void get(T& value) {
    value = d.get<T>();
  }
  void get(bool& value) {
    const auto byte = d.get<std::uint8_t>();
    check(byte <= 1);
    value = byte == 1;
  }
  void get(LockKind& kind) {
    const auto byte = d.get<std::uint8_t>();
    check(byte <= static_cast<std::uint8_t>(LockKind::kAtomic));
    kind = d.ok() ? static_cast<LockKind>(byte) : LockKind::kDump;
  }
  void get(FileInfo::RealPath& kind) {
    const auto byte = d.get<std::uint8_t>();
    check(byte <= static_cast<std::uint8_t>(FileInfo::RealPath::kPlain));
    kind = d.ok() ? static_cast<FileInfo::RealPath>(byte) : FileInfo::RealPath::kNone;
  }
  void get(store::Stamp& stamp) { stamp = store::Stamp::decode(d); }
  void get(store::Seen& seen) { seen = store::Seen::decode(d); }
  void get(Id128& id) { id = d.get_id(); }
  void get(Fingerprint& fingerprint) { fingerprint = d.get_fingerprint(); }
  void get(FastHash& hash) { all(hash.low, hash.high); }
  void get(store::Digest& digest) { d.get_raw(digest.data(), digest.size()); }
  void get(std::string& text) { text = d.get_string(); }
  void get(NodeSet& nodes) {
    nodes = d.get_nodes();
    const auto descends = [](NodeIndex a, NodeIndex b) { return a >= b; };
    check(std::adjacent_find(nodes.begin(), nodes.end(), descends) == nodes.end());
  }
  void get(Bytes& bytes) {
    const auto view = d.get_bytes();
    bytes.assign(view.begin(), view.end());
  }
  void get(std::vector<std::uint8_t>& flags) {
    const auto view = d.get_bytes();
    flags.resize(view.size());
    if (!view.empty()) std::memcpy(flags.data(), view.data(), view.size());
    check(std::all_of(flags.begin(), flags.end(), [](std::uint8_t flag) { return flag <= 1; }));
  }
  // Whatever the count says, no more is reserved than the message is long: the rest is allocated
  // as items turn out to be there.
  template <typename T>
  void get(std::vector<T>& items) {
    const std::uint32_t count = d.get_count(1);
    items.reserve(std::min<std::size_t>(count, d.left() / sizeof(T) + 1));
    for (std::uint32_t i = 0; i < count && d.ok(); ++i) get(items.emplace_back());
  }

  void get(FileInfo& info) { info = FileInfo::decode(d); }
  void get(StoreRef& store) { all(store.uuid, store.node); }
  void get(ByteRange& range) {
    all(range.offset, range.length);
    check(range.offset <= kMaxOffset && range.length > 0 &&
          range.length <= kBlockSpan - range.offset % kBlockSpan);
  }
  void get(store::ChunkLocation& l) { all(l.segment, l.offset, l.length); }
  void get(NamedChunk& c) {
    all(c.fingerprint, c.length);
    check(c.length != 0 && c.length <= kMaxChunkSize);
  }
  void get(Registration& r) { all(r.fingerprint, r.location, r.holders); }
  void get(PutChunk& c) {
    all(c.fingerprint, c.holders, c.seal, c.data);
    check(!c.data.empty() && c.data.size() <= kMaxChunkSize);
  }
  void get(StoreTable& stores) { stores.nodes = d.get_nodes(); }
  void get(store::EncodedBlock& block) {
    get_block_number(block.number);
    all(block.bytes, block.checksum);
  }
  void get(LogPiece& p) {
    all(p.begin, p.length, p.node, p.log, p.log_offset);
    check(fits(p.begin, p.length) && p.node != kNoNode && p.log_offset <= kMaxOffset);
  }
  void get(Lease& l) {
    get_block_number(l.block);
    all(l.node, l.log, l.slot, l.serial);
    check((l.serial == 0) == (l.node == kNoNode));
  }
  void get(LogUpdate& u) {
    get_block_number(u.block);
    get(u.piece);
  }
  void get(BlockUpdate& u) {
    get_block_number(u.block);
    get(u.content);
  }
  void get(ConvertUpdate& u) {
    get_block_number(u.block);
    all(u.content, u.log_offsets);
    check(u.log_offsets.size() == u.content.pieces.size());
    for (std::uint64_t offset : u.log_offsets) check(offset <= kMaxOffset);
  }
  void get(ResolvedRange& r) { all(r.content, r.log, r.base_needed, r.base_end, r.plain_end); }
  void get(Block& block) {
    get(block.holder_sets);
    const std::uint32_t count = d.get_count(1);
    block.pieces.reserve(std::min<std::size_t>(count, d.left() / sizeof(Piece) + 1));
    std::uint32_t end = 0;
    for (std::uint32_t i = 0; i < count && d.ok(); ++i) {
      Piece& p = block.pieces.emplace_back();
      const auto flags = d.get<std::uint8_t>();
      check((flags & ~kPieceFlags) == 0 && (flags & (kZero | kWhole)) != (kZero | kWhole));
      p.begin = flags & kFollows ? end : d.get<std::uint32_t>();
      get(p.length);
      check(p.begin >= end && fits(p.begin, p.length));
      if (!(flags & kZero)) {
        p.chunk_length = p.length;
        if (!(flags & kWhole)) all(p.chunk_offset, p.chunk_length);
        all(p.holders, p.fingerprint);
        check(p.chunk_length <= kMaxChunkSize && p.length <= p.chunk_length &&
              p.chunk_offset <= p.chunk_length - p.length && p.holders < block.holder_sets.size());
      }
      end = d.ok() ? p.end() : 0;
    }
  }

  void get_block_number(std::uint64_t& block) {
    get(block);
    check(block < kBlocks);
  }
  static bool fits(std::uint32_t begin, std::uint32_t length) {
    return length > 0 && length <= kBlockSpan && begin <= kBlockSpan - length;
  }
};

template <typename Items>
bool holders_exist(const Items& items, std::size_t sets) {
  return std::all_of(items.begin(), items.end(),
                     [&](const auto& item) { return item.holders < sets; });
}

}  // namespace

NodeIndex file_home(const std::string& path, NodeIndex nodes) {
  return static_cast<NodeIndex>(store::format::checksum(std::as_bytes(std::span(path))) % nodes);
}

// Consecutive blocks go round the nodes, so that every long range is spread evenly; files start at
// different nodes.
NodeIndex block_home(const Id128& identity, std::uint64_t block, NodeIndex nodes) {
  std::uint64_t first = 0;
  for (unsigned i = 0; i < 8; ++i) first |= std::uint64_t{identity.bytes[i]} << (8 * i);
  return static_cast<NodeIndex>((first % nodes + block % nodes) % nodes);
}

bool may_repeat(Opcode opcode) {
  switch (opcode) {
    case Opcode::kGetFile:
    case Opcode::kGetSize:
    case Opcode::kResolve:
    case Opcode::kInstallBase:
    case Opcode::kSnapshot:
    case Opcode::kFind:
    case Opcode::kSpace:
    case Opcode::kHeld:
    case Opcode::kAlike:
    case Opcode::kLocate:
    case Opcode::kGetChunks:
    case Opcode::kReadLog:
    case Opcode::kListShard:
    case Opcode::kReadShard:
    case Opcode::kReferences:
      return true;
    default:
      return false;
  }
}

// Encodes and decodes a message `m` field by field, in the order given.
#define DEDUP_FIELDS(Message, ...)         \
  void Message::encode(Encoder& e) const { \
    const Message& m = *this;              \
    Writer{e}.all(__VA_ARGS__);            \
  }                                        \
  Message Message::decode(Decoder& d) {    \
    Message m;                             \
    Reader{d}.all(__VA_ARGS__);            \
    return m;                              \
  }

// The same, for messages whose fields must fit together.
#define DEDUP_CHECKED_FIELDS(Message, possible, ...) \
  void Message::encode(Encoder& e) const {           \
    const Message& m = *this;                        \
    Writer{e}.all(__VA_ARGS__);                      \
  }                                                  \
  Message Message::decode(Decoder& d) {              \
    Message m;                                       \
    Reader{d}.all(__VA_ARGS__);                      \
    if (!(possible)) d.fail();                       \
    return m;                                        \
  }

DEDUP_CHECKED_FIELDS(FileInfo, m.stores.size() <= kNoNode, m.identity, m.path, m.store_template,
                     m.record, m.stores, m.size, m.writable, m.session, m.real_path, m.plain,
                     m.write_back, m.deleted)

// ---- File home --------------------------------------------------------------------------------

DEDUP_FIELDS(OpenBeginReply, m.known, m.info, m.aside)
DEDUP_FIELDS(OpenBegin, m.path)
DEDUP_FIELDS(OpenEnd, m.path, m.ok, m.handle, m.info)
DEDUP_FIELDS(CloseBeginReply, m.last, m.deleted, m.info)
DEDUP_FIELDS(CloseBegin, m.identity, m.handle)
DEDUP_FIELDS(CloseEnd, m.identity)
DEDUP_FIELDS(GetFile, m.identity)
DEDUP_FIELDS(SizeReply, m.size, m.leases)
DEDUP_FIELDS(GetSize, m.identity)
DEDUP_FIELDS(ExtendSize, m.identity, m.end, m.lease, m.ended)
DEDUP_FIELDS(SetSize, m.identity, m.size)
DEDUP_FIELDS(Lock, m.identity, m.kind, m.owner)
DEDUP_FIELDS(Unlock, m.identity, m.kind, m.owner)
DEDUP_FIELDS(SharedValue, m.value)
DEDUP_FIELDS(SharedAdd, m.identity, m.handle, m.increment)
DEDUP_FIELDS(SharedSet, m.identity, m.handle, m.value)
DEDUP_CHECKED_FIELDS(CommitDone, m.stores.size() <= kNoNode, m.identity, m.record, m.stores)
DEDUP_FIELDS(GenerationNumber, m.number)
DEDUP_FIELDS(NextGeneration, m.identity, m.after)
DEDUP_FIELDS(SetAside, m.identity, m.deleted)

// ---- Block home -------------------------------------------------------------------------------

DEDUP_FIELDS(LeasesReply, m.leases)
DEDUP_FIELDS(WriteLogReply, m.leases, m.granted)
DEDUP_FIELDS(WriteLog, m.identity, m.updates, m.wanted)
DEDUP_FIELDS(WriteChunks, m.identity, m.updates, m.below)
DEDUP_CHECKED_FIELDS(Convert, m.node != kNoNode, m.identity, m.node, m.log, m.updates)
DEDUP_FIELDS(Truncate, m.identity, m.size)
DEDUP_FIELDS(ResolveReply, m.base, m.ranges, m.leases)
DEDUP_FIELDS(Resolve, m.identity, m.ranges)
DEDUP_FIELDS(InstallBase, m.identity, m.attempt, m.stores, m.blocks)
DEDUP_FIELDS(SnapshotReply, m.blocks, m.done, m.cursor, m.base_limit)
DEDUP_FIELDS(Snapshot, m.identity, m.attempt, m.cursor)
DEDUP_FIELDS(EndCommit, m.identity, m.attempt, m.committed)
DEDUP_CHECKED_FIELDS(ReturnLease, m.lease.serial != 0, m.identity, m.lease, m.pieces, m.recalled)

// ---- Store node -------------------------------------------------------------------------------

DEDUP_FIELDS(FindReply, m.store, m.seen, m.free_bytes, m.records, m.deleted, m.damaged)
DEDUP_FIELDS(Find, m.path, m.identity, m.store_template)
DEDUP_FIELDS(AttachReply, m.newest, m.overtaken)
DEDUP_FIELDS(Attach, m.identity, m.path, m.store_template, m.base, m.write, m.create, m.by_path)
DEDUP_FIELDS(Detach, m.identity, m.drop, m.stores_left)
DEDUP_FIELDS(Adopt, m.identity, m.record)
DEDUP_FIELDS(Drop, m.store_template, m.identity, m.stores_left)
DEDUP_FIELDS(SpaceReply, m.free_bytes)
DEDUP_FIELDS(Space, m.identity, m.needed)
DEDUP_FIELDS(NumberReply, m.number, m.path)
DEDUP_FIELDS(OpenSegment, m.identity)
DEDUP_FIELDS(OpenLog, m.identity)
DEDUP_CHECKED_FIELDS(HeldReply,
                     static_cast<std::size_t>(std::count(m.held.begin(), m.held.end(), 1)) ==
                         m.holders.size(),
                     m.held, m.holders)
DEDUP_FIELDS(Held, m.identity, m.fingerprints)
DEDUP_CHECKED_FIELDS(AlikeReply,
                     static_cast<std::size_t>(std::count(m.found.begin(), m.found.end(), 1)) ==
                         m.names.size(),
                     m.strong, m.found, m.names)
DEDUP_FIELDS(Alike, m.identity, m.hashes)
DEDUP_FIELDS(ClaimReply, m.granted)
DEDUP_FIELDS(Claim, m.identity, m.fingerprints)
DEDUP_CHECKED_FIELDS(Register, holders_exist(m.chunks, m.holder_sets.size()), m.identity,
                     m.holder_sets, m.chunks)
DEDUP_FIELDS(Release, m.identity, m.fingerprints)
DEDUP_FIELDS(ForgetSegment, m.identity, m.number)
DEDUP_FIELDS(Distrust, m.identity, m.fingerprints)
DEDUP_FIELDS(LocateReply, m.locations)
DEDUP_FIELDS(Locate, m.identity, m.fingerprints)
DEDUP_FIELDS(GetChunks, m.identity, m.chunks)
DEDUP_FIELDS(PutReply, m.stored)
DEDUP_CHECKED_FIELDS(PutChunks, holders_exist(m.chunks, m.holder_sets.size()), m.identity,
                     m.holder_sets, m.chunks)
DEDUP_FIELDS(BytesReply, m.bytes, m.checksum)
DEDUP_CHECKED_FIELDS(ReadLog, m.offset <= kMaxOffset && m.length <= kMaxMessage, m.identity, m.log,
                     m.offset, m.length)
DEDUP_FIELDS(RecallReply, m.here, m.pieces)
DEDUP_CHECKED_FIELDS(RecallLease, m.lease.serial != 0, m.identity, m.lease)
DEDUP_FIELDS(ListShardReply, m.blocks, m.done)
DEDUP_FIELDS(ListShard, m.identity, m.attempt, m.shard, m.digest, m.cursor)
DEDUP_FIELDS(ReadShardReply, m.blocks)
DEDUP_FIELDS(ReadShard, m.identity, m.attempt, m.shard, m.digest, m.blocks)
DEDUP_FIELDS(PutShard, m.identity, m.attempt, m.shard, m.offset, m.bytes)
DEDUP_FIELDS(ReferencesReply, m.missing)
DEDUP_FIELDS(References, m.identity, m.attempt, m.fingerprints)
DEDUP_FIELDS(WriteIndexReply, m.chunks, m.bytes)
DEDUP_FIELDS(WriteIndex, m.identity, m.attempt, m.flush)
DEDUP_FIELDS(Prepare, m.identity, m.record, m.flush)
DEDUP_FIELDS(Commit, m.identity, m.attempt, m.flush)
DEDUP_FIELDS(Abort, m.identity, m.attempt)
DEDUP_FIELDS(CollectReply, m.freed_bytes)
DEDUP_FIELDS(Collect, m.identity, m.attempt)

#undef DEDUP_FIELDS
#undef DEDUP_CHECKED_FIELDS

}  // namespace dedup::service
