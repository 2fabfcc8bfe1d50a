#include "service/file_chunks.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/hasher.h"
#include "base/numbered.h"
#include "store/chunk_reader.h"

namespace dedup::service {
namespace {

Result<store::IndexEntry> by_name(const store::IndexReader& index, const Fingerprint& name) {
  return index.find(name);
}

Result<store::IndexEntry> by_content(const store::IndexReader& index, const Fingerprint& content) {
  return index.find_content(content);
}

// A tier may come back that was away while numbers were given, with segments of a job that died, or
// that were freed since: none must have the number of another one. So each job that has the file
// begins somewhere of its own, in the next 2^40.
std::uint64_t random_gap() {
  std::array<std::uint8_t, 5> bytes;
  fill_randomly(bytes);
  std::uint64_t gap = 0;
  for (const std::uint8_t byte : bytes) gap = gap << 8 | byte;
  return gap;
}

std::uint64_t number_in(const Fingerprint& name) {
  return is_single(name) ? number_of_single(name) : FoundChunk::kShared;
}

}  // namespace

FileChunks::FileChunks(store::Store& store, const Id128& identity, const Id128& base)
    : store_(store), identity_(identity), base_(base) {}

void FileChunks::set_base(const Id128& base) {
  base_ = base;
  base_index_.reset();
  base_opened_ = false;
  distrusted_.clear();
  is_index_damaged_ = false;
  segment_sizes_.clear();
}

void FileChunks::set_donor(std::unique_ptr<store::IndexReader> index) {
  base_index_ = std::move(index);
  base_opened_ = true;
}

// ---- What is here -----------------------------------------------------------------------------

// A store that took no part in the generation has no index of it. One that is damaged is as good as
// none: other nodes have the chunks, and the next commit stores them here again. An error of the
// disk may pass: what it hides must not be taken for gone.
const store::IndexReader* FileChunks::base_index() {
  if (!base_opened_ && !base_.is_zero()) {
    auto opened = store_.index(identity_, base_);
    if (!opened.is_ok() && opened.status().code() == Code::kIo) return nullptr;
    if (opened.is_ok()) base_index_ = std::move(*opened);
  }
  base_opened_ = true;
  return base_index_.get();
}

std::uint64_t FileChunks::segment_size(std::uint64_t segment) {
  const auto size = store_.segment_size(identity_, segment);
  if (size.is_ok()) return segment_sizes_[segment] = *size;
  // Only one that is not there is gone for good; another error may pass.
  if (size.status().code() == Code::kNotFound) segment_sizes_[segment] = 0;
  return 0;
}

bool FileChunks::present(const Fingerprint& fingerprint, const store::ChunkLocation& location) {
  if (forgotten_.contains(location.segment)) return false;
  const std::uint64_t end = store::chunk_end(fingerprint, location);
  const auto known = segment_sizes_.find(location.segment);
  if (known == segment_sizes_.end()) return end <= segment_size(location.segment);
  if (end <= known->second) return true;
  return open_.contains(location.segment) && end <= segment_size(location.segment);
}

template <typename Find, typename Found>
void FileChunks::find_in_base(std::span<const Fingerprint> fingerprints,
                              std::vector<std::uint32_t> which, const Find& find,
                              const Found& found) {
  const store::IndexReader* base = base_index();
  if (base == nullptr || base->size() == 0) return;
  // In the index's order, so that each of its pages is read once.
  std::sort(which.begin(), which.end(),
            [&](std::uint32_t a, std::uint32_t b) { return fingerprints[a] < fingerprints[b]; });
  for (const std::uint32_t i : which) {
    const Result<store::IndexEntry> entry = find(*base, fingerprints[i]);
    if (!entry.is_ok()) {
      is_index_damaged_ = is_index_damaged_ || entry.status().code() != Code::kNotFound;
      continue;
    }
    if (distrusted_.contains(entry->fingerprint)) continue;
    if (present(entry->fingerprint, entry->location)) found(i, *entry);
  }
}

std::vector<store::ChunkLocation> FileChunks::locate(std::span<const Fingerprint> fingerprints) {
  std::vector<store::ChunkLocation> out(fingerprints.size());
  std::vector<std::uint32_t> rest;
  for (std::uint32_t i = 0; i < fingerprints.size(); ++i) {
    if (index_.find(fingerprints[i], &out[i])) {
      if (present(fingerprints[i], out[i])) continue;
      out[i] = {};
      index_.forget(fingerprints[i]);
    }
    rest.push_back(i);
  }
  find_in_base(fingerprints, std::move(rest), by_name,
               [&](std::uint32_t i, const store::IndexEntry& entry) { out[i] = entry.location; });
  return out;
}

LookReply FileChunks::look(const Look& request) {
  LookedUp& looked_up = looked_up_[request.round.handle];
  if (looked_up.round != request.round.number) looked_up = {request.round.number, {}, true};
  LookReply reply;
  if (const store::IndexReader* base = base_index()) reply.base = base->attempt();
  const bool was_searched = !request.searched.is_zero() && request.searched == reply.base;
  reply.held.resize(request.names.size());
  Numbered<plan::Placement> placements;
  Numbered<plan::Placement> of_base;
  // By chunk; what came since the commit, then the rest.
  std::vector<FoundChunk> found(request.names.size());
  std::vector<std::uint32_t> rest;
  for (std::uint32_t n = 0; n < request.names.size(); ++n) {
    Fingerprint name;
    store::ChunkLocation location;
    const plan::Placement* placement = nullptr;
    if (index_.find_content(request.names[n], name)) {
      index_.find(name, &location, &placement);
      if (present(name, location)) {
        reply.held[n] = Held::kSince;
        found[n] = {number_in(name), placements.number(*placement)};
        continue;
      }
      index_.forget(name);
    }
    if (!was_searched) rest.push_back(n);
  }
  find_in_base(request.names, std::move(rest), by_content,
               [&](std::uint32_t n, const store::IndexEntry& entry) {
                 reply.held[n] = Held::kCommitted;
                 found[n] = {number_in(entry.fingerprint),
                             of_base.number(base_index_->placement(entry.placement))};
               });
  for (std::uint32_t n = 0; n < request.names.size(); ++n) {
    if (reply.held[n] != Held::kNot) {
      reply.found.push_back(found[n]);
    } else if (request.shared[n] != 0) {
      looked_up.names.push_back(request.names[n]);
      looked_up.sorted = false;
    }
  }
  reply.placements = placements.list();
  reply.committed = of_base.list();
  return reply;
}

class FileChunks::Reader : public store::ChunkReader {
 public:
  explicit Reader(FileChunks& file) : file_(file) {}

