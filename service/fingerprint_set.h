// A set of fingerprints that only grows, then is read in order. At most 48 bytes each, for more
// than a few thousand: a sorted array and, behind it, what was added since it was last sorted, at
// most a quarter of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace dedup::service {

class FingerprintSet {
 public:
  void insert(const Fingerprint& fingerprint);
  // All of them, ascending; valid until the next insert.
  std::span<const Fingerprint> sorted();
  std::uint64_t memory() const { return items_.capacity() * sizeof(Fingerprint); }

 private:
  void merge();

  std::vector<Fingerprint> items_;
  std::size_t sorted_ = 0;  // of these, sorted and without duplicates
};

}  // namespace dedup::service
