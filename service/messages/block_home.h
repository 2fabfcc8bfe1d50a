// What is asked of a block's home (service/messages/request.h).
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
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "plan/block.h"
#include "service/messages/lease.h"
#include "service/messages/request.h"
#include "store/shard.h"

namespace dedup::service {

// `leases`: not empty if nothing was done, since they stand in the way.
struct LeasesReply {
  std::vector<Lease> leases;
};
struct WriteLogReply {
  std::vector<Lease> leases;  // as in LeasesReply
  bool granted = false;       // the lease that was asked for
};
struct LogUpdate {
  std::uint64_t block = 0;
  LogPiece piece;
  bool possible() const { return block < kBlocks; }
};
struct WriteLog {
  Id128 identity;
  std::vector<LogUpdate> updates;
  Lease wanted = {};  // on a block of `updates`; serial 0: none
  static constexpr Opcode kOpcode = Opcode::kWriteLog;
  using Reply = WriteLogReply;
};
struct BlockUpdate {
  std::uint64_t block = 0;
  Block content;
  bool possible() const { return block < kBlocks; }
};
struct WriteChunks {
  Id128 identity;
  std::vector<BlockUpdate> updates;
  // What was written before it stays: it hides only what the file was opened as.
  bool below = false;
  static constexpr Opcode kOpcode = Opcode::kWriteChunks;
  using Reply = LeasesReply;
};
// Piece i of `content` holds the same bytes as [log_offsets[i], + length) of the log: wherever log
// pieces of that very log and position are the newest, the piece goes to `fresh` in their place.
struct ConvertUpdate {
  std::uint64_t block = 0;
  Block content;
  std::vector<std::uint64_t> log_offsets;
  bool possible() const {
    return block < kBlocks && log_offsets.size() == content.pieces.size() &&
           std::all_of(log_offsets.begin(), log_offsets.end(),
                       [](std::uint64_t offset) { return offset <= kMaxOffset; });
  }
};
struct Convert {
  Id128 identity;
  NodeIndex node = kNoNode;
  std::uint64_t log = 0;
  std::vector<ConvertUpdate> updates;
  static constexpr Opcode kOpcode = Opcode::kConvert;
  using Reply = Empty;
  bool possible() const { return node != kNoNode; }
};
// The file shrinks to `size`: drops everything beyond it in this home's blocks and lowers the base
// limit.
struct Truncate {
  Id128 identity;
  std::uint64_t size = 0;
  static constexpr Opcode kOpcode = Opcode::kTruncate;
  using Reply = LeasesReply;
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
};
struct Resolve {
  Id128 identity;
  std::vector<ByteRange> ranges;  // file offsets
  static constexpr Opcode kOpcode = Opcode::kResolve;
  using Reply = ResolveReply;
  bool possible() const {
    return std::all_of(ranges.begin(), ranges.end(), [](const ByteRange& range) {
      return range.offset <= kMaxOffset && range.length > 0 &&
             range.length <= kBlockSpan - range.offset % kBlockSpan;
    });
  }
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
  static constexpr Opcode kOpcode = Opcode::kInstallBase;
  using Reply = Empty;
};
// First call of an attempt (cursor 0): moves `fresh` to `committing`. Returns the blocks that
// `committing` has from block number `cursor` on, about kPayload bytes of them, in ascending order.
struct SnapshotReply {
  std::vector<BlockUpdate> blocks;
  bool done = false;             // nothing after these
  std::uint64_t cursor = 0;      // for the next call
  std::uint64_t base_limit = 0;  // bytes of the base at and beyond this offset do not count
};
struct Snapshot {
  Id128 identity;
  Id128 attempt;
  std::uint64_t cursor = 0;
  static constexpr Opcode kOpcode = Opcode::kSnapshot;
  using Reply = SnapshotReply;
};
// Committed: `committing` is dropped, the base is `attempt` and not installed, the base limit is as
// if never lowered (unless a Truncate came after the snapshot). Else: `committing` goes back under
// `fresh`.
struct EndCommit {
  Id128 identity;
  Id128 attempt;
  bool committed = false;
  static constexpr Opcode kOpcode = Opcode::kEndCommit;
  using Reply = Empty;
};

// The lease ends, and the writes that were made under it are the block's newest. Ignored if the
// block has another lease, or none. `recalled`: somebody wanted the block. A block for which that
// happens often gets no leases any more while it has uncommitted writes.
struct ReturnLease {
  Id128 identity;
  Lease lease;
  std::vector<LogPiece> pieces;  // in the order in which they were written
  bool recalled = false;
  static constexpr Opcode kOpcode = Opcode::kReturnLease;
  using Reply = Empty;
  bool possible() const { return lease.serial != 0; }
};

}  // namespace dedup::service
