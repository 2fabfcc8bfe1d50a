// Making stripes of what a generation has that is not kept well enough, before its recipe is built.
//
// Each group of nodes is one rank's business: it asks the nodes what units they have
// (service/stripe_units.h), decides which of them become a stripe (plan/stripes.h), has the
// parities made where they are kept (service/encode.h), and tells the nodes. Units never pass
// through it. A stripe that cannot be made is none: copies are made of its chunks.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "plan/stripes.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

// What was done for the stripes of all nodes that this rank speaks for.
struct StripeFigures {
  std::uint64_t stored_bytes = 0;  // parities and tables
  std::uint64_t sent_bytes = 0;    // from node to node
};

class Striping {
 public:
  // `attempt`: at the commit that it is for. `looks_at_all`: also at what the generation before
  // has.
  Striping(JobFile& file, const Id128& attempt, bool looks_at_all);

  // Collective. Messages: for a group of G nodes about 3 G, and one for each 64 stripes.
  Status run();
  const StripeFigures& figures() const { return figures_; }
  // Stripes of which the file needs less than half: what it needs is in others now. On all ranks.
  const std::set<Id128>& sparse() const { return sparse_; }

 private:
  // By node.
  using Joined = std::map<NodeIndex, std::vector<service::JoinedUnit>>;
  Status find_sparse(std::span<const NodeIndex> group);
  Status share_sparse(Status status);
  Status stripe(std::span<const NodeIndex> group, const plan::StripeShape& shape);
  Result<std::vector<std::uint32_t>> make_units(std::span<const NodeIndex> group,
                                                const plan::StripeShape& shape) const;
  // What the nodes of units are to be told of the stripes that were made.
  Result<Joined> encode(const std::vector<plan::Stripe>& stripes);
  Status join(const Joined& joined) const;

  JobFile& file_;
  Id128 attempt_;
  bool looks_at_all_;
  std::vector<NodeIndex> stores_;  // of the generation before, as nodes
  StripeFigures figures_;
  std::set<Id128> sparse_;
};

}  // namespace dedup::engine
