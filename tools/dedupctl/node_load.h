// What each node has of a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/dedupctl/session.h"

namespace dedup::ctl {

struct NodeLoad {
  std::string node;
  std::string uuid;
  std::string state;  // name_of(Standing)
  std::uint64_t chunks = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t log_bytes = 0;
};

// Of each store of the file's record.
std::vector<NodeLoad> loads(const Session& session, const FileRow& file);

}  // namespace dedup::ctl
