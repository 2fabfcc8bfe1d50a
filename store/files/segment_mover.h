// Moving whole segments from tiers that are too full to slower ones.
//
// Whoever moves has the store's file STORE locked: one at a time. A segment goes into the file
// `moving` of the tier below, is flushed, and gets its name there, flushed, too, before the one
// above goes. So there is one whole copy at any moment, and what a killed process leaves is
// `moving`, which the next one removes, or a segment with both names, which are the same.
//
// What moves are segments that a committed generation names: nobody writes to them any more, but
// who still has one open to do so after a commit of which he was not told; he has it locked. The
// coldest are those that were written first. All names of a file move, or none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/files/tiers.h"
#include "store/fs.h"
#include "store/store.h"

namespace dedup::store {

class SegmentMover final : public Store::Mover {
 public:
  // kFileInUse if somebody else has the turn. `store` must outlive it.
  static Result<std::unique_ptr<SegmentMover>> create(const Store& store,
                                                      std::shared_ptr<const Tiers> tiers);
  ~SegmentMover() override;

  Result<Moved> step() override;
  std::vector<Stays> stays() const override { return stays_; }

 private:
  // A segment, and the files that have it.
  struct Candidate {
    std::uint64_t number = 0;
    std::vector<Id128> names;
    fs::Info about;
    bool is_committed = false;
  };
  // The one that is being copied.
  struct Copying {
    Candidate segment;
    std::size_t to = 0;  // tier
    fs::File source;
    fs::File copy;
    std::uint64_t done = 0;
  };

  SegmentMover(const Store& store, std::shared_ptr<const Tiers> tiers, fs::File turn);

  // What may go from the tier, the coldest last.
  Result<std::vector<Candidate>> candidates();
  // Notes it, if the tier is leaving.
  void note_stays(const Candidate& segment, Reason reason);
  // Until one is begun, or there is no more to do.
  Status begin_next();
  Status begin(const Candidate& segment, std::optional<Reason>& stays);
  // A tier below that has one of its names already, whole.
  Result<std::optional<std::size_t>> moved_before(const Candidate& segment) const;
  // Whether below there is another segment with one of its names.
  Result<bool> hides_another(const Candidate& segment) const;
  std::size_t first_below() const;
  std::optional<std::size_t> tier_with_room(std::uint64_t bytes) const;
  Status copy_some(Moved& moved);
  Status finish_copy();
  // Names in tier `to` for what one of them, or `moving`, is there; then those above go.
  Status rename_all(const Candidate& segment, std::size_t to, bool from_moving);

  const Store& store_;
  const std::shared_ptr<const Tiers> tiers_;
  const fs::File turn_;
  std::size_t tier_ = 0;  // that is being emptied
  bool is_listed_ = false;
  std::uint64_t too_much_ = 0;  // that is still to go from it
  std::vector<Candidate> left_;
  std::optional<Copying> copying_;
  std::vector<Stays> stays_;
};

// Removes what a process left that died while it moved a segment, unless somebody is just moving.
Status clear_half_moves(const std::vector<Tiers::Tier>& tiers);

}  // namespace dedup::store
