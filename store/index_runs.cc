#include "store/index_runs.h"

#include <algorithm>
#include <map>
#include <utility>

namespace dedup::store {
namespace {

// A placement's number has that of its run above this many bits. (An entry takes more than 16 bytes
// of a file: no index that fits a disk has more placements.)
constexpr unsigned kRunShift = 28;
static_assert(IndexRuns::kMost <= 1u << (32 - kRunShift));

std::uint32_t numbered(std::uint32_t in_run, std::size_t run) {
  if (in_run == IndexEntry::kNotPlaced) return in_run;
  return in_run | static_cast<std::uint32_t>(run) << kRunShift;
}

}  // namespace

IndexRuns::IndexRuns(std::vector<std::unique_ptr<IndexReader>> runs)
    : runs_(std::move(runs)), first_{0} {
  std::map<std::uint64_t, SegmentUse> uses;
  for (const auto& run : runs_) {
    first_.push_back(first_.back() + run->size());
    for (const SegmentUse& use : run->segments()) {
      SegmentUse& sum = uses.try_emplace(use.segment, SegmentUse{use.segment, 0}).first->second;
      sum.live_bytes += use.live_bytes;
      sum.end = std::max(sum.end, use.end);
    }
  }
  for (const auto& [segment, use] : uses) segments_.push_back(use);
}

template <typename Ask>
auto IndexRuns::ask_newest_first(const Ask& ask) const {
  for (std::size_t r = runs_.size() - 1;; --r) {
    auto answer = ask(*runs_[r], r);
    if (r == 0 || answer.is_ok() || answer.status().code() != Code::kNotFound) return answer;
  }
}

template <typename Find>
Result<IndexEntry> IndexRuns::find_entry(const Find& find) const {
  return ask_newest_first([&](const IndexReader& run, std::size_t r) {
    Result<IndexEntry> entry = find(run);
    if (entry.is_ok()) entry->placement = numbered(entry->placement, r);
    return entry;
  });
}

std::vector<IndexReader::Run> IndexRuns::runs() const {
  std::vector<Run> out;
  for (const auto& run : runs_) out.push_back({run->attempt(), run->size()});
  return out;
}

Result<IndexEntry> IndexRuns::find(const Fingerprint& fingerprint) const {
  return find_entry([&](const IndexReader& run) { return run.find(fingerprint); });
}

Result<std::uint64_t> IndexRuns::position(const Fingerprint& fingerprint) const {
  return ask_newest_first([&](const IndexReader& run, std::size_t r) {
    auto place = run.position(fingerprint);
    if (place.is_ok()) *place += first_[r];
    return place;
  });
}

Result<IndexEntry> IndexRuns::at(std::uint64_t i) const {
  if (i >= size()) return Status(Code::kArgument, "an index has no such entry");
  const auto next = std::upper_bound(first_.begin(), first_.end(), i);
  const auto r = static_cast<std::size_t>(next - first_.begin() - 1);
  DEDUP_ASSIGN(IndexEntry entry, runs_[r]->at(i - first_[r]));
  entry.placement = numbered(entry.placement, r);
  return entry;
}

Result<IndexEntry> IndexRuns::find_content(const Fingerprint& content) const {
  return find_entry([&](const IndexReader& run) { return run.find_content(content); });
}

const plan::Placement& IndexRuns::placement(std::uint32_t number) const {
  const std::size_t r = std::min<std::size_t>(number >> kRunShift, runs_.size() - 1);
  return runs_[r]->placement(number & ((std::uint32_t{1} << kRunShift) - 1));
}

}  // namespace dedup::store
