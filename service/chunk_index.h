// The chunks of one file that a node's store got since the last commit, in memory.
//
// Also keeps the claims: chunks that somebody is storing right now. At most 64 bytes a chunk, for
// more than a few thousand chunks: 48 for the chunk itself, in blocks that are never moved, and an
// open-addressing table of 5-byte slots (number of the chunk and 8 bits of its hash), between 3/8
// and 3/4 full. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/hasher.h"
#include "base/types.h"
#include "plan/placement.h"
#include "store/index.h"
#include "store/segment.h"

namespace dedup::service {

class ChunkIndex {
 public:
  // Whether a chunk can stand there (a segment has at most 8 TiB, a chunk 1 MiB and some byte).
  static bool possible(const store::ChunkLocation& location);

  // The number of a placement, to be given to put() and mark(); equal ones have one number, until
  // the next keep_from().
  std::uint32_t intern(const plan::Placement& placement);
  const plan::Placement& placement(std::uint32_t number) const { return *placements_[number]; }

  // False if the chunk is registered or claimed.
  bool claim(const Fingerprint& fingerprint);
  // Takes a claim back; does nothing to a chunk that is registered or unknown.
  void release(const Fingerprint& fingerprint);
  void release_all();
  // Registers a chunk, claimed or not. One that is registered stays where it is and takes the new
  // placement: the newest word on how it is kept. `location` must be possible().
  void put(const Fingerprint& fingerprint, const store::ChunkLocation& location,
           std::uint32_t placement);
  // Whether it is registered; if so, fills what is not null.
  bool find(const Fingerprint& fingerprint, store::ChunkLocation* location,
            const plan::Placement** placement = nullptr) const;
  // Whether a registered chunk has this content, as content_of() its name says; if so, its name.
  bool find_content(const Fingerprint& content, Fingerprint& name) const;
  // Marks a registered chunk, which is kept so; false if it is not registered.
  bool mark(const Fingerprint& fingerprint, std::uint32_t placement);
  void clear_marks();
  // Marks one that is not marked yet, as kept so, and says what it was: not here; not marked, or
  // marked with that placement; marked with another, which it keeps.
  enum class Pinned { kNot, kOnly, kReferredTo };
  Pinned pin(const Fingerprint& fingerprint, std::uint32_t placement);
  // Calls visit(number) for each registered chunk, in any order. Good for at() until the next
  // change.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t i = 0; i < entries_; ++i) {
      if (registered(entry(i))) visit(i);
    }
  }
  template <typename Visit>
  void for_each_marked(Visit&& visit) const {
    for (std::uint32_t i = 0; i < entries_; ++i) {
      if (registered(entry(i)) && (entry(i).placement & kMark) != 0) visit(i);
    }
  }
  // The numbers of the marked chunks, in ascending order of fingerprints. Good for at() until the
  // next change.
  std::vector<std::uint32_t> marked_in_order() const;
  // With the placement's number here.
  store::IndexEntry at(std::uint32_t number) const {
    const Entry& e = entry(number);
    return {e.fingerprint, location_of(e), e.placement & ~kMark};
  }
  // at(number) will be asked for soon. (An entry may lie in two of the processor's cache lines.)
  void prefetch(std::uint32_t number) const {
    __builtin_prefetch(&entry(number).fingerprint);
    __builtin_prefetch(&entry(number).placement);
  }

  // Forgets a registered chunk: it is gone, and may be claimed again.
  void forget(const Fingerprint& fingerprint);
  // Forgets the chunks of a segment: they are not to be relied on.
  void forget_segment(std::uint64_t segment);
  // Forgets all claims and the chunks of all segments with smaller numbers.
  void keep_from(std::uint64_t segment);

  std::uint64_t size() const { return registered_; }  // registered chunks
  std::uint64_t memory() const;                       // bytes

 private:
  struct Entry {
    Fingerprint fingerprint;
    std::uint64_t place = 0;      // offset and length of the location
    std::uint32_t segment = 0;    // index into segments_, or one of the two below
    std::uint32_t placement = 0;  // index into placements_, and kMark
  };
  static_assert(sizeof(Entry) == 48);
  static constexpr std::uint32_t kClaimed = 0xffffffff;
  static constexpr std::uint32_t kVacant = 0xfffffffe;  // a claim that was released
  static constexpr std::uint32_t kMark = 0x80000000;
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint32_t kBlockEntries = 256;

  static bool registered(const Entry& e) { return e.segment < kVacant; }
  static std::uint64_t hash(const Fingerprint& fingerprint);
  Entry& entry(std::uint32_t i) { return (*blocks_[i / kBlockEntries])[i % kBlockEntries]; }
  const Entry& entry(std::uint32_t i) const {
    return (*blocks_[i / kBlockEntries])[i % kBlockEntries];
  }
  store::ChunkLocation location_of(const Entry& e) const;
  std::uint32_t lookup(const Fingerprint& fingerprint) const;  // kNone if it is not there
  std::uint32_t insert(const Fingerprint& fingerprint);        // finds it or makes it, vacant
  void enter(std::uint32_t i);                                 // into the table
  void grow();
  std::uint32_t segment_index(std::uint64_t segment);

  std::vector<std::unique_ptr<std::array<Entry, kBlockEntries>>> blocks_;
  std::uint32_t entries_ = 0;
  std::uint64_t registered_ = 0;
  std::vector<std::uint32_t> slots_;  // numbers of entries, kNone if empty; a power of two of them
  std::vector<std::uint8_t> tags_;    // the top bits of the hash of the slot's chunk
  std::vector<std::uint64_t> segments_;
  std::unordered_map<std::uint64_t, std::uint32_t> segment_numbers_;
  std::vector<const plan::Placement*> placements_;  // keys of placement_numbers_
  std::map<plan::Placement, std::uint32_t> placement_numbers_;
};

}  // namespace dedup::service
