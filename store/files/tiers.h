// The tiers of a store: where its segments are, and where the next one goes.
//
// A segment is in one of them, under the same names below each (store/files/layout.h), and moves
// down only: the whole copy below has its name before the one above goes. So whoever tries the
// tiers from the top finds it, if he goes on where it has just gone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/files/layout.h"
#include "store/files/segment_file.h"
#include "store/store.h"

namespace dedup::store {

class Tiers {
 public:
  // A segment begins where there is room for this much.
  static constexpr std::uint64_t kLeastRoom = std::uint64_t{1} << 20;

  struct Tier {
    Layout layout;
    std::optional<std::uint64_t> limit;
    bool is_leaving = false;  // dedup_store names it no more: nothing is to be put into it
  };

  // Fastest first, the store itself last.
  explicit Tiers(std::vector<Tier> tiers);

  std::size_t count() const { return tiers_.size(); }
  std::size_t last() const { return tiers_.size() - 1; }
  const Layout& layout(std::size_t tier) const { return tiers_[tier].layout; }

  // --- Finding ----------------------------------------------------------------------------------
  // What work(tier) returns (a Status or Result) for the one that has it: the first for which that
  // is not kNoSuchFile.
  template <typename Work>
  auto with_tier(Work&& work) const {
    auto result = work(std::size_t{0});
    // Twice where who uses the store in another order than this may move it up, as seen from here.
    const std::size_t tries = count() > 2 ? 2 * count() : count();
    for (std::size_t i = 1; i < tries && code_of(result) == Code::kNoSuchFile; ++i) {
      result = work(i % count());
    }
    return result;
  }
  // The same with the path of a segment.
  template <typename Work>
  auto with_segment(const Id128& identity, std::uint64_t number, Work&& work) const {
    return with_tier(
        [&](std::size_t tier) { return work(layout(tier).segment(identity, number)); });
  }

  // --- Room -------------------------------------------------------------------------------------
  // Of one tier.
  struct Room {
    std::uint64_t used = 0;
    std::uint64_t most = 0;  // that may be used: by the limit, and by its file system

    std::uint64_t left() const { return most - std::min(most, used); }
    // What may be dealt out: where less is left, no segment begins.
    std::uint64_t left_to_begin() const { return left() - std::min(left(), kLeastRoom); }
    // From here on segments are to move down.
    std::uint64_t mark() const { return most - most / 5; }
  };
  Result<Room> room(std::size_t tier) const;
  Result<TierSpace> space(std::size_t tier) const;
  // In all of them; those that are on one file system have together what that has, at most.
  Result<std::uint64_t> free_bytes() const;
  bool is_overfull(std::size_t tier) const;
  bool is_leaving(std::size_t tier) const { return tiers_[tier].is_leaving; }

  // --- Putting ----------------------------------------------------------------------------------
  // A new segment in the first tier that has room for it.
  static Result<std::unique_ptr<SegmentFileWriter>> create_segment(
      const std::shared_ptr<const Tiers>& tiers, const Id128& identity, std::uint64_t number,
      SegmentUse use);
  // The directory of a file's segments in a tier, of a file that the store has.
  Status make_segments_directory(std::size_t tier, const Id128& identity) const;
  // What is to be flushed so that the names of these segments last.
  std::vector<std::string> directories_of_names(std::size_t tier, const Id128& identity) const;

 private:
  // How far a tier may be filled.
  enum class Fill { kToMark, kWhole };
  struct Choice {
    std::size_t tier;
    Fill fill;
  };

  static Code code_of(const Status& status) { return status.code(); }
  template <typename T>
  static Code code_of(const Result<T>& result) {
    return result.status().code();
  }

  std::vector<Choice> choices(SegmentUse use) const;
  std::uint64_t left(const Choice& choice) const;
  std::uint64_t longest_segment(std::size_t tier) const;
  void ran_out(std::size_t tier) const;

  std::vector<Tier> tiers_;
  // By tier, what its file system said to have free when it took nothing any more, as with a quota;
  // it counts as full until that is more.
  mutable std::vector<std::atomic<std::uint64_t>> full_at_;
};

}  // namespace dedup::store