 private:
  std::optional<std::vector<store::ChunkLocation>> locate(
      std::span<const Fingerprint> fingerprints) override {
    return file_.locate(fingerprints);
  }
  std::shared_ptr<const store::SegmentReader> segment(std::uint64_t number) override {
    const auto reader = file_.store_.segment(file_.identity_, number);
    return reader.is_ok() ? *reader : nullptr;
  }

  FileChunks& file_;
};

Result<ChunksReply> FileChunks::read(std::span<const NamedChunk> chunks) {
  std::uint64_t bytes = 0;
  for (const NamedChunk& chunk : chunks) {
    bytes += 1 + sizeof(store::ChunkSeal) + std::uint64_t{chunk.length};
  }
  if (bytes + 1024 > kMaxMessage) {
    return Status(Code::kArgument, std::to_string(bytes) + " bytes of chunks asked for at once");
  }
  ChunksReply reply(chunks);
  const std::vector<std::span<std::byte>> room = reply.room(chunks);
  std::vector<store::ChunkSeal> seals(chunks.size());
  std::vector<store::ChunkTarget> targets;
  targets.reserve(chunks.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    targets.push_back({chunks[i].fingerprint, room[i], &seals[i]});
  }
  const std::vector<std::size_t> missing = Reader(*this).read(targets);
  reply.set_seals(chunks, seals);
  reply.leave_out(chunks, missing);
  return reply;
}

// ---- What comes in ----------------------------------------------------------------------------

Result<std::uint64_t> FileChunks::next_number() {
  if (next_number_ == 0) {
    std::uint64_t last = 0;
    DEDUP_ASSIGN(const auto segments, store_.segments(identity_));
    for (const auto& segment : segments) last = std::max(last, segment.segment);
    DEDUP_ASSIGN(const auto logs, store_.logs(identity_));
    for (const std::uint64_t log : logs) last = std::max(last, log);
    // A segment that was lost: whoever still looks for its chunks must not find others.
    if (const store::IndexReader* base = base_index(); base != nullptr) {
      for (const auto& use : base->segments()) last = std::max(last, use.segment);
    }
    next_number_ = last + 1 + (store_.has_tiers() ? random_gap() : 0);
  }
  return next_number_;
}

Result<std::uint64_t> FileChunks::open_segment() {
  DEDUP_ASSIGN(const std::uint64_t number, next_number());
  ++next_number_;
  open_.insert(number);
  return number;
}

Result<std::uint64_t> FileChunks::open_log() {
  DEDUP_ASSIGN(const std::uint64_t number, next_number());
  ++next_number_;
  return number;
}

Status FileChunks::open_segment_of(std::uint64_t log) {
  if (log >= next_number_) {
    return {Code::kArgument, "log " + std::to_string(log) + " was never begun"};
  }
  open_.insert(log);
  segment_sizes_.erase(log);
  return Status::ok();
}

std::vector<std::uint8_t> FileChunks::claim(std::span<const Fingerprint> fingerprints) {
  const std::vector<store::ChunkLocation> locations = locate(fingerprints);
  std::vector<std::uint8_t> granted(fingerprints.size());
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    granted[i] = locations[i].length == 0 && index_.claim(fingerprints[i]) ? 1 : 0;
  }
  return granted;
}

