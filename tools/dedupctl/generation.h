// One generation of a file as the stores of all nodes have it together: its recipe, block by block,
// and its chunks. Needs no service and no running job.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/hasher.h"
#include "base/piece.h"
#include "base/ranks.h"
#include "base/status.h"
#include "plan/placement.h"
#include "store/chunk_reader.h"
#include "store/commit_record.h"
#include "store/index.h"
#include "store/segment.h"
#include "store/shard.h"
#include "store/store.h"
#include "tools/dedupctl/catalog.h"

namespace dedup::ctl {

// What one store of this process has of the generation.
class Part {
 public:
  // Keeps the generation from being removed as long as the object lives.
  static Result<Part> open(const store::Store& store, std::unique_ptr<store::Store::Lock> lock,
                           const store::CommitRecord& record, NodeIndex position);

  NodeIndex position() const { return position_; }  // in the record's list of stores
  const store::Store& store() const { return *store_; }
  const store::IndexReader* index() const { return index_.get(); }  // null: it has no chunk

  // From now on the store does not have this chunk.
  void distrust(const Fingerprint& fingerprint) { bad_.insert(fingerprint); }
  // A chunk's place in the index, and how long it is; nullopt if the store does not have it, as far
  // as can be told without reading it.
  struct Found {
    std::uint64_t place = 0;
    std::uint32_t length = 0;
  };
  std::optional<Found> find(const Fingerprint& fingerprint) const;
  // The same of one of that length.
  std::optional<std::uint64_t> place_of(const NamedChunk& chunk) const;
  // These chunks' bytes, checked against checksum and fingerprint; what stands together is read
  // together. The positions of those that cannot be had, ascending.
  std::vector<std::size_t> read(std::span<const store::ChunkTarget> chunks);
  // All of these chunks, checked like that, or nothing. The store does not have any more what is
  // found to be bad.
  std::vector<Bytes> read(std::span<const Fingerprint> fingerprints);

 private:
  // Reads what the index says.
  class Reader final : public store::ChunkReader {
   public:
    explicit Reader(Part& part) : part_(part) {}

   private:
    std::optional<std::vector<store::ChunkLocation>> locate(
        std::span<const Fingerprint> fingerprints) override;
    std::shared_ptr<const store::SegmentReader> segment(std::uint64_t number) override;

    Part& part_;
  };

  Part() = default;

  const store::Store* store_ = nullptr;
  std::unique_ptr<store::Store::Lock> lock_;
  Id128 identity_;
  NodeIndex position_ = kNoNode;
  std::unique_ptr<store::IndexReader> index_;
  std::map<std::uint64_t, std::uint64_t> sizes_;  // of the segments that are there
  std::unordered_set<Fingerprint> bad_;
  FingerprintCheck check_;
};

struct NumberedBlock {
  std::uint64_t number = 0;
  Block block;

  // Of a piece of a chunk.
  const plan::Placement& placement_of(const Piece& piece) const {
    return block.placements[piece.placement];
  }
};

// Something wrong on a store, or in all of them.
struct Problem {
  std::string node;  // empty: of no store in particular
  std::string text;
};

class Generation {
 public:
  // Collective; `file` counts on rank 0. Locks the generation on all stores and reads their copies
  // of the recipe once. Stores that cannot be used are left out, which problems() says.
  static Result<std::unique_ptr<Generation>> open(const Ranks& ranks, const LocalStores& local,
                                                  const Catalog& catalog, const FileRow* file);

  const store::CommitRecord& record() const { return record_; }
  std::vector<Part>& parts() { return parts_; }  // this process's
  Part* part_at(NodeIndex position);             // null: it is not this process's
  // What was asked for, also where there were not as many nodes.
  plan::Redundancy wanted() const { return plan::Redundancy::copies(record_.replication); }
  // How well each shard is kept, by its sound copies, and those that are lost. The same on all
  // ranks.
  const std::vector<plan::Redundancy>& shards() const { return kept_shards_; }
  const std::vector<std::uint32_t>& lost_shards() const { return lost_shards_; }
  // How each is kept by its sound copies: as positions of stores in the record. The same on all
  // ranks.
  const std::vector<plan::Placement>& shard_placements() const { return shard_placements_; }
  // What this process found.
  const std::vector<Problem>& problems() const { return problems_; }
  // The rank whose process has the record's store `position`; −1 if none.
  int rank_of(NodeIndex position) const { return rank_of_[position]; }
  const std::string& node_of(NodeIndex position) const { return record_.stores[position].node; }
  // The stores that nobody has, for a message about data that cannot be had.
  std::string missing_text() const;
  const Ranks& ranks() const { return ranks_; }

  // Collective. Calls visit() on all ranks with the same blocks: those that are there, ascending,
  // at most kBatch at once.
  static constexpr std::uint64_t kBatch = 16;
  Status walk(const std::function<Status(std::span<const NumberedBlock>)>& visit);

  // Of a generation that this process has opened alone (OneRank): one of its blocks, of which
  // nothing is known (Piece::is_unknown) if its shard is lost. `number` must be within the file.
  Result<NumberedBlock> block(std::uint64_t number) const;

 private:
  explicit Generation(const Ranks& ranks) : ranks_(ranks) {}

  Status select(const LocalStores& local, const Catalog& catalog, const FileRow* file);
  Status read_shards();
  Result<std::shared_ptr<const store::ShardReader>> read_shard(const Part& part,
                                                               std::uint32_t s) const;

  const Ranks& ranks_;
  store::CommitRecord record_;
  std::vector<int> rank_of_;
  std::vector<Part> parts_;
  std::vector<std::shared_ptr<const store::ShardReader>> shards_;  // those that this process reads
  std::vector<std::uint64_t> blocks_;  // of these: their blocks, ascending
  std::vector<plan::Redundancy> kept_shards_;
  std::vector<std::uint32_t> lost_shards_;
  std::vector<plan::Placement> shard_placements_;
  std::vector<Problem> problems_;
};

}  // namespace dedup::ctl
