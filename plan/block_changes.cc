#include "plan/block_changes.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace dedup::plan {
namespace {

// A piece's chunk, and how it is kept as `before` numbers that; other numbers for other ways.
struct Kept {
  const Fingerprint* fingerprint = nullptr;
  std::uint32_t placement = 0;
  std::uint32_t piece = 0;  // its index

  bool operator<(const Kept& other) const {
    return std::tie(*fingerprint, placement) < std::tie(*other.fingerprint, other.placement);
  }
};

void sort_distinct(std::vector<Kept>& all) {
  std::sort(all.begin(), all.end());
  const auto same = [](const Kept& a, const Kept& b) { return !(a < b) && !(b < a); };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
}

std::vector<std::uint32_t> those_not_in(const std::vector<Kept>& all,
                                        const std::vector<Kept>& others) {
  std::vector<Kept> rest;
  std::set_difference(all.begin(), all.end(), others.begin(), others.end(),
                      std::back_inserter(rest));
  std::vector<std::uint32_t> pieces;
  for (const Kept& one : rest) pieces.push_back(one.piece);
  return pieces;
}

}  // namespace

// Most of a block stands where it stood: the two are gone through side by side, and only what
// differs there is sorted.
BlockChanges changes_between(const Block& before, const Block& block) {
  const auto ways = static_cast<std::uint32_t>(before.placements.size());
  std::vector<std::uint32_t> numbers;
  for (const Placement& placement : block.placements) {
    const auto alike = std::find(before.placements.begin(), before.placements.end(), placement);
    const auto number = static_cast<std::uint32_t>(alike - before.placements.begin());
    numbers.push_back(number == ways ? ways + static_cast<std::uint32_t>(numbers.size()) : number);
  }
  std::vector<Kept> fresh;
  std::vector<Kept> gone;
  std::uint32_t o = 0;
  std::uint32_t n = 0;
  const auto old_end = static_cast<std::uint32_t>(before.pieces.size());
  const auto now_end = static_cast<std::uint32_t>(block.pieces.size());
  while (o < old_end || n < now_end) {
    const Piece* const old = o < old_end ? &before.pieces[o] : nullptr;
    const Piece* const now = n < now_end ? &block.pieces[n] : nullptr;
    const bool takes_old = old != nullptr && (now == nullptr || old->begin <= now->begin);
    const bool takes_now = now != nullptr && (old == nullptr || now->begin <= old->begin);
    const bool has_old = takes_old && !old->is_zero();
    const bool has_now = takes_now && !now->is_zero();
    const bool is_same = has_old && has_now && old->fingerprint == now->fingerprint &&
                         old->placement == numbers[now->placement];
    if (has_old && !is_same) gone.push_back({&old->fingerprint, old->placement, o});
    if (has_now && !is_same) fresh.push_back({&now->fingerprint, numbers[now->placement], n});
    o += takes_old ? 1 : 0;
    n += takes_now ? 1 : 0;
  }
  sort_distinct(fresh);
  sort_distinct(gone);
  return {those_not_in(fresh, gone), those_not_in(gone, fresh)};
}

}  // namespace dedup::plan
