#include "service/block_home.h"

#include <algorithm>
#include <vector>

#include "plan/block.h"
#include "service/base_block.h"

namespace dedup::service {

namespace {

// How much of block `number` lies below file offset `limit`.
std::uint32_t part_below(std::uint64_t limit, std::uint64_t number) {
  const std::uint64_t begin = number * kBlockSpan;
  return limit <= begin ? 0 : static_cast<std::uint32_t>(std::min(limit - begin, kBlockSpan));
}

// What lies between `extents` (sorted, disjoint) in [begin, end).
std::vector<plan::Extent> gaps_between(std::span<const plan::Extent> extents, std::uint32_t begin,
                                       std::uint32_t end) {
  std::vector<plan::Extent> gaps;
  for (const plan::Extent& extent : extents) {
    if (extent.begin > begin) gaps.push_back({begin, extent.begin});
    begin = extent.end;
  }
  if (begin < end) gaps.push_back({begin, end});
  return gaps;
}

Status check_attempt(const Id128& attempt) {
  if (!attempt.is_zero()) return Status::ok();
  return {Code::kInternal, "a commit without an attempt id"};
}

}  // namespace

// ---- Base blocks ------------------------------------------------------------------------------

const Block* BaseCache::find(const Id128& identity, std::uint64_t number) {
  return blocks_.find({identity, number});
}

void BaseCache::insert(const Id128& identity, std::uint64_t number, Block block) {
  const std::size_t bytes = sizeof(Key) + sizeof(Block) + plan::memory_of(block);
  blocks_.insert({identity, number}, std::move(block), bytes);
}

void BaseCache::erase(const Id128& identity) {
  blocks_.erase_from({identity, 0}, [&](const Key& key) { return key.first == identity; });
}

// ---- Files ------------------------------------------------------------------------------------

void BlockHomes::attach(const Id128& identity, const Id128& base) {
  File& file = files_[identity];
  if (file.base == base) return;
  file.base = base;
  bases_.erase(identity);
}

void BlockHomes::detach(const Id128& identity) {
  files_.erase(identity);
  bases_.erase(identity);
}

Result<BlockHomes::File*> BlockHomes::find(const Id128& identity) {
  const auto at = files_.find(identity);
  if (at == files_.end()) {
    return Status(Code::kNotFound,
                  "file " + identity.hex() + " is not attached to this node's block home");
  }
  return &at->second;
}

// ---- Writes -----------------------------------------------------------------------------------

void BlockHomes::add_lease(const File& file, std::uint64_t block, std::vector<Lease>& leases) {
  const auto at = file.blocks.find(block);
  if (at == file.blocks.end() || !at->second.is_leased()) return;
  const Lease& lease = at->second.lease;
  if (std::find(leases.begin(), leases.end(), lease) == leases.end()) leases.push_back(lease);
}

template <typename Update>
std::vector<Lease> BlockHomes::leases_on(const File& file, const std::vector<Update>& updates) {
  std::vector<Lease> leases;
  for (const Update& update : updates) add_lease(file, update.block, leases);
  return leases;
}

Result<WriteLogReply> BlockHomes::on(const WriteLog& request) {
  DEDUP_ASSIGN(File * file, find(request.identity));
  if (auto leases = leases_on(*file, request.updates); !leases.empty()) {
    return WriteLogReply{std::move(leases), false};
  }
  WriteLogReply reply;
  for (const LogUpdate& update : request.updates) {
    BlockState& block = file->blocks[update.block];
    block.log.insert(update.piece);
    if (request.wanted.serial != 0 && request.wanted.block == update.block &&
        block.recalls < kRecalls) {
      block.lease = request.wanted;
      reply.granted = true;
    }
  }
  return reply;
}

Result<LeasesReply> BlockHomes::on(const WriteChunks& request) {
  DEDUP_ASSIGN(File * file, find(request.identity));
  if (!request.below) {
    if (auto leases = leases_on(*file, request.updates); !leases.empty()) {
      return LeasesReply{std::move(leases)};
    }
  }
  for (const BlockUpdate& update : request.updates) {
    if (update.content.empty()) continue;
    if (request.below) {
      put_below(*file, update);
      continue;
    }
    BlockState& block = file->blocks[update.block];
    for (const Piece& piece : update.content.pieces) {
      if (block.log.empty()) break;
      block.log.erase(piece.begin, piece.end());
    }
    plan::overlay(block.fresh, update.content);
  }
  return LeasesReply{};
}

void BlockHomes::put_below(File& file, const BlockUpdate& update) {
  Block content = update.content;
  plan::truncate(content, part_below(file.base_limit, update.block));
  if (content.empty()) return;
  BlockState& block = file.blocks[update.block];
  plan::underlay(block.fresh, std::move(content));
}

Result<Empty> BlockHomes::on(const Convert& request) {
  DEDUP_ASSIGN(File * file, find(request.identity));
  for (const ConvertUpdate& update : request.updates) {
    const auto at = file->blocks.find(update.block);
    if (at == file->blocks.end()) continue;
    BlockState& block = at->second;
    Block converted;
    converted.placements = update.content.placements;
    for (std::size_t i = 0; i < update.content.pieces.size(); ++i) {
      const Piece& piece = update.content.pieces[i];
      const LogPiece where{piece.begin, piece.length, request.node, request.log,
                           update.log_offsets[i]};
      for (const plan::Extent& extent : block.log.convert(where)) {
        converted.pieces.push_back(plan::cut(piece, extent.begin, extent.end));
      }
    }
    plan::overlay(block.fresh, converted);
  }
  return Empty{};
}

Result<LeasesReply> BlockHomes::on(const Truncate& request) {
  DEDUP_ASSIGN(File * file, find(request.identity));
  LeasesReply reply;
  const auto first = file->blocks.lower_bound(request.size / kBlockSpan);
  for (auto at = first; at != file->blocks.end(); ++at) {
    if (at->second.is_leased()) reply.leases.push_back(at->second.lease);
  }
  if (!reply.leases.empty()) return reply;
  file->base_limit = std::min(file->base_limit, request.size);
  file->committing_limit = std::min(file->committing_limit, request.size);
  for (auto at = first; at != file->blocks.end();) {
    BlockState& block = at->second;
    const std::uint32_t end = part_below(request.size, at->first);
    block.log.truncate(end);
    plan::truncate(block.fresh, end);
    at = block.empty() ? file->blocks.erase(at) : std::next(at);
  }
  return reply;
}

Result<Empty> BlockHomes::on(const ReturnLease& request) {
  DEDUP_ASSIGN(File * file, find(request.identity));
  const auto at = file->blocks.find(request.lease.block);
  if (at == file->blocks.end() || at->second.lease != request.lease) return Empty{};
  BlockState& block = at->second;
  for (const LogPiece& piece : request.pieces) block.log.insert(piece);
  block.lease = {};
  if (request.recalled) ++block.recalls;
  if (block.empty()) file->blocks.erase(at);
  return Empty{};
}

// ---- Reads ------------------------------------------------------------------------------------

Result<ResolveReply> BlockHomes::on(const Resolve& request) {
  DEDUP_ASSIGN(const File* file, find(request.identity));
  ResolveReply reply;
  reply.base = file->base;
  reply.ranges.reserve(request.ranges.size());
  for (const ByteRange& range : request.ranges) {
    reply.ranges.push_back(resolve(request.identity, *file, range));
    add_lease(*file, range.offset / kBlockSpan, reply.leases);
  }
  return reply;
}

ResolvedRange BlockHomes::resolve(const Id128& identity, const File& file, const ByteRange& range) {
  const std::uint64_t number = range.offset / kBlockSpan;
  const auto begin = static_cast<std::uint32_t>(range.offset % kBlockSpan);
  const auto end = static_cast<std::uint32_t>(begin + range.length);
  ResolvedRange resolved;
  if (const auto at = file.blocks.find(number); at != file.blocks.end()) {
    const BlockState& block = at->second;
    const std::uint32_t limit = std::min(end, part_below(file.committing_limit, number));
    resolved.content = plan::slice(block.committing, begin, limit);
    plan::overlay(resolved.content, plan::slice(block.fresh, begin, end));
    resolved.log = block.log.slice(begin, end);
  }
  const std::vector<plan::Extent> logged = plan::extents_of(resolved.log);
  plan::erase(resolved.content, logged);

  const std::uint32_t limit = std::min(end, part_below(file.base_limit, number));
  if (begin >= limit) return resolved;
  if (file.base.is_zero()) {
    resolved.plain_end = limit;
    return resolved;
  }
  std::vector<plan::Extent> missing =
      plan::uncovered(resolved.content, gaps_between(logged, begin, end));
  // Of what is missing, the base has only what lies below the limit.
  while (!missing.empty() && missing.back().begin >= limit) missing.pop_back();
  if (missing.empty()) return resolved;
  if (range.length >= kOwnBase) {
    resolved.base_end = limit;
    return resolved;
  }
  const Block* base = bases_.find(identity, number);
  if (base == nullptr) {
    resolved.base_needed = true;
    return resolved;
  }
  Block content = plan::slice(*base, begin, limit);
  plan::erase(content, logged);
  plan::underlay(resolved.content, std::move(content));
  return resolved;
}

Result<Empty> BlockHomes::on(const InstallBase& request) {
  DEDUP_ASSIGN(const File* file, find(request.identity));
  if (file->base.is_zero() || file->base != request.attempt) return Empty{};
  for (const store::EncodedBlock& block : request.blocks) {
    if (bases_.find(request.identity, block.number) != nullptr) continue;
    // What is kept serves others: it is checked by what its shard has for it.
    DEDUP_ASSIGN(Block content, open_base_block(block, request.stores.nodes));
    bases_.insert(request.identity, block.number, std::move(content));
  }
  return Empty{};
}

// ---- Commits ----------------------------------------------------------------------------------

Result<SnapshotReply> BlockHomes::on(const Snapshot& request) {
  DEDUP_ASSIGN(File * file, find(request.identity));
  DEDUP_TRY(check_attempt(request.attempt));
  if (file->attempt != request.attempt) {
    if (request.cursor != 0) {
      return Status(Code::kInternal, "the snapshot of attempt " + request.attempt.hex() +
                                         " is not there any more: another commit of file " +
                                         request.identity.hex() + " has begun");
    }
    end_snapshot(*file, false);
    begin_snapshot(*file, request.attempt);
  }
  SnapshotReply reply;
  reply.base_limit = file->snapshot_base_limit;
  std::size_t size = 0;
  auto at = file->blocks.lower_bound(request.cursor);
  for (; at != file->blocks.end() && size < kPayload; ++at) {
    if (at->second.committing.empty()) continue;
    size += plan::message_size_of(at->second.committing);
    reply.blocks.push_back({at->first, at->second.committing});
  }
  reply.done = at == file->blocks.end();
  if (!reply.done) reply.cursor = at->first;
  return reply;
}

void BlockHomes::begin_snapshot(File& file, const Id128& attempt) {
  file.attempt = attempt;
  file.snapshot_base_limit = file.base_limit;
  file.committing_limit = kNoLimit;
  for (auto& [number, block] : file.blocks) {
    block.committing = std::move(block.fresh);
    block.fresh = {};
    plan::compact_placements(block.committing);
  }
}

void BlockHomes::end_snapshot(File& file, bool committed) {
  for (auto at = file.blocks.begin(); at != file.blocks.end();) {
    BlockState& block = at->second;
    if (!committed && !block.committing.empty()) {
      plan::truncate(block.committing, part_below(file.committing_limit, at->first));
      plan::overlay(block.committing, block.fresh);
      block.fresh = std::move(block.committing);
    }
    block.committing = {};
    at = block.empty() ? file.blocks.erase(at) : std::next(at);
  }
  file.attempt = {};
}

Result<Empty> BlockHomes::on(const EndCommit& request) {
  DEDUP_ASSIGN(File * file, find(request.identity));
  DEDUP_TRY(check_attempt(request.attempt));
  if (file->attempt == request.attempt) {
    end_snapshot(*file, request.committed);
    if (request.committed) file->base_limit = file->committing_limit;
  }
  if (request.committed && file->base != request.attempt) {
    file->base = request.attempt;
    bases_.erase(request.identity);
  }
  return Empty{};
}

}  // namespace dedup::service
