#include "tools/dedupctl/generation.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/codec.h"
#include "base/fields.h"
#include "plan/block.h"
#include "tools/dedupctl/some_of_nodes.h"

namespace dedup::ctl {
namespace {

// What rank 0 tells all of the generation.
struct Selected {
  store::CommitRecord record;
  std::vector<std::uint32_t> ranks;  // for each of its stores: 1 + the rank that has it, or 0
  bool possible() const { return ranks.size() == record.stores.size(); }
};
using EncodedBlocks = std::vector<std::pair<std::uint64_t, Bytes>>;  // number, as a shard has it

constexpr std::uint64_t kNobody = std::numeric_limits<std::int64_t>::max();

}  // namespace

// ---- Part ---------------------------------------------------------------------------------------

Result<Part> Part::open(const store::Store& store, std::unique_ptr<store::Store::Lock> lock,
                        const store::CommitRecord& record, NodeIndex position) {
  Part part;
  part.store_ = &store;
  part.lock_ = std::move(lock);
  part.identity_ = record.identity;
  part.position_ = position;
  auto index = store.index(record.identity, record.attempt);
  if (index.is_ok()) {
    part.index_ = std::move(*index);
  } else if (index.status().code() != Code::kNotFound) {
    return index.status();
  }
  DEDUP_ASSIGN(const auto segments, store.segments(record.identity));
  for (const auto& segment : segments) part.sizes_[segment.segment] = segment.bytes;
  return part;
}

std::optional<Part::Found> Part::find(const Fingerprint& fingerprint) const {
  if (!index_ || bad_.contains(fingerprint)) return std::nullopt;
  const auto place = index_->position(fingerprint);
  if (!place.is_ok()) return std::nullopt;
  const auto entry = index_->at(*place);
  if (!entry.is_ok()) return std::nullopt;
  const auto size = sizes_.find(entry->location.segment);
  const bool is_there =
      size != sizes_.end() && store::chunk_end(fingerprint, entry->location) <= size->second;
  return is_there ? Found{*place, entry->location.length} : std::optional<Found>();
}

std::optional<std::uint64_t> Part::place_of(const NamedChunk& chunk) const {
  const auto found = find(chunk.fingerprint);
  return found && found->length == chunk.length ? found->place : std::optional<std::uint64_t>();
}

std::optional<std::vector<store::ChunkLocation>> Part::Reader::locate(
    std::span<const Fingerprint> fingerprints) {
  std::vector<store::ChunkLocation> locations;
  locations.reserve(fingerprints.size());
  for (const Fingerprint& fingerprint : fingerprints) {
    const auto found = part_.index_->find(fingerprint);
    locations.push_back(found.is_ok() ? found->location : store::ChunkLocation{});
  }
  return locations;
}

std::shared_ptr<const store::SegmentReader> Part::Reader::segment(std::uint64_t number) {
  const auto reader = part_.store_->segment(part_.identity_, number);
  return reader.is_ok() ? *reader : nullptr;
}

std::vector<std::size_t> Part::read(std::span<const store::ChunkTarget> chunks) {
  std::vector<std::size_t> failed;
  if (index_) {
    failed = Reader(*this).read(chunks);
  } else {
    failed.resize(chunks.size());
    std::iota(failed.begin(), failed.end(), std::size_t{0});
  }
  std::size_t next = 0;
  std::vector<std::size_t> bad;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (next < failed.size() && failed[next] == i) {
      bad.push_back(i);
      ++next;
      continue;
    }
    const auto holds = check_.holds(chunks[i].fingerprint, chunks[i].out);
    if (!holds.is_ok() || !*holds) bad.push_back(i);
  }
  return bad;
}

std::vector<Bytes> Part::read(std::span<const Fingerprint> fingerprints) {
  std::vector<Bytes> chunks;
  for (const Fingerprint& fingerprint : fingerprints) {
    const auto found = find(fingerprint);
    if (!found) return {};
    chunks.emplace_back(found->length);
  }
  std::vector<store::ChunkTarget> targets;
  for (std::size_t i = 0; i < chunks.size(); ++i) targets.push_back({fingerprints[i], chunks[i]});
  const std::vector<std::size_t> bad = read(targets);
  for (const std::size_t i : bad) distrust(fingerprints[i]);
  return bad.empty() ? std::move(chunks) : std::vector<Bytes>{};
}

