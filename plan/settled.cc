#include "plan/settled.h"

#include <algorithm>

namespace dedup::plan {

const Placement* SettledChunks::find(const Fingerprint& fingerprint) const {
  const auto it =
      std::lower_bound(entries_.begin(), entries_.end(), fingerprint,
                       [](const Entry& e, const Fingerprint& f) { return e.fingerprint < f; });
  return it != entries_.end() && it->fingerprint == fingerprint ? placements_[it->placement]
                                                                : nullptr;
}

void SettledChunks::add(std::vector<std::pair<Fingerprint, Placement>> chunks, std::uint64_t size) {
  if (size == 0) return;
  size_ += size;
  dumps_.emplace_back(++dump_, size);
  auto first_kept = dumps_.begin();
  while (size_ > limit_ && first_kept + 1 != dumps_.end()) size_ -= (first_kept++)->second;
  const std::uint32_t oldest = first_kept->first;
  dumps_.erase(dumps_.begin(), first_kept);
  if (std::erase_if(entries_, [&](const Entry& e) { return e.dump < oldest; }) > 0)
    forget_placements();

  const auto old_end = static_cast<std::ptrdiff_t>(entries_.size());
  for (auto& [fingerprint, placement] : chunks) {
    const auto [it, fresh] =
        numbers_.try_emplace(std::move(placement), static_cast<std::uint32_t>(placements_.size()));
    if (fresh) placements_.push_back(&it->first);
    entries_.push_back({fingerprint, it->second, dump_});
  }
  const auto less = [](const Entry& a, const Entry& b) { return a.fingerprint < b.fingerprint; };
  std::sort(entries_.begin() + old_end, entries_.end(), less);
  std::inplace_merge(entries_.begin(), entries_.begin() + old_end, entries_.end(), less);
}

// Keeps only those that entries refer to.
void SettledChunks::forget_placements() {
  std::vector<const Placement*> old = std::move(placements_);
  std::map<Placement, std::uint32_t> old_numbers = std::move(numbers_);
  placements_.clear();
  numbers_.clear();
  for (Entry& e : entries_) {
    const auto [it, fresh] =
        numbers_.try_emplace(*old[e.placement], static_cast<std::uint32_t>(placements_.size()));
    if (fresh) placements_.push_back(&it->first);
    e.placement = it->second;
  }
}

void SettledChunks::clear() {
  entries_ = {};
  dumps_.clear();
  placements_.clear();
  numbers_.clear();
  size_ = 0;
}

}  // namespace dedup::plan
