#include "test/unit/memory_store_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hasher.h"
#include "base/numbered.h"
#include "base/piece.h"
#include "store/index_runs.h"

namespace dedup::test {
namespace {

using store::ChunkLocation;
using store::ChunkSeal;

// Offsets begin there, so that 0 is none.
constexpr std::uint64_t kBegin = 64;

class SegmentWriter final : public store::SegmentWriter {
 public:
  SegmentWriter(std::shared_ptr<MemorySegment> segment, std::uint64_t number, TakeSpace take)
      : segment_(std::move(segment)), number_(number), take_(std::move(take)) {
    segment_->size = end_ = kBegin;
  }

  using store::SegmentWriter::append;
  Status append(std::span<const store::SegmentChunk> chunks,
                std::span<ChunkLocation> locations) override {
    DEDUP_TRY(failure_);
    if (chunks.size() != locations.size()) return {Code::kArgument, "no room for locations"};
    for (const store::SegmentChunk& chunk : chunks) {
      if (chunk.data.empty() || chunk.data.size() > kMaxChunkSize) {
        return {Code::kArgument, "a chunk of that size"};
      }
    }
    // What is appended together and has no header stands together, behind a list.
    for (const store::SegmentChunk& chunk : chunks) {
      if (!store::has_header(chunk.fingerprint)) end_ += store::kGroupEntrySize;
    }
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const auto length = static_cast<std::uint32_t>(chunks[i].data.size());
      locations[i] = {number_, end_, length};
      waiting_.emplace(end_, MemorySegment::Chunk{chunks[i].fingerprint,
                                                  {chunks[i].data.begin(), chunks[i].data.end()}});
      end_ = store::chunk_end(chunks[i].fingerprint, locations[i]);
    }
    return Status::ok();
  }
  Status write_out() override {
    DEDUP_TRY(failure_);
    failure_ = take_(end_ - segment_->size);
    DEDUP_TRY(failure_);
    segment_->chunks.merge(waiting_);
    segment_->size = end_;
    return Status::ok();
  }
  Status flush() override { return write_out(); }
  Status begin_flush(Worker&) override { return write_out(); }
  Status end_flush() override { return failure_; }
  void start_write_back(Worker&) override {}
  std::uint64_t number() const override { return number_; }
  std::uint64_t size() const override { return end_; }

 private:
  std::shared_ptr<MemorySegment> segment_;
  std::uint64_t number_;
  TakeSpace take_;
  std::map<std::uint64_t, MemorySegment::Chunk> waiting_;
  std::uint64_t end_ = 0;
  Status failure_;
};

class SegmentReader final : public store::SegmentReader {
 public:
  explicit SegmentReader(std::shared_ptr<const MemorySegment> segment)
      : segment_(std::move(segment)) {}

  Status read_run(std::span<const ChunkLocation> locations,
                  std::span<const Fingerprint> fingerprints,
                  std::span<const std::span<std::byte>> outs,
                  std::span<ChunkSeal> seals) const override {
    if (locations.size() != fingerprints.size() || locations.size() != outs.size()) {
      return {Code::kArgument, "a run of chunks with parts missing"};
    }
    for (std::size_t i = 0; i < locations.size(); ++i) {
      if (outs[i].size() != locations[i].length || outs[i].empty()) {
        return {Code::kArgument, "a buffer of another size"};
      }
      ChunkSeal* const seal = seals.empty() ? nullptr : &seals[i];
      if (!get(locations[i].offset, fingerprints[i], outs[i], seal)) {
        return {Code::kCorrupt, "not the chunk " + fingerprints[i].hex()};
      }
    }
    return Status::ok();
  }
  std::size_t read_following(std::uint64_t offset, std::span<const Fingerprint> fingerprints,
                             std::span<const std::span<std::byte>> outs,
                             std::span<ChunkSeal> seals) const override {
    std::size_t done = 0;
    for (; done < std::min(fingerprints.size(), outs.size()); ++done) {
      ChunkSeal* const seal = seals.empty() ? nullptr : &seals[done];
      if (!get(offset, fingerprints[done], outs[done], seal)) break;
      const auto length = static_cast<std::uint32_t>(outs[done].size());
      offset = store::chunk_end(fingerprints[done], {0, offset, length});
    }
    return done;
  }
  // It has no groups.
  std::optional<store::ChunkGroup> group_at(std::uint64_t, const Fingerprint&,
                                            std::uint32_t) const override {
    return std::nullopt;
  }

