// What earlier dumps of a generation decided.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/types.h"
#include "plan/placement.h"

namespace dedup::plan {

// Chunks whose placement is settled: at most F fingerprints. Each node's ranks keep a part each,
// and all nodes the same in all, since what goes depends on numbers only that all are told: the
// results of the oldest dumps go first. 40 bytes a fingerprint. Not thread-safe.
class SettledChunks {
 public:
  // `limit`: F, of all parts together.
  explicit SettledChunks(std::uint32_t limit) : limit_(limit) {}

  bool empty() const { return entries_.empty(); }
  // The chunk's placement, or nullptr if it is not known.
  const Placement* find(const Fingerprint& fingerprint) const;

  // Enters this part's chunks of one dump's result. `size`: how many the result has in all parts,
  // at most F.
  void add(std::vector<std::pair<Fingerprint, Placement>> chunks, std::uint64_t size);
  void clear();

 private:
  struct Entry {
    Fingerprint fingerprint;
    std::uint32_t placement = 0;  // number in placements_
    std::uint32_t dump = 0;
  };

  void forget_placements();

  std::uint32_t limit_;
  std::uint32_t dump_ = 0;
  std::uint64_t size_ = 0;                                      // of all dumps kept, all parts
  std::vector<std::pair<std::uint32_t, std::uint64_t>> dumps_;  // number and size, oldest first
  std::vector<Entry> entries_;                                  // sorted by fingerprint
  std::vector<const Placement*> placements_;                    // keys of numbers_
  std::map<Placement, std::uint32_t> numbers_;
};

}  // namespace dedup::plan
