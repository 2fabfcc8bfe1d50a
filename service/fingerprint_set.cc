#include "service/fingerprint_set.h"

#include <algorithm>

namespace dedup::service {

void FingerprintSet::insert(const Fingerprint& fingerprint) {
  if (items_.size() == items_.capacity()) {
    // Before more room is taken; what comes in order and again and again costs nothing so.
    merge();
    const std::size_t wanted = items_.size() + std::max<std::size_t>(4096, items_.size() / 4);
    if (items_.capacity() < wanted) items_.reserve(wanted);
  }
  items_.push_back(fingerprint);
}

std::span<const Fingerprint> FingerprintSet::sorted() {
  merge();
  return items_;
}

void FingerprintSet::merge() {
  const auto middle = items_.begin() + static_cast<std::ptrdiff_t>(sorted_);
  std::sort(middle, items_.end());
  std::inplace_merge(items_.begin(), middle, items_.end());
  items_.erase(std::unique(items_.begin(), items_.end()), items_.end());
  sorted_ = items_.size();
}

}  // namespace dedup::service