 private:
  bool get(std::uint64_t offset, const Fingerprint& fingerprint, std::span<std::byte> out,
           ChunkSeal* seal) const {
    const auto found = segment_->chunks.find(offset);
    if (found == segment_->chunks.end()) return false;
    const MemorySegment::Chunk& chunk = found->second;
    if (chunk.is_spoiled || chunk.fingerprint != fingerprint || chunk.data.size() != out.size()) {
      return false;
    }
    std::memcpy(out.data(), chunk.data.data(), out.size());
    if (seal != nullptr && store::has_header(fingerprint)) {
      *seal = store::seal_of({fingerprint, chunk.data});
    }
    return true;
  }

  std::shared_ptr<const MemorySegment> segment_;
};

class LogWriter final : public store::LogWriter {
 public:
  LogWriter(std::shared_ptr<MemoryLog> log, std::uint64_t number, TakeSpace take)
      : log_(std::move(log)), number_(number), take_(std::move(take)) {
    log_->first = kBegin;
  }

  Result<std::uint64_t> append(std::span<const std::byte> data) override {
    DEDUP_TRY(take_(data.size()));
    const std::uint64_t at = log_->first + log_->bytes.size();
    log_->bytes.insert(log_->bytes.end(), data.begin(), data.end());
    return at;
  }
  Result<store::LogView> view(std::uint64_t offset, std::uint64_t bytes) override {
    auto copy = std::make_shared<Bytes>(bytes);
    if (bytes == 0 || !read_from(log_)->read(offset, *copy).is_ok()) {
      return Status(Code::kIo, "not in the log");
    }
    const std::span<const std::byte> there = *copy;
    return store::LogView(std::move(copy), there);
  }
  Result<std::unique_ptr<store::LeaseTable>> make_leases() override {
    log_->leases = std::make_shared<std::vector<std::uint64_t>>(store::LeaseTable::kBytes /
                                                                sizeof(std::uint64_t));
    return leases_of(*log_);
  }
  Status clear(Space) override {
    log_->first += log_->bytes.size();
    log_->bytes = {};
    return Status::ok();
  }
  Status flush() override { return Status::ok(); }
  std::uint64_t number() const override { return number_; }
  std::uint64_t size() const override { return log_->bytes.size(); }

 private:
  std::shared_ptr<MemoryLog> log_;
  std::uint64_t number_;
  TakeSpace take_;
};

class LogReader final : public store::LogReader {
 public:
  explicit LogReader(std::shared_ptr<const MemoryLog> log) : log_(std::move(log)) {}

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset < log_->first) return {Code::kNotFound, "cleared from the log"};
    const std::uint64_t at = offset - log_->first;
    if (at > log_->bytes.size() || log_->bytes.size() - at < out.size()) {
      return {Code::kCorrupt, "never written to the log"};
    }
    std::memcpy(out.data(), log_->bytes.data() + at, out.size());
    return Status::ok();
  }

 private:
  std::shared_ptr<const MemoryLog> log_;
};

class IndexWriter final : public store::IndexWriter {
 public:
  IndexWriter(const Id128& attempt, std::vector<std::shared_ptr<const MemoryIndex>> older,
              std::uint64_t dead, std::function<void(std::shared_ptr<const MemoryIndex>)> finished)
      : index_(std::make_shared<MemoryIndex>()), finished_(std::move(finished)) {
    index_->attempt = attempt;
    index_->older = std::move(older);
    index_->dead = dead;
  }

  std::uint32_t number(const plan::Placement& placement) override {
    return placements_.number(placement) + 1;
  }
  Status add(const store::IndexEntry& entry) override {
    auto& entries = index_->entries;
    if (!entries.empty() && !(entries.back().fingerprint < entry.fingerprint)) {
      return {Code::kInternal, "chunk " + entry.fingerprint.hex() + " is not in its place"};
    }
    if (entry.placement > placements_.size()) {
      return {Code::kInternal, "chunk " + entry.fingerprint.hex() + " has an unknown placement"};
    }
    entries.push_back(entry);
    const std::uint64_t segment = entry.location.segment;
    auto& use = uses_.try_emplace(segment, Use{segment}).first->second;
    use.live_bytes += store::stored_size(entry.fingerprint, entry.location.length);
    use.end = std::max(use.end, store::chunk_end(entry.fingerprint, entry.location));
    return Status::ok();
  }
  Status finish(bool) override {
    for (const auto& [segment, use] : uses_) index_->uses.push_back(use);
    for (plan::Placement& one : placements_.list()) index_->placements.push_back(std::move(one));
    finished_(std::move(index_));
    return Status::ok();
  }

