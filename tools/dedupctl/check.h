// What a check of one file has found.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/dedupctl/holding.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {

struct CheckResult {
  std::uint64_t chunks = 0;  // copies that were read
  std::uint64_t bytes = 0;
  std::uint64_t bad = 0;       // of them
  std::uint64_t unproven = 0;  // of them: named after their SHA-1
  Holding holding;
  plan::Redundancy wanted;
  plan::Redundancy lowest_shard;  // of any recipe shard
  std::vector<Problem> problems;  // on rank 0: all that is wrong

  bool is_sound() const;
  // Whether some of the file is in stripes, or is to be.
  bool in_stripes(const store::CommitRecord& record) const;
};

struct CheckScope {
  bool reads_chunks = true;  // every copy of each
  bool as_can_be = false;  // on all of the record's stores is enough, even if they are less than K
};

// Collective: reads every copy of the file's recipe, and looks for every chunk in every store's
// index.
Result<CheckResult> check_file(Session& session, const FileRow* file, const CheckScope& scope);

}  // namespace dedup::ctl
