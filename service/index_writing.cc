#include "service/index_writing.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/hooks.h"
#include "store/index_runs.h"

namespace dedup::service {
namespace {

// What may be dead of the runs that stay, as a part of what they name. More of a donor's: the donor
// has those chunks anyway, and whoever deletes it next has written another step by then. Less if
// all was referred to, so that this need not be done again at once.
constexpr std::uint64_t kDeadPart = 8;
constexpr std::uint64_t kDeadPartOfDonors = 4;
constexpr std::uint64_t kLessOfAll = 2;
// A run stays if it has more than so many times the entries of what is written behind it.
constexpr std::uint64_t kGrowth = 2;

std::uint64_t bytes_named_by(const store::IndexReader& index) {
  std::uint64_t sum = 0;
  for (const auto& use : index.segments()) sum += use.live_bytes;
  return sum;
}

// Puts entries into an index, with the numbers that its writer gives to placements.
class Entries {
 public:
  Entries(store::IndexWriter& index, const ChunkIndex& chunks) : index_(index), chunks_(chunks) {}

  // Its placement is a number of the chunk index.
  Status add(store::IndexEntry entry) {
    entry.placement = number_of(entry.placement);
    return index_.add(entry);
  }

 private:
  std::uint32_t number_of(std::uint32_t placement) {
    if (placement >= numbers_.size()) {
      numbers_.resize(placement + 1, store::IndexEntry::kNotPlaced);
    }
    std::uint32_t& number = numbers_[placement];
    if (number == store::IndexEntry::kNotPlaced) {
      number = index_.number(chunks_.placement(placement));
    }
    return number;
  }

  store::IndexWriter& index_;
  const ChunkIndex& chunks_;
  std::vector<std::uint32_t> numbers_;  // by number in the chunk index; kNotPlaced: none yet
};

// The entries of an index' newer runs in order of fingerprints, each once.
class NewerRuns {
 public:
  NewerRuns(const store::IndexReader& index, std::size_t first_run) : index_(index) {
    std::uint64_t begin = 0;
    std::size_t r = 0;
    for (const auto& run : index.runs()) {
      if (r++ >= first_run && run.entries != 0) runs_.push_back({begin, begin + run.entries, {}});
      begin += run.entries;
    }
  }

  // None if there are no more.
  Result<std::optional<store::IndexEntry>> next() {
    for (;;) {
      DEDUP_ASSIGN(std::optional<store::IndexEntry> entry, take_least());
      if (entry && last_ && entry->fingerprint == *last_) continue;
      if (entry) last_ = entry->fingerprint;
      return entry;
    }
  }

 private:
  struct Cursor {
    std::uint64_t next;
    std::uint64_t end;
    std::optional<store::IndexEntry> entry;  // at next, once it was read
  };

  Result<std::optional<store::IndexEntry>> take_least() {
    Cursor* least = nullptr;
    for (Cursor& cursor : runs_) {
      if (cursor.next == cursor.end) continue;
      if (!cursor.entry) {
        DEDUP_ASSIGN(cursor.entry, index_.at(cursor.next));
      }
      if (least == nullptr || cursor.entry->fingerprint < least->entry->fingerprint) {
        least = &cursor;
      }
    }
    if (least == nullptr) return std::optional<store::IndexEntry>();
    ++least->next;
    return std::exchange(least->entry, std::nullopt);
  }

