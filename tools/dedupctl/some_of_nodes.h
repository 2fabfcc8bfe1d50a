// What the processes say together of which nodes have something.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace dedup::ctl {

// Which nodes of each of several lists have something, as the processes say together, each of its
// own. Of a list the first 64 nodes count: what is on more is kept well enough.
class SomeOfNodes {
 public:
  // A word for each list, at first 0. No node is two processes', so that the words of all processes
  // are put together by their sum. They must outlive it.
  explicit SomeOfNodes(std::span<std::uint64_t> words) : bits_(words) {}

  void add(std::size_t list, const std::vector<NodeIndex>& nodes, NodeIndex node) {
    const auto at = std::find(nodes.begin(), nodes.end(), node);
    const auto bit = static_cast<std::size_t>(at - nodes.begin());
    if (at != nodes.end() && bit < kBits) bits_[list] |= std::uint64_t{1} << bit;
  }
  NodeSet of(std::size_t list, const std::vector<NodeIndex>& nodes) const {
    NodeSet some;
    for (std::size_t bit = 0; bit < std::min(kBits, nodes.size()); ++bit) {
      if ((bits_[list] >> bit & 1) != 0) some.push_back(nodes[bit]);
    }
    return some;
  }
  bool is_as_before(std::size_t list) const { return list > 0 && bits_[list] == bits_[list - 1]; }

 private:
  static constexpr std::size_t kBits = 64;

  std::span<std::uint64_t> bits_;
};

}  // namespace dedup::ctl
