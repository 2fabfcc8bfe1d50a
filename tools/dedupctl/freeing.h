// What gc does: frees what nothing refers to any more.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "tools/dedupctl/upkeep.h"

namespace dedup::ctl {

struct Freed {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;         // that were dropped, each store's counted
  std::uint64_t moved_bytes = 0;   // of segments, to slower tiers
  std::uint64_t in_use = 0;        // left alone, since a job has them open or has changed them
  std::vector<std::string> notes;  // on rank 0: what is left alone, and why
};

// Whether its placeholder is found nowhere: it was removed, or moved to where nobody looks.
bool is_unnamed(const FileRow& file);

// Collective. `given_up`, which counts on rank 0: files that go if they are unnamed. The status is
// the first error that is not that a job has a file; `freed` counts whatever there was.
Status free_space(Upkeep& upkeep, const std::set<Id128>& given_up, Freed& freed);

}  // namespace dedup::ctl
