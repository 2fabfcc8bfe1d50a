// Building one recipe shard of a generation that is being committed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/protocol/base_recipe.h"
#include "engine/protocol/job_file.h"
#include "engine/protocol/referrals.h"
#include "engine/protocol/restores.h"
#include "plan/block.h"
#include "plan/odds.h"
#include "service/messages/store_node.h"
#include "store/commit_record.h"
#include "store/shard.h"

namespace dedup::engine {

// What was seen while shards were built, for the report.
struct RecipeFacts {
  plan::Redundancy lowest = plan::Redundancy::boundless();  // of the chunks that are not lost
  std::set<plan::FatalSet> fatal_sets;  // what the loss of any of these depends on
  std::uint64_t lost_chunks = 0;        // of which no copy is left anywhere
  std::uint64_t unknown_bytes = 0;      // whose recipe is lost
  std::uint64_t copies_made = 0;        // of chunks that nodes lacked
};

// Which chunks the nodes are told of: of all; or of those that blocks do not have as the origin's
// have them, where the nodes' indexes of it may stay as they are.
enum class Referring { kToAll, kToChanges };

// Merges the base's blocks with what was dumped since, brings every chunk to enough copies, tells
// the nodes which of their chunks the generation refers to, and writes the shard to its nodes:
// blocks that are, byte for byte, what the origin's shard has are only named. (The origin is the
// base or, of a new file, the donor.) The nodes get copies while it goes on with the next blocks.
// Used by one rank, for one shard after the other. Memory: some ten blocks, and as they are
// encoded; fingerprints for about 4 MiB; 8 bytes a block that is not referred to, and 8 one that
// has changed.
class ShardBuild {
 public:
  // `given_up`: stripes; chunks in these are not kept well enough, and are in others by now.
  ShardBuild(JobFile& file, const Id128& attempt, Referring referring,
             std::set<Id128> given_up = {});

  // Collective, before anything else. The same on all ranks.
  Status begin();
  // Before stripes are made: has a node get each chunk of these shards that no node has as a whole
  // any more, so that it can become part of one.
  Status restore_lost(std::uint32_t shard);
  // Shard `shard` of as many as the job has nodes. Returns what the record says of it. The nodes
  // may be told of its chunks by all ranks together: the others are building shards, or finishing.
  Result<store::ShardEntry> build(std::uint32_t shard);
  // Collective, when this rank has built all of its shards, or failed: returns when all nodes have
  // been told. The same on all ranks.
  Status finish(const Status& mine) { return referrals_.finish(mine); }

  // Of the shards built with kToChanges: whether the origin had blocks that are gone altogether, so
  // that the nodes were not told what is dead.
  bool has_cut_off() const { return has_cut_off_; }
  // Collective, after all shards of all ranks were built with kToChanges: tells the nodes of the
  // other chunks. The same on all ranks.
  Status refer_to_rest();

  // Whether the nodes were told of stripes that are not whole any more, in blocks that are as they
  // were: then the shards are to be built anew, with kToAll.
  bool has_lost_parts() const { return referrals_.has_lost_parts(); }
  // Whether a node lacked what it was told of. The same on all ranks; if not, no rank has lost
  // parts.
  bool has_lacked() const { return referrals_.has_lacked(); }

  RecipeFacts facts() const;
  // Of the shards built: blocks that are not, byte for byte, what the base's shard has. Counted
  // only if the file is to be written back (DisplacedFile).
  const std::vector<std::uint64_t>& changed() const { return changed_; }

 private:
  // A block as the origin's shard has it, if it does.
  struct Before {
    Bytes bytes;
    std::set<Id128> stripes;  // that it relies on; none if all is referred to
  };

  void count_changed(std::uint64_t number);
  BaseRecipe origin() const { return {file_.client(), file_.identity(), *origin_}; }
  // Numbers of the origin's blocks that belong to the shard, ascending.
  Result<std::vector<std::uint64_t>> origin_blocks(std::uint32_t shard);
  // Those of shard `shard` of the origin; all that it can have, if no node can tell.
  Result<std::vector<std::uint64_t>> list_origin(std::uint32_t shard) const;
  Status list_base(const RankGrid& grid);
  // Of a donor: none if no node can tell.
  Result<std::vector<std::uint64_t>> list_donor(std::uint32_t shard);
  // The origin's blocks. Of a base: unknown where their recipe is lost, which lost_blocks_ says;
  // of a donor, without which a file is as good, empty.
  Result<std::vector<BaseRecipe::BaseBlock>> read_origin(std::span<const std::uint64_t> blocks);
  BaseRecipe::BaseBlock lost_block(std::uint64_t number, const Status& why);