 private:
  std::shared_ptr<MemoryIndex> index_;
  std::function<void(std::shared_ptr<const MemoryIndex>)> finished_;
  using Use = store::IndexReader::SegmentUse;
  std::map<std::uint64_t, Use> uses_;
  Numbered<plan::Placement> placements_;
};

// Of one run.
class IndexReader final : public store::IndexReader {
 public:
  explicit IndexReader(std::shared_ptr<const MemoryIndex> index) : index_(std::move(index)) {}

  std::uint64_t size() const override { return index_->entries.size(); }
  const Id128& attempt() const override { return index_->attempt; }
  std::vector<Run> runs() const override { return {{attempt(), size()}}; }
  std::uint64_t dead_bytes() const override { return index_->dead; }
  Result<store::IndexEntry> find(const Fingerprint& fingerprint) const override {
    DEDUP_ASSIGN(const std::uint64_t i, position(fingerprint));
    return index_->entries[i];
  }
  const plan::Placement& placement(std::uint32_t number) const override {
    return index_->placements[number < index_->placements.size() ? number : 0];
  }
  Result<std::uint64_t> position(const Fingerprint& fingerprint) const override {
    const std::uint64_t i = lower_bound(fingerprint);
    if (i == size() || index_->entries[i].fingerprint != fingerprint) return not_found();
    return i;
  }
  Result<store::IndexEntry> at(std::uint64_t i) const override {
    if (i >= size()) return Status(Code::kArgument, "an index has no such entry");
    return index_->entries[i];
  }
  Result<store::IndexEntry> find_content(const Fingerprint& content) const override {
    if (kind_of(content) != NameKind::kKeyed) return find(content);
    const std::uint64_t i = lower_bound(name_of_single(content, 0));
    if (i == size() || content_of(index_->entries[i].fingerprint) != content) return not_found();
    return index_->entries[i];
  }
  const std::vector<SegmentUse>& segments() const override { return index_->uses; }

 private:
  std::uint64_t lower_bound(const Fingerprint& fingerprint) const {
    const auto& entries = index_->entries;
    const auto found = std::lower_bound(
        entries.begin(), entries.end(), fingerprint,
        [](const store::IndexEntry& entry, const Fingerprint& f) { return entry.fingerprint < f; });
    return static_cast<std::uint64_t>(found - entries.begin());
  }
  static Status not_found() { return {Code::kNotFound, "the index has no such chunk"}; }

  std::shared_ptr<const MemoryIndex> index_;
};

class ShardWriter final : public store::ShardWriter {
 public:
  ShardWriter(const store::ShardDigest& digest, std::shared_ptr<const MemoryShard> base,
              TakeSpace take, std::function<void(std::shared_ptr<const MemoryShard>)> finished)
      : digest_(digest),
        base_(std::move(base)),
        take_(std::move(take)),
        finished_(std::move(finished)) {}

  bool can_carry() const override { return base_ != nullptr; }
  Status add(const store::EncodedBlock& block) override {
    DEDUP_TRY(take_(block.bytes.size()));
    return enter(std::make_shared<const store::EncodedBlock>(block));
  }
  Result<bool> carry(const store::BlockSummary& block) override {
    if (!base_) return false;
    const auto found = base_->blocks.find(block.number);
    if (found == base_->blocks.end() || store::summary_of(*found->second) != block) return false;
    DEDUP_TRY(enter(found->second));
    return true;
  }
  Status finish() override {
    for (const auto& [number, block] : shard_->blocks) digest_.add(store::summary_of(*block));
    shard_->digest = digest_.digest();
    finished_(std::move(shard_));
    return Status::ok();
  }

