// Reading back what a store has of a generation, against the fingerprints: for checking and
// healing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/store.h"

namespace dedup::store {

struct ChunkCheck {
  std::uint64_t chunks = 0;        // that were read
  std::uint64_t bytes = 0;         // of them
  std::uint64_t stored = 0;        // what they take in segments
  std::uint64_t unproven = 0;      // that are what their names say, which prove nothing (SHA-1)
  std::vector<Fingerprint> bad;    // missing in its segment, damaged, or not what it is named after
  std::vector<std::string> texts;  // what is wrong, for people; one for each segment or index page
};

// Reads every chunk that the generation's index names, in the order in which they lie on disk. With
// `parts` > 1 several processes share the work: each takes the stretches of 64 MiB of segments that
// are `part`'s. Memory: 56 bytes for each chunk of the part, and one chunk. The generation must
// stay meanwhile: lock it before.
//
// kNotFound if there is no index (the store has no chunk of the generation), kCorrupt if it is no
// index at all. Where a page of it is damaged, its chunks are left out, which `texts` says.
Result<ChunkCheck> check_chunks(const Store& store, const Id128& identity, const Id128& attempt,
                                unsigned part = 0, unsigned parts = 1);

}  // namespace dedup::store