// ---- Generation ---------------------------------------------------------------------------------

Result<std::unique_ptr<Generation>> Generation::open(const Ranks& ranks, const LocalStores& local,
                                                     const Catalog& catalog, const FileRow* file) {
  std::unique_ptr<Generation> generation(new Generation(ranks));
  DEDUP_TRY(generation->select(local, catalog, file));
  DEDUP_TRY(generation->read_shards());
  return generation;
}

// Tells all ranks which generation it is and who has which of its stores, and opens this process's.
Status Generation::select(const LocalStores& local, const Catalog& catalog, const FileRow* file) {
  Bytes bytes;
  if (ranks_.is_root()) {
    Selected selected{file->record(), {}};
    for (const store::StoreEntry& entry : selected.record.stores) {
      const StoreRow* const row = catalog.store_of(entry.uuid);
      selected.ranks.push_back(static_cast<std::uint32_t>(row == nullptr ? 0 : row->rank + 1));
    }
    bytes = encoded(selected);
  }
  ranks_.broadcast(bytes, 0);
  auto selected = decoded<Selected>(bytes);
  if (!selected) return {Code::kInternal, "rank 0 selected a generation that cannot be"};
  record_ = std::move(selected->record);
  for (std::size_t i = 0; i < record_.stores.size(); ++i) {
    rank_of_.push_back(static_cast<int>(selected->ranks[i]) - 1);
    if (rank_of_[i] != ranks_.rank()) continue;
    const auto mine = std::find_if(
        local.stores.begin(), local.stores.end(),
        [&](const LocalStore& store) { return store.store->uuid() == record_.stores[i].uuid; });
    if (mine == local.stores.end()) continue;
    // A store without the generation's directory is behind, as the catalog says.
    auto lock = mine->store->lock_generation(record_.identity, record_.attempt);
    if (lock.status().code() == Code::kNotFound) continue;
    auto part = lock.is_ok()
                    ? Part::open(*mine->store, std::move(*lock), record_, static_cast<NodeIndex>(i))
                    : Result<Part>(lock.status());
    if (part.is_ok()) {
      parts_.push_back(std::move(*part));
    } else {
      problems_.push_back({record_.stores[i].node, part.status().message()});
    }
  }
  return Status::ok();
}

Result<std::shared_ptr<const store::ShardReader>> Generation::read_shard(const Part& part,
                                                                         std::uint32_t s) const {
  DEDUP_ASSIGN(const auto reader,
               part.store().shard(record_.identity, record_.attempt, s, record_.shards[s].digest));
  for (const std::uint64_t number : reader->block_numbers()) {
    DEDUP_ASSIGN(const Bytes bytes, reader->read(number));
    DEDUP_ASSIGN(const Block block, store::decode_block(bytes));
    for (const plan::Placement& placement : block.placements) {
      if (placement.is_within(static_cast<NodeIndex>(record_.stores.size()))) continue;
      return Status(Code::kCorrupt, "block " + std::to_string(number) +
                                        " names stores that this file does not have");
    }
    for (const Piece& piece : block.pieces) {
      if (number % record_.shards.size() != s || number * kBlockSpan + piece.end() > record_.size) {
        return Status(Code::kCorrupt, "block " + std::to_string(number) + " cannot be in shard " +
                                          std::to_string(s) + " of this file");
      }
    }
  }
  return reader;
}

