#include "engine/chunks/chunk_writer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/hasher.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kClaimsAtOnce = 16384;
constexpr std::size_t kRegistrationsAtOnce = 32768;
// Bytes of chunks in a message: few enough that it stays in the processors' caches on its way.
constexpr std::size_t kPutAtOnce = std::size_t{1} << 20;
// A new segment is begun beyond this, so that space is freed in parts.
constexpr std::uint64_t kLargeSegment = std::uint64_t{1} << 30;

}  // namespace

Status ChunkWriter::put_away(std::unique_ptr<store::SegmentWriter>& segment) {
  DEDUP_TRY(segment->write_out());
  full_.push_back(std::move(segment));
  return Status::ok();
}

void ChunkWriter::put_away_log() {
  if (log_) full_.push_back(std::move(log_));
}

bool ChunkWriter::stands_in_log(const StoredChunk& chunk) const {
  return log_ && !store::has_header(chunk.fingerprint) &&
         log_->place_of(chunk.data) != store::AdoptedLog::kNowhere;
}

Status ChunkWriter::append(std::span<const StoredChunk> run, store::SegmentUse use, bool claims) {
  while (!run.empty()) {
    const bool in_log = stands_in_log(run.front());
    const auto other = std::ranges::find_if(
        run, [&](const StoredChunk& chunk) { return stands_in_log(chunk) != in_log; });
    const auto now = run.first(static_cast<std::size_t>(other - run.begin()));
    DEDUP_TRY(in_log ? leave_in_log(now) : write(now, use, claims));
    run = run.subspan(now.size());
  }
  return Status::ok();
}

Status ChunkWriter::leave_in_log(std::span<const StoredChunk> run) {
  std::array<store::SegmentChunk, store::kRunChunks> chunks;
  for (std::size_t i = 0; i < run.size(); ++i) chunks[i] = {run[i].fingerprint, run[i].data};
  std::array<store::ChunkLocation, store::kRunChunks> locations;
  DEDUP_TRY(log_->append({chunks.data(), run.size()}, {locations.data(), run.size()}));
  take(run, log_->number(), locations, false);
  if (flush_) log_->start_write_back(disk_);
  return Status::ok();
}

void ChunkWriter::take(std::span<const StoredChunk> run, std::uint64_t number,
                       std::span<const store::ChunkLocation> locations, bool claims) {
  if (segment_from_.empty() || segment_from_.back().second != number) {
    segment_from_.emplace_back(taken_.size(), number);
  }
  for (std::size_t i = 0; i < run.size(); ++i) {
    const store::ChunkLocation& at = locations[i];
    const bool claimed = claims && !run[i].single;
    taken_.push_back({run[i].fingerprint, at.offset, at.length, claimed, run[i].placement});
    bytes_stored_ += at.length;
  }
}

Status ChunkWriter::write(std::span<const StoredChunk> run, store::SegmentUse use, bool claims) {
  std::unique_ptr<store::SegmentWriter>& segment = segment_for(use);
  std::array<store::SegmentChunk, store::kRunChunks> chunks;
  for (std::size_t i = 0; i < run.size(); ++i) chunks[i] = {run[i].fingerprint, run[i].data};
  std::array<store::ChunkLocation, store::kRunChunks> locations;
  for (;;) {
    if (segment && (segment->size() >= kLargeSegment || segment->is_full())) {
      DEDUP_TRY(put_away(segment));
    }
    if (!segment) {
      DEDUP_ASSIGN(const service::NumberReply reply,
                   client_.call(client_.self(), service::OpenSegment{identity_}));
      DEDUP_ASSIGN(segment, store_.create_segment(reply.number, use));
    }
    const Status status =
        segment->append({chunks.data(), run.size()}, {locations.data(), run.size()});
    if (status.is_ok()) break;
    // Another one, elsewhere, takes it.
    if (!segment->is_full()) return status;
  }
  // After the segment's own checksums were made: these seal nothing that changed before.
  for (const StoredChunk& chunk : run) {
    if (is_single(chunk.fingerprint)) continue;  // the name is the checksum
    if (fast_hash(chunk.data).low != chunk.checksum) {
      return {Code::kIo, "a chunk's bytes have changed between being cut and being stored"};
    }
  }
  take(run, segment->number(), locations, claims);
  if (flush_) segment->start_write_back(disk_);
  return Status::ok();
}