std::vector<std::uint8_t> FileChunks::claim(const Claim& request) {
  const auto it = looked_up_.find(request.round.handle);
  if (request.yields.empty() || it == looked_up_.end() ||
      it->second.round != request.round.number) {
    return claim(request.fingerprints);
  }
  LookedUp& looked_up = it->second;
  if (!looked_up.sorted) std::sort(looked_up.names.begin(), looked_up.names.end());
  looked_up.sorted = true;
  std::vector<Fingerprint> asked;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < request.fingerprints.size(); ++i) {
    const Fingerprint& fingerprint = request.fingerprints[i];
    if (request.yields[i] != 0 && std::ranges::binary_search(looked_up.names, fingerprint))
      continue;
    asked.push_back(fingerprint);
    which.push_back(i);
  }
  std::vector<std::uint8_t> granted(request.fingerprints.size());
  const std::vector<std::uint8_t> of_asked = claim(asked);
  for (std::size_t k = 0; k < which.size(); ++k) granted[which[k]] = of_asked[k];
  return granted;
}

void FileChunks::release(std::span<const Fingerprint> fingerprints) {
  for (const Fingerprint& fingerprint : fingerprints) index_.release(fingerprint);
}

Status FileChunks::distrust(std::span<const Fingerprint> fingerprints) {
  std::vector<std::uint32_t> all(fingerprints.size());
  std::iota(all.begin(), all.end(), 0u);
  std::vector<store::ChunkLocation> locations(fingerprints.size());
  find_in_base(
      fingerprints, std::move(all), by_name,
      [&](std::uint32_t i, const store::IndexEntry& entry) { locations[i] = entry.location; });
  distrusted_.insert(fingerprints.begin(), fingerprints.end());
  FingerprintCheck check;
  Bytes buffer;
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    if (locations[i].length == 0) continue;
    const auto reader = store_.segment(identity_, locations[i].segment);
    buffer.resize(locations[i].length);
    if (!reader.is_ok() || !(*reader)->read(locations[i], fingerprints[i], buffer).is_ok()) {
      continue;
    }
    // What reads well but is not what it is named after would be taken by readers that come upon
    // it without its being looked up (store/chunk_reader.h).
    DEDUP_ASSIGN(const bool holds, check.holds(fingerprints[i], buffer));
    if (!holds) DEDUP_TRY(store_.spoil_chunk(identity_, locations[i]));
  }
  return Status::ok();
}

void FileChunks::forget(const Fingerprint& fingerprint) {
  index_.forget(fingerprint);
  distrusted_.insert(fingerprint);
}

Status FileChunks::add(const Register& request) {
  for (const Registration& chunk : request.chunks) {
    const store::ChunkLocation& l = chunk.location;
    if (chunk.placement >= request.placements.size() || !ChunkIndex::possible(l)) {
      return {Code::kArgument, "a chunk was registered at a place that cannot be"};
    }
    if (!open_.contains(l.segment)) {
      return {Code::kArgument, "a chunk was registered in segment " + std::to_string(l.segment) +
                                   ", which is not open"};
    }
    if (!present(chunk.fingerprint, l)) {
      return {Code::kIo, store::segment_text(identity_, l.segment) + ": no chunk can be at byte " +
                             std::to_string(l.offset) + ": it is gone or shorter"};
    }
  }
  std::vector<std::uint32_t> numbers;
  for (const plan::Placement& placement : request.placements) {
    numbers.push_back(index_.intern(placement));
  }
  for (const Registration& chunk : request.chunks) {
    index_.put(chunk.fingerprint, chunk.location, numbers[chunk.placement]);
  }
  return Status::ok();
}

Status FileChunks::append(const PutChunks& request, std::span<const std::uint32_t> which,
                          std::vector<store::ChunkLocation>& locations) {
  locations.resize(which.size());
  std::span<store::ChunkLocation> room(locations);
  while (!which.empty()) {
    std::vector<store::SegmentChunk> chunks;
    for (const std::uint32_t i : which.first(std::min(which.size(), store::kRunChunks))) {
      chunks.push_back({request.chunks[i].fingerprint, request.chunks[i].data.view()});
    }
    DEDUP_TRY(append(chunks, room.first(chunks.size())));
    which = which.subspan(chunks.size());
    room = room.subspan(chunks.size());
  }
  return own_->write_out();
}

