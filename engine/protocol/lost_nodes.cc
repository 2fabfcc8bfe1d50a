#include "engine/protocol/lost_nodes.h"

namespace dedup::engine {

Status check_nodes(service::Client& client, const Ranks& ranks) {
  Status mine;
  for (int node = ranks.rank(); node < client.nodes() && mine.is_ok(); node += ranks.size()) {
    const auto asked = static_cast<NodeIndex>(node);
    if (client.is_there(asked)) continue;
    mine = Status(Code::kUnreachable, "node " + client.node_name(asked) + " is lost");
  }
  return ranks.agree(mine);
}

}  // namespace dedup::engine
