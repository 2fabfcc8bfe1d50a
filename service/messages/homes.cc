#include "service/messages/homes.h"

#include <span>

#include "store/format.h"

namespace dedup::service {

NodeIndex file_home(const std::string& path, NodeIndex nodes) {
  return static_cast<NodeIndex>(store::format::checksum(std::as_bytes(std::span(path))) % nodes);
}

// Different seeds start at different nodes.
NodeIndex block_home(const Id128& seed, std::uint64_t block, NodeIndex nodes) {
  std::uint64_t first = 0;
  for (unsigned i = 0; i < 8; ++i) first |= std::uint64_t{seed.bytes[i]} << (8 * i);
  return static_cast<NodeIndex>((first % nodes + block % nodes) % nodes);
}

}  // namespace dedup::service
