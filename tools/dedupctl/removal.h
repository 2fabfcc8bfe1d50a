// What rm does: removes a file from the stores, and its placeholder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "tools/dedupctl/upkeep.h"

namespace dedup::ctl {

// Of one file.
struct Removal {
  Id128 identity;
  std::string path;
  bool with_mark = true;           // else the part of some stores only goes, and no placeholder
  std::vector<Id128> stores;       // that drop it
  std::vector<Id128> stores_left;  // that are not here and will have to
  std::vector<std::pair<Id128, Id128>> generations;  // what goes: store and attempt
  std::string placeholder;                           // where it stands; empty: nowhere known

  bool operator==(const Removal&) const = default;
};

// What a user gives.
struct RemovalRequest {
  std::string name;
  std::uint64_t generation = 0;      // an older one, which was kept, goes; 0: the file
  std::vector<std::string> nodes{};  // if there are any, only their stores' part goes
};

// Collective. kNoSuchFile, kConflict; kFileInUse if a job has the file open, or has changed it
// since the catalog was made. What was removed, on rank 0.
Result<Removal> remove_file(Upkeep& upkeep, const RemovalRequest& request);

}  // namespace dedup::ctl
