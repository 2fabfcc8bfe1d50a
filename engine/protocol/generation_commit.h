// One attempt at a generation, from the snapshot of what was dumped to the end of the commit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/protocol/fence.h"
#include "engine/protocol/job_file.h"
#include "engine/protocol/shard_build.h"
#include "engine/protocol/striping.h"
#include "store/commit_record.h"

namespace dedup::engine {

// What a rank has built of the recipe.
struct RecipePart {
  RecipeFacts facts;
  std::vector<std::pair<std::uint32_t, store::ShardEntry>> shards;  // by number
  std::vector<std::uint64_t> changed;  // blocks: see ShardBuild::changed()
};

// Everything is collective. The caller has the file's commit lock; everything that is to be
// committed is in chunks, and the view is rank 0's newest.
class GenerationCommit {
 public:
  explicit GenerationCommit(JobFile& file);

  // `wait_for_data` is called on each rank, before any node is prepared: it returns when the
  // chunks that the rank stored are as durable as they are to be. On failure what stood before
  // stands, and what was dumped is still there to be committed. Does not wait until all ranks have
  // freed what is old: before they have, the lock stays.
  Status run(const std::function<Status()>& wait_for_data);

  const RecipeFacts& facts() const { return facts_; }               // of all, on rank 0
  const StripeMaker::Figures& stripes() const { return stripes_; }  // that this rank had made

 private:
  Status prepare(const std::function<Status()>& wait_for_data);
  // What was built of the recipe, on all ranks together; of two the greater one counts.
  enum class Recipe {
    kWhole,
    kToBeReferredTo,  // all chunks have to be referred to, and were not
    kBroken,          // it relies on stripes that are not whole: it is to be built anew
  };
  Status make_stripes();
  Status build_recipe(const service::WriteIndex& request, Recipe& recipe);
  Status build_shards(ShardBuild& build, bool all, Recipe& recipe);
  Status write_indexes(ShardBuild& build, service::WriteIndex request, Recipe& recipe);
  Status agree_on(const Status& mine, Recipe& recipe) const;
  Status make_record();
  Status fill_record(const std::vector<Bytes>& parts);
  void keep_older(const store::CommitRecord& base);
  Status take_part(const Bytes& part);
  Status check_loss() const;
  Status decide();
  Status put_placeholder();
  // What rank 0 tells all, once nodes have committed.
  struct Outcome {
    bool counts = false;                    // it stands at the real path
    std::optional<service::FileInfo> info;  // as the file home has it now; none if that failed
  };
  Status fence_and_tell_home(Outcome& outcome);
  Status install();
  // The base, or the donor, whose indexes those of the generation may begin with: its stores have
  // the same numbers. Zero: none.
  Id128 index_base() const;
  void give_up();
  void end_commit(bool committed);

  JobFile& file_;
  Fence fence_;  // on rank 0
  Id128 id_;
  store::CommitRecord record_;  // on rank 0
  Bytes encoded_;
  RecipePart part_;                     // what this rank built
  Status untold_;                       // what it has not agreed on with others yet
  RecipeFacts facts_;                   // on rank 0
  std::vector<std::uint64_t> changed_;  // likewise
  StripeMaker::Figures stripes_;
  std::set<Id128> given_up_;       // stripes
  std::uint64_t copies_made_ = 0;  // before the recipe was built
};

}  // namespace dedup::engine
