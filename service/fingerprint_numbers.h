// Fingerprints with a number each, which are only added to, then read in order. At most 54 bytes
// each, for more than a few thousand: a sorted array and, behind it, what was added since it was
// last sorted, at most a quarter of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace dedup::service {

class FingerprintNumbers {
 public:
  struct Item {
    Fingerprint fingerprint;
    std::uint32_t number = 0;
  };
  static_assert(sizeof(Item) == 36);

  // Of one that is there already any of its numbers stays.
  void insert(const Fingerprint& fingerprint, std::uint32_t number);
  // All of them, ascending, each once; valid until the next insert.
  std::span<const Item> sorted();
  std::uint64_t memory() const { return items_.capacity() * sizeof(Item); }

 private:
  void merge();

  std::vector<Item> items_;
  std::size_t sorted_ = 0;  // of these, sorted and without duplicates
};

}  // namespace dedup::service