// Every copy of every shard is read; of the sound ones, the lowest rank's is used.
Status Generation::read_shards() {
  std::vector<std::uint64_t> readers(record_.shards.size(), kNobody);
  std::map<std::uint32_t, std::shared_ptr<const store::ShardReader>> sound;
  std::vector<std::uint64_t> sums(2 * record_.shards.size());
  const std::span<std::uint64_t> copies = std::span(sums).first(record_.shards.size());
  SomeOfNodes sound_on{std::span(sums).subspan(copies.size())};
  for (const Part& part : parts_) {
    for (std::uint32_t s = 0; s < record_.shards.size(); ++s) {
      const auto& stores = record_.shards[s].stores;
      if (std::find(stores.begin(), stores.end(), part.position()) == stores.end()) continue;
      auto reader = read_shard(part, s);
      if (reader.is_ok()) {
        ++copies[s];
        sound_on.add(s, stores, part.position());
        sound.emplace(s, std::move(*reader));
        readers[s] = static_cast<std::uint64_t>(ranks_.rank());
      } else {
        problems_.push_back({node_of(part.position()), "recipe shard " + std::to_string(s) + ": " +
                                                           reader.status().message()});
      }
    }
  }
  ranks_.sum(sums);
  for (std::size_t s = 0; s < copies.size(); ++s) {
    shard_placements_.push_back(
        plan::Placement::copies_on(sound_on.of(s, record_.shards[s].stores)));
  }
  for (const std::uint64_t n : copies) {
    kept_shards_.push_back(plan::Redundancy::copies(static_cast<std::uint32_t>(n)));
  }
  ranks_.least(readers);
  for (std::uint32_t s = 0; s < record_.shards.size(); ++s) {
    if (readers[s] == kNobody) {
      lost_shards_.push_back(s);
    } else if (readers[s] == static_cast<std::uint64_t>(ranks_.rank())) {
      shards_.push_back(std::move(sound[s]));
    }
  }
  for (const auto& shard : shards_) {
    const auto numbers = shard->block_numbers();
    blocks_.insert(blocks_.end(), numbers.begin(), numbers.end());
  }
  std::sort(blocks_.begin(), blocks_.end());
  return Status::ok();
}

Part* Generation::part_at(NodeIndex position) {
  const auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Part& candidate) {
    return candidate.position() == position;
  });
  return part == parts_.end() ? nullptr : &*part;
}

Status Generation::walk(const std::function<Status(std::span<const NumberedBlock>)>& visit) {
  auto mine = blocks_.begin();
  for (;;) {
    std::uint64_t next = mine == blocks_.end() ? kNobody : *mine;
    ranks_.least({&next, 1});
    if (next == kNobody) return Status::ok();
    EncodedBlocks read;
    Status status;
    for (; mine != blocks_.end() && *mine - next < kBatch && status.is_ok(); ++mine) {
      for (const auto& shard : shards_) {
        auto bytes = shard->read(*mine);
        if (!bytes.is_ok()) {
          status = bytes.status();
        } else if (!bytes->empty()) {
          read.emplace_back(*mine, *std::move(bytes));
        }
      }
    }
    DEDUP_TRY(ranks_.agree(status));
    std::vector<Bytes> of_ranks = ranks_.gather(encoded(read));
    Bytes batch = encoded(of_ranks);
    ranks_.broadcast(batch, 0);
    of_ranks = decoded<std::vector<Bytes>>(batch).value_or(std::vector<Bytes>{});
    std::vector<NumberedBlock> blocks;
    for (const Bytes& of_rank : of_ranks) {
      for (const auto& [number, bytes] :
           decoded<EncodedBlocks>(of_rank).value_or(EncodedBlocks{})) {
        NumberedBlock& block = blocks.emplace_back();
        block.number = number;
        DEDUP_ASSIGN(block.block, store::decode_block(bytes));
      }
    }
    std::sort(blocks.begin(), blocks.end(),
              [](const NumberedBlock& a, const NumberedBlock& b) { return a.number < b.number; });
    DEDUP_TRY(visit(blocks));
  }
}

std::string Generation::missing_text() const {
  std::vector<store::StoreEntry> missing;
  for (std::size_t i = 0; i < record_.stores.size(); ++i) {
    if (rank_of_[i] < 0) missing.push_back(record_.stores[i]);
  }
  return missing.empty() ? "none, but copies are damaged or were given up"
                         : store::describe(missing);
}

Result<NumberedBlock> Generation::block(std::uint64_t number) const {
  const auto s = static_cast<std::uint32_t>(number % record_.shards.size());
  const auto lost = std::lower_bound(lost_shards_.begin(), lost_shards_.end(), s);
  if (lost != lost_shards_.end() && *lost == s) {
    const std::uint64_t end = std::min(kBlockSpan, record_.size - number * kBlockSpan);
    return NumberedBlock{number, plan::unknown_block(static_cast<std::uint32_t>(end))};
  }
  const auto before = static_cast<std::size_t>(lost - lost_shards_.begin());
  DEDUP_ASSIGN(const Bytes bytes, shards_[s - before]->read(number));
  if (bytes.empty()) return NumberedBlock{number, {}};
  DEDUP_ASSIGN(Block block, store::decode_block(bytes));
  return NumberedBlock{number, std::move(block)};
}

}  // namespace dedup::ctl