Result<std::vector<StoredChunk>> ChunkWriter::granted(std::span<const StoredChunk> copies,
                                                      const service::DumpRound& round) {
  service::Claim request{identity_, {}, round, {}};
  for (const StoredChunk& chunk : copies) {
    if (chunk.single) continue;
    request.fingerprints.push_back(chunk.fingerprint);
    request.yields.push_back(chunk.yields ? 1 : 0);
  }
  service::ClaimReply reply;
  if (!request.fingerprints.empty()) {
    DEDUP_ASSIGN(reply, client_.call(client_.self(), request));
  }
  if (reply.granted.size() != request.fingerprints.size()) {
    return Status(Code::kInternal, "a service answered a claim with a wrong count");
  }
  std::vector<StoredChunk> mine;
  mine.reserve(copies.size());
  std::size_t asked = 0;
  for (const StoredChunk& chunk : copies) {
    if (chunk.single || reply.granted[asked++] != 0) mine.push_back(chunk);
  }
  return mine;
}

Status ChunkWriter::append_all(std::span<const StoredChunk>& rest, store::SegmentUse use,
                               bool claims) {
  while (!rest.empty()) {
    const auto run = rest.first(std::min(rest.size(), store::kRunChunks));
    DEDUP_TRY(append(run, use, claims));
    rest = rest.subspan(run.size());
  }
  return Status::ok();
}

Status ChunkWriter::keep(std::span<const StoredChunk> chunks) {
  if (!store_.has_tiers) return append_all(chunks, store::SegmentUse::kOwn, false);
  std::vector<StoredChunk> firsts, seconds;
  for (const StoredChunk& chunk : chunks) (chunk.is_second ? seconds : firsts).push_back(chunk);
  std::span<const StoredChunk> rest = firsts;
  DEDUP_TRY(append_all(rest, store::SegmentUse::kOwn, false));
  rest = seconds;
  return append_all(rest, store::SegmentUse::kCopies, false);
}

Status ChunkWriter::store_copies(std::span<const StoredChunk> chunks,
                                 const service::DumpRound& round) {
  while (!chunks.empty()) {
    const auto batch = chunks.first(std::min(chunks.size(), kClaimsAtOnce));
    chunks = chunks.subspan(batch.size());
    DEDUP_ASSIGN(const std::vector<StoredChunk> mine, granted(batch, round));
    std::span<const StoredChunk> rest = mine;
    const Status status = append_all(rest, store::SegmentUse::kCopies, true);
    // What was claimed and not appended is given back with the rest.
    for (const StoredChunk& chunk : rest) {
      if (!chunk.single) taken_.push_back({chunk.fingerprint, 0, 0, 1, 0});
    }
    DEDUP_TRY(status);
  }
  return Status::ok();
}

Status ChunkWriter::write_out() {
  for (const auto* segment : {&segment_, &for_copies_}) {
    if (*segment) DEDUP_TRY((*segment)->write_out());
  }
  return Status::ok();
}

Status ChunkWriter::register_all() {
  NumberedInMessages numbers(placements_);
  std::size_t part = 0;
  for (std::size_t begin = 0; begin < taken_.size(); begin += kRegistrationsAtOnce) {
    service::Register request{identity_, {}, {}};
    const std::size_t end = std::min(taken_.size(), begin + kRegistrationsAtOnce);
    request.chunks.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      while (part + 1 < segment_from_.size() && segment_from_[part + 1].first <= i) ++part;
      const Taken& c = taken_[i];
      const auto corrected = corrected_.find(c.placement);
      const std::uint32_t placement =
          corrected == corrected_.end() ? c.placement : corrected->second;
      request.chunks.push_back({c.fingerprint,
                                {segment_from_[part].second, c.offset, c.length},
                                numbers.number(placement, request.placements)});
    }
    numbers.next_message();
    DEDUP_TRY(client_.call(client_.self(), request).status());
  }
  return Status::ok();
}

