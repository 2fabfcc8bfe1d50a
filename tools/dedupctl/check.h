// What a check of one file has found.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/dedupctl/generation.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {

struct CheckResult {
  std::uint64_t chunks = 0;  // copies that were read
  std::uint64_t bytes = 0;
  std::uint64_t bad = 0;       // of them
  std::uint64_t unproven = 0;  // of them: named after their SHA-1
  Holding holding;
  std::uint64_t wanted = 0;        // copies
  std::uint64_t lowest_shard = 0;  // copies of any recipe shard
  std::vector<Problem> problems;   // on rank 0: all that is wrong

  bool is_sound() const;
};

// Collective: reads every copy of every chunk of the file, and every copy of its recipe.
Result<CheckResult> check_file(Session& session, const FileRow* file);

}  // namespace dedup::ctl