  // A chunk of a block that is being repaired.
  struct Repaired {
    std::shared_ptr<const Restores::Chunk> chunk;
    plan::Placement placement;  // afterwards
  };
  // A block whose chunks are being repaired; those after it wait for their turn.
  struct Added {
    std::uint64_t number = 0;
    Block block;
    Before before;
    std::map<Fingerprint, Repaired> repaired;
  };

  Before before_of(Bytes bytes, const Block& block) const;
  // Calls visit(number, block, before) for each of the shard's blocks as it is to be committed,
  // ascending.
  using Visit = std::function<Status(std::uint64_t, Block, Before)>;
  Status for_each_block(std::uint32_t shard, const Visit& visit);
  Status add(std::uint64_t number, Block block, Before before);
  // Has repaired what is not kept well enough on the nodes of the job; placements become what is
  // there.
  Status begin_repair(Added& added);
  // Chunks that stripes should have been made of are kept as those nodes say that take care of
  // them. `enough`: of each of the block's placements.
  Status place_in_stripes(const Before& before, Block& block, std::vector<bool>& enough);
  bool is_given_up(const plan::Placement& placement) const;
  bool is_enough(const plan::Placement& placement) const;
  Status confirm(const Before& before, std::span<const plan::Placement> placements);
  // Writes blocks whose chunks are repaired; waits for those before the last `ahead`.
  Status finish_blocks(std::size_t ahead);
  Status finish_block(Added added);
  Status refer_to_what_is_left();
  Status check_was_there(const Added& added, const Fingerprint& fingerprint) const;
  void count_placements(const Block& block);
  // Counts what nodes are not referred to for any more: see plan::BlockChanges.
  void count_dropped(const Block& before, std::span<const std::uint32_t> gone, const Block& block,
                     std::span<const std::uint32_t> fresh);
  // Sends blocks when they are many.
  Status write(store::EncodedBlock block, bool is_carried);
  // To all nodes that keep the shard. `ends`: there are no more.
  Status write_out(bool ends);
  // What was not sent yet, for a node. `carry`: without the bytes of what is carried.
  service::PutShard request_of(bool carry, bool ends) const;
  // Those of what was not sent yet that have these numbers, which ascend, whole.
  service::PutShard whole(const std::vector<std::uint64_t>& numbers, bool ends) const;

  JobFile& file_;
  std::shared_ptr<const FileView> view_;
  const CommittedGeneration* origin_;  // null: none whose recipe is of use
  Id128 attempt_;
  NodeIndex nodes_;
  RecipeFacts facts_;
  Restores restores_;
  Referrals referrals_;
  Referring referring_;
  CommittedGeneration built_;                   // of its record: what is needed to read it
  std::vector<std::uint64_t> not_referred_to_;  // blocks, not to all of their chunks
  bool has_cut_off_ = false;
  std::vector<std::uint64_t> changed_;
  bool makes_stripes_;
  std::set<Id128> given_up_;
  // If the base has another number of shards: its blocks that are in shards of this rank now.
  std::vector<std::uint64_t> base_blocks_;

  // The shard being built.
  std::uint32_t shard_ = 0;
  std::map<std::uint64_t, Status> lost_blocks_;  // why
  struct Target {
    NodeIndex node = kNoNode;
    bool can_carry = false;  // it has the origin's shard, as far as is known
  };
  std::vector<Target> targets_;
  store::ShardBase base_;
  std::optional<store::ShardDigest> digest_;
  // Blocks that were not sent yet.
  struct Unsent {
    store::EncodedBlock block;
    bool is_carried = false;
  };
  std::vector<Unsent> unsent_;
  std::size_t unsent_bytes_ = 0;
  bool has_begun_ = false;
  std::deque<Added> added_;
};

}  // namespace dedup::engine