Status ChunkWriter::release_all() {
  service::Release request{identity_, {}};
  const auto send = [&]() -> Status {
    if (request.fingerprints.empty()) return Status::ok();
    DEDUP_TRY(client_.call(client_.self(), request).status());
    request.fingerprints.clear();
    return Status::ok();
  };
  for (const Taken& taken : taken_) {
    if (taken.claimed == 0) continue;
    request.fingerprints.push_back(taken.fingerprint);
    if (request.fingerprints.size() == kClaimsAtOnce) DEDUP_TRY(send());
  }
  return send();
}

Status ChunkWriter::settle(bool succeeded) {
  const Status status = succeeded ? register_all() : release_all();
  // A segment that failed stays failed; what is registered in it was written out before.
  if (!succeeded) {
    segment_.reset();
    for_copies_.reset();
  }
  taken_ = {};
  segment_from_ = {};
  placements_ = {};
  corrected_ = {};
  bytes_stored_ = 0;
  return status;
}

Status ChunkWriter::put(NodeIndex node, std::span<const StoredChunk> chunks) {
  NumberedInMessages numbers(placements_);
  std::optional<service::Client::Pending<service::PutChunks>> before;
  while (!chunks.empty()) {
    service::PutChunks request{identity_, {}, {}};
    std::size_t bytes = 0;
    std::size_t count = 0;
    while (count < chunks.size() && (count == 0 || bytes < kPutAtOnce)) {
      const StoredChunk& chunk = chunks[count++];
      request.chunks.push_back(service::PutChunk::sealed(
          chunk.fingerprint, numbers.number(chunk.placement, request.placements),
          service::ChunkBytes::of(chunk.data)));
      bytes += chunk.data.size() + sizeof(service::PutChunk);
    }
    numbers.next_message();
    chunks = chunks.subspan(count);
    auto now = client_.start(node, request);
    if (before) DEDUP_TRY(before->wait().status());
    before = std::move(now);
  }
  return before ? before->wait().status() : Status::ok();
}

Status ChunkWriter::finish_segments(bool flush) {
  // Those of a commit that was given up before it waited for them.
  DEDUP_TRY(end_flushes());
  for (auto* segment : {&segment_, &for_copies_}) {
    if (!*segment) continue;
    const Status status = (*segment)->write_out();
    if (!status.is_ok()) {
      segment->reset();
      return status;
    }
  }
  if (!flush) {
    full_.clear();
    return Status::ok();
  }
  for (const auto& segment : full_) DEDUP_TRY(segment->begin_flush(disk_));
  for (const auto* segment : {&segment_, &for_copies_}) {
    if (*segment) DEDUP_TRY((*segment)->begin_flush(disk_));
  }
  return Status::ok();
}

// What the disk has of a segment that failed is not known, and another flush would not tell: its
// chunks are lost. If the service cannot be told, it cannot commit them either.
Status ChunkWriter::end_flushes() {
  Status status;
  const auto failed = [&](const std::unique_ptr<store::SegmentWriter>& segment) {
    const Status one = segment->end_flush();
    if (one.is_ok()) return false;
    if (status.is_ok()) status = one;
    (void)client_.call(client_.self(), service::ForgetSegment{identity_, segment->number()});
    return true;
  };
  std::erase_if(full_, failed);
  for (auto* segment : {&segment_, &for_copies_}) {
    if (*segment && failed(*segment)) segment->reset();
  }
  return status;
}

Status ChunkWriter::wait_for_flush() {
  const Status status = end_flushes();
  full_.clear();
  return status;
}

void ChunkWriter::new_segment() {
  // Others who commit must not rely on a segment whose flush failed.
  (void)end_flushes();
  segment_.reset();
  for_copies_.reset();
  log_.reset();
  full_.clear();
}

}  // namespace dedup::engine