  const store::IndexReader& index_;
  std::vector<Cursor> runs_;
  std::optional<Fingerprint> last_;
};

}  // namespace

const store::IndexReader* IndexWriting::index_of(const Id128& base) {
  if (base.is_zero()) return nullptr;
  const store::IndexReader* const index = chunks_.base_index();
  return index != nullptr && index->attempt() == base ? index : nullptr;
}

std::uint64_t IndexWriting::dead_part() const {
  return chunks_.has_donors_index() ? kDeadPartOfDonors : kDeadPart;
}

bool IndexWriting::has_segments_of(const store::IndexReader& base) const {
  const auto sizes = store_.segments(identity_);
  if (!sizes.is_ok()) return false;
  std::unordered_map<std::uint64_t, std::uint64_t> bytes;
  for (const auto& size : *sizes) bytes.emplace(size.segment, size.bytes);
  return std::ranges::all_of(base.segments(), [&](const auto& use) {
    const auto found = bytes.find(use.segment);
    return found != bytes.end() && !chunks_.has_forgotten(use.segment) &&
           std::max(use.end, use.live_bytes) <= found->second;
  });
}

std::size_t IndexWriting::runs_that_stay(const store::IndexReader& base, LiveChunks& live,
                                         std::uint64_t dead, std::uint64_t part) const {
  if (base.size() < entries_worth_keeping() || chunks_.distrusts_any()) return 0;
  if (dead > bytes_named_by(base) / part || !has_segments_of(base)) return 0;
  // What the base names and had to come again is not where it says.
  const Status all_new = live.for_each_new([&](const store::IndexEntry& entry) -> Status {
    const Code code = base.position(entry.fingerprint).status().code();
    if (code == Code::kNotFound) return Status::ok();
    return {Code::kCorrupt, entry.fingerprint.hex()};
  });
  if (!all_new.is_ok()) return 0;

  const auto runs = base.runs();
  std::size_t stay = runs.size();
  std::uint64_t written = live.count_new();
  while (stay > 0 &&
         (runs[stay - 1].entries <= kGrowth * written || stay >= store::IndexRuns::kMost)) {
    written += runs[--stay].entries;
  }
  return stay;
}

Status IndexWriting::write_all(LiveChunks& live, const LiveChunks::Space& space,
                               const Compaction& compaction, const Id128& generation) {
  chunks_named_ = space.chunks;
  const store::IndexReader* const base = index_of(generation);
  // Chunks that were moved stand elsewhere than the base says.
  if (base == nullptr || !compaction.moved.empty()) return write_whole(live, compaction);
  const std::uint64_t named = bytes_named_by(*base);
  const std::uint64_t dead = named - std::min(named, space.carried);
  const std::size_t stay = runs_that_stay(*base, live, dead, dead_part() * kLessOfAll);
  if (stay == 0) return write_whole(live, compaction);
  const auto index = store_.create_index(identity_, attempt_, {base->attempt(), stay, dead});
  // A file system that takes no second name for a file.
  if (!index.is_ok()) return write_whole(live, compaction);
  for (const auto& [segment, bytes] : space.by_segment) live_segments_.push_back(segment);
  DEDUP_TRY(write_rest(live, *base, stay, Base::kAsReferredTo, **index));
  return (*index)->finish(false);
}

Result<bool> IndexWriting::write_changes(LiveChunks& live, const Id128& generation,
                                         std::uint64_t dropped) {
  const store::IndexReader* const base = index_of(generation);
  if (base == nullptr) return false;
  const std::uint64_t dead = base->dead_bytes() + dropped;
  const std::size_t stay = runs_that_stay(*base, live, dead, dead_part());
  if (stay == 0) return false;
  const auto index = store_.create_index(identity_, attempt_, {base->attempt(), stay, dead});
  if (!index.is_ok()) return false;
  chunks_named_ = base->size() + live.count_new();
  std::set<std::uint64_t> segments;
  for (const auto& use : base->segments()) segments.insert(use.segment);
  DEDUP_TRY(live.for_each_new([&](const store::IndexEntry& entry) {
    segments.insert(entry.location.segment);
    return Status::ok();
  }));
  live_segments_.assign(segments.begin(), segments.end());
  DEDUP_TRY(write_rest(live, *base, stay, Base::kAllLive, **index));
  DEDUP_TRY((*index)->finish(false));
  return true;
}

Status IndexWriting::write_whole(LiveChunks& live, const Compaction& compaction) {
  DEDUP_ASSIGN(const auto index, store_.create_index(identity_, attempt_));
  Entries entries(*index, chunks_.index());
  std::set<std::uint64_t> segments;
  auto moved = compaction.moved.begin();
  DEDUP_TRY(live.for_each([&](const store::IndexEntry& chunk) {
    const bool is_moved =
        moved != compaction.moved.end() && moved->fingerprint == chunk.fingerprint;
    const store::IndexEntry& entry = is_moved ? *moved++ : chunk;
    segments.insert(entry.location.segment);
    return entries.add(entry);
  }));
  live_segments_.assign(segments.begin(), segments.end());
  return index->finish(false);
}

Status IndexWriting::write_rest(LiveChunks& live, const store::IndexReader& base, std::size_t stay,
                                Base what, store::IndexWriter& index) {
  Entries entries(index, chunks_.index());
  NewerRuns newer(base, stay);
  DEDUP_ASSIGN(auto old, newer.next());
  const auto add_old = [&]() -> Status {
    if (const std::uint32_t* placement = live.carried(old->fingerprint)) {
      old->placement = *placement;
    } else if (what == Base::kAllLive) {
      old->placement = chunks_.intern(base.placement(old->placement));
    } else {
      return Status::ok();
    }
    return entries.add(*old);
  };
  const Status added = live.for_each_new([&](const store::IndexEntry& entry) -> Status {
    while (old && old->fingerprint < entry.fingerprint) {
      DEDUP_TRY(add_old());
      DEDUP_ASSIGN(old, newer.next());
    }
    return entries.add(entry);
  });
  DEDUP_TRY(added);
  while (old) {
    DEDUP_TRY(add_old());
    DEDUP_ASSIGN(old, newer.next());
  }
  return Status::ok();
}

}  // namespace dedup::service
