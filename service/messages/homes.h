// Which node is a home. The same on every rank.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"

namespace dedup::service {

NodeIndex file_home(const std::string& path, NodeIndex nodes);
// Consecutive blocks go round the nodes, so that every long range is spread evenly. `seed`:
// FileInfo::home_seed.
NodeIndex block_home(const Id128& seed, std::uint64_t block, NodeIndex nodes);

}  // namespace dedup::service
