// Making stripes of what a generation has that is not kept well enough, before its recipe is built.
//
// Each group of nodes is the business of the ranks that speak for its nodes: they ask these what
// units they have (service/stripe_units.h), tell each other, come to the same stripes
// (plan/stripes.h), and make them (stripe_maker.h). A stripe that cannot be made is none: copies
// are made of its chunks.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "engine/protocol/stripe_maker.h"
#include "plan/stripes.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

class Striping {
 public:
  // `attempt`: at the commit that it is for. `looks_at_all`: also at what the generation before
  // has.
  Striping(JobFile& file, const Id128& attempt, bool looks_at_all);

  // Collective. Requests, to the node's own service: 3 a node, and 3 for each round of stripes.
  Status run();
  // Of all nodes that this rank speaks for.
  const StripeMaker::Figures& figures() const { return figures_; }
  // Stripes of which the file needs less than half: what it needs is in others now. On all ranks.
  const std::set<Id128>& sparse() const { return sparse_; }

 private:
  void find_sparse(const StripeGroup& group, Status& status);
  Status share_sparse(Status status);
  Status stripe(const StripeGroup& group, const plan::StripeShape& shape);
  Result<std::vector<NewStripe>> plan_stripes(const StripeGroup& group,
                                              const plan::StripeShape& shape,
                                              std::uint32_t& longest) const;
  Status join(std::span<const NewStripe> stripes, const std::vector<bool>& made) const;

  JobFile& file_;
  Id128 attempt_;
  bool looks_at_all_;
  std::vector<NodeIndex> stores_;  // of the generation before, as nodes
  StripeMaker::Figures figures_;
  std::set<Id128> sparse_;
};

}  // namespace dedup::engine
