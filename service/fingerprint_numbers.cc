#include "service/fingerprint_numbers.h"

#include <algorithm>

namespace dedup::service {

void FingerprintNumbers::insert(const Fingerprint& fingerprint, std::uint32_t number) {
  if (items_.size() == items_.capacity()) {
    // Before more room is taken; what comes in order and again and again costs nothing so.
    merge();
    const std::size_t wanted = items_.size() + std::max<std::size_t>(4096, items_.size() / 4);
    if (items_.capacity() < wanted) items_.reserve(wanted);
  }
  items_.push_back({fingerprint, number});
}

std::span<const FingerprintNumbers::Item> FingerprintNumbers::sorted() {
  merge();
  return items_;
}

void FingerprintNumbers::merge() {
  const auto less = [](const Item& a, const Item& b) { return a.fingerprint < b.fingerprint; };
  const auto same = [](const Item& a, const Item& b) { return a.fingerprint == b.fingerprint; };
  const auto middle = items_.begin() + static_cast<std::ptrdiff_t>(sorted_);
  std::sort(middle, items_.end(), less);
  std::inplace_merge(items_.begin(), middle, items_.end(), less);
  items_.erase(std::unique(items_.begin(), items_.end(), same), items_.end());
  sorted_ = items_.size();
}

}  // namespace dedup::service
