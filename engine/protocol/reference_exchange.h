// Telling nodes which of their chunks a generation refers to: what each rank has for each node goes
// to the rank that speaks for it, in a grid (rank_grid.h), and from there to the node's service in
// one request. Told directly, n ranks would make n² requests.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "engine/protocol/rank_grid.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

// By the node that is asked: a request, and as its reply has it, which chunks it lacks.
using ReferencesByNode = std::map<NodeIndex, service::References>;
using LackingByNode = std::map<NodeIndex, std::vector<std::uint8_t>>;

// Sends all at once, from here. Local.
Result<LackingByNode> ask_nodes(service::Client& client, const ReferencesByNode& requests);

class ReferenceExchange {
 public:
  explicit ReferenceExchange(const JobFile& file)
      : file_(file), grid_(file.ranks(), speakers(file.ranks(), file.nodes())) {}

  struct Answer {
    bool lack_nothing = true;  // no node does of what any rank asked: the same on all ranks
    LackingByNode lacking;     // of this rank's requests, those to nodes that lack something
    Status heard;              // whether this rank has heard of all of these
  };
  // Collective; `mine`: whether this rank goes on. The error of any rank is every rank's.
  Result<Answer> ask(const Status& mine, ReferencesByNode requests) const;

 private:
  // What came to this rank: by whom, to which node, which of the chunks that the node is told of.
  struct Part {
    std::uint32_t from = 0;  // rank
    NodeIndex node = kNoNode;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  Status bring(const std::vector<Post>& posts, std::vector<Part>& parts,
               LackingByNode& lacking) const;

  const JobFile& file_;
  RankGrid grid_;
};

}  // namespace dedup::engine