 private:
  Status enter(std::shared_ptr<const store::EncodedBlock> block) {
    const std::uint64_t number = block->number;
    if (shard_->blocks.emplace(number, std::move(block)).second) return Status::ok();
    return {Code::kArgument, "block " + std::to_string(number) + " of a recipe twice"};
  }

  store::ShardDigest digest_;
  std::shared_ptr<const MemoryShard> base_;
  TakeSpace take_;
  std::function<void(std::shared_ptr<const MemoryShard>)> finished_;
  std::shared_ptr<MemoryShard> shard_ = std::make_shared<MemoryShard>();
};

class ShardReader final : public store::ShardReader {
 public:
  explicit ShardReader(std::shared_ptr<const MemoryShard> shard) : shard_(std::move(shard)) {}

  Result<store::EncodedBlock> read_encoded(std::uint64_t block_number) const override {
    const auto found = shard_->blocks.find(block_number);
    if (found == shard_->blocks.end()) return store::with_checksum(block_number, {});
    return *found->second;
  }
  std::vector<std::uint64_t> block_numbers() const override {
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, block] : shard_->blocks) numbers.push_back(number);
    return numbers;
  }

 private:
  std::shared_ptr<const MemoryShard> shard_;
};

}  // namespace

std::uint64_t MemoryGeneration::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [number, shard] : shards) {
    for (const auto& [at, block] : shard->blocks) sum += block->bytes.size();
  }
  return sum + (index ? index->entries.size() * sizeof(store::IndexEntry) : 0);
}

std::uint64_t MemoryFile::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [number, segment] : segments) sum += segment->size;
  for (const auto& [number, log] : logs) sum += log->bytes.size();
  for (const auto& [attempt, generation] : generations) sum += generation.bytes();
  return sum;
}

std::unique_ptr<store::SegmentWriter> write_to(std::shared_ptr<MemorySegment> segment,
                                               std::uint64_t number, TakeSpace take) {
  return std::make_unique<SegmentWriter>(std::move(segment), number, std::move(take));
}

std::shared_ptr<const store::SegmentReader> read_from(
    std::shared_ptr<const MemorySegment> segment) {
  return std::make_shared<SegmentReader>(std::move(segment));
}

std::unique_ptr<store::LogWriter> write_to(std::shared_ptr<MemoryLog> log, std::uint64_t number,
                                           TakeSpace take) {
  return std::make_unique<LogWriter>(std::move(log), number, std::move(take));
}

std::shared_ptr<const store::LogReader> read_from(std::shared_ptr<const MemoryLog> log) {
  return std::make_shared<LogReader>(std::move(log));
}

std::unique_ptr<store::LeaseTable> leases_of(const MemoryLog& log) {
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(*log.leases));
  return std::make_unique<store::LeaseTable>(log.leases, bytes);
}

std::unique_ptr<store::IndexWriter> write_index(
    const Id128& attempt, std::vector<std::shared_ptr<const MemoryIndex>> older, std::uint64_t dead,
    std::function<void(std::shared_ptr<const MemoryIndex>)> finished) {
  return std::make_unique<IndexWriter>(attempt, std::move(older), dead, std::move(finished));
}

std::unique_ptr<store::IndexReader> read_from(std::shared_ptr<const MemoryIndex> index) {
  if (index->older.empty()) return std::make_unique<IndexReader>(std::move(index));
  std::vector<std::unique_ptr<store::IndexReader>> runs;
  for (const auto& run : index->older) runs.push_back(std::make_unique<IndexReader>(run));
  runs.push_back(std::make_unique<IndexReader>(std::move(index)));
  return std::make_unique<store::IndexRuns>(std::move(runs));
}

std::unique_ptr<store::ShardWriter> write_shard(
    const store::ShardDigest& digest, std::shared_ptr<const MemoryShard> base, TakeSpace take,
    std::function<void(std::shared_ptr<const MemoryShard>)> finished) {
  return std::make_unique<ShardWriter>(digest, std::move(base), std::move(take),
                                       std::move(finished));
}

Result<std::shared_ptr<const store::ShardReader>> read_from(
    std::shared_ptr<const MemoryShard> shard, const store::Digest& digest) {
  if (shard->digest != digest) return Status(Code::kCorrupt, "another shard than was asked for");
  return std::shared_ptr<const store::ShardReader>(std::make_shared<ShardReader>(std::move(shard)));
}

}  // namespace dedup::test