Status FileChunks::append(std::span<const store::SegmentChunk> chunks,
                          std::span<store::ChunkLocation> locations) {
  for (;;) {
    if (own_ && own_->is_full()) {
      DEDUP_TRY(own_->write_out());
      own_.reset();
    }
    if (!own_) {
      DEDUP_ASSIGN(const std::uint64_t number, open_segment());
      DEDUP_ASSIGN(own_, store_.create_segment(identity_, number, store::SegmentUse::kCopies));
    }
    const Status status = own_->append(chunks, locations);
    if (status.is_ok() || !own_->is_full()) return status;
  }
}

Result<PutReply> FileChunks::put(const PutChunks& request) {
  std::vector<Fingerprint> fingerprints;
  fingerprints.reserve(request.chunks.size());
  for (const PutChunk& chunk : request.chunks) {
    if (chunk.placement >= request.placements.size()) {
      return Status(Code::kArgument, "a chunk came with a placement that is not there");
    }
    if (!store::holds({0, chunk.seal}, {chunk.fingerprint, chunk.data.view()})) {
      return Status(Code::kCorrupt,
                    "chunk " + chunk.fingerprint.hex() + " came damaged: it is not stored");
    }
    fingerprints.push_back(chunk.fingerprint);
  }
  const std::vector<std::uint8_t> granted = claim(fingerprints);
  std::vector<std::uint32_t> mine;
  for (std::uint32_t i = 0; i < granted.size(); ++i) {
    if (granted[i] != 0) mine.push_back(i);
  }
  std::vector<store::ChunkLocation> locations;
  if (!mine.empty()) {
    const Status status = append(request, mine, locations);
    if (!status.is_ok()) {
      // What the segment got before is registered and stays; the next chunks go to another one.
      for (const std::uint32_t i : mine) index_.release(fingerprints[i]);
      own_.reset();
      return status;
    }
  }
  std::vector<std::uint32_t> numbers;
  for (const plan::Placement& placement : request.placements) {
    numbers.push_back(index_.intern(placement));
  }
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < granted.size(); ++i) {
    const std::uint32_t placement = numbers[request.chunks[i].placement];
    if (granted[i] != 0) {
      index_.put(fingerprints[i], locations[next++], placement);
    } else if (store::ChunkLocation known; index_.find(fingerprints[i], &known)) {
      index_.put(fingerprints[i], known, placement);
    }
  }
  return PutReply{static_cast<std::uint32_t>(mine.size())};
}

bool FileChunks::place(const Fingerprint& fingerprint, const plan::Placement& placement) {
  store::ChunkLocation known;
  if (!index_.find(fingerprint, &known)) return false;
  index_.put(fingerprint, known, index_.intern(placement));
  return true;
}

// ---- Commit -----------------------------------------------------------------------------------

void FileChunks::begin_attempt() {
  index_.clear_marks();
  // Nobody stores anything during a commit: whoever claimed these has given up.
  index_.release_all();
  looked_up_.clear();
  segment_sizes_.clear();
}

void FileChunks::forget_shares(std::span<const Id128> stripes) {
  std::erase_if(shares_, [&](const UnitShare& share) {
    return std::find(stripes.begin(), stripes.end(), share.stripe) != stripes.end();
  });
}

// What the disk has of it is not known, and another flush would not tell.
void FileChunks::forget_segment(std::uint64_t number) {
  index_.forget_segment(number);
  open_.erase(number);
  flushed_.erase(number);
  forgotten_.insert(number);
}

Status FileChunks::flush(std::span<const std::uint64_t> segments) {
  for (const std::uint64_t segment : segments) {
    if (flushed_.contains(segment)) continue;
    const Status status = store_.flush_segment(identity_, segment);
    if (!status.is_ok()) {
      forget_segment(segment);
      return status;
    }
  }
  return Status::ok();
}

void FileChunks::committed(const Id128& base, std::uint64_t first_open,
                           std::span<const std::uint64_t> live, bool flushed) {
  set_base(base);
  index_.keep_from(first_open);
  open_.erase(open_.begin(), open_.lower_bound(first_open));
  if (flushed) flushed_ = {live.begin(), live.end()};
}

std::vector<std::uint64_t> FileChunks::open_segments() const {
  return {open_.begin(), open_.end()};
}

}  // namespace dedup::service
