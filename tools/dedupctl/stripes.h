// The stripes that a generation's recipe refers to, and what the stores have of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "plan/placement.h"
#include "tools/dedupctl/generation.h"

namespace dedup::ctl {

// Memory: about 200 bytes a stripe.
class Stripes {
 public:
  // Collective, with the same blocks on all ranks. Looks for all parts of the stripes in which
  // these blocks' chunks are, as far as it has not done so: it reads tables, and finds the rest in
  // indexes.
  void look_at(Generation& generation, std::span<const NumberedBlock> blocks);
  // How chunks of this placement, which it has looked at, are kept by what is there: a node that
  // lacks anything of its part of a stripe does not count for that. The same on all ranks.
  plan::Placement left_of(const plan::Placement& placement) const;

  // The same on all ranks.
  std::size_t count() const { return whole_on_.size(); }
  std::size_t whole() const { return whole_; }
  // What this process's stores lack, or have damaged.
  std::vector<Problem> problems(const Generation& generation) const;

 private:
  // Of a store.
  struct Lacking {
    std::size_t parities = 0;
    std::size_t tables = 0;
    std::size_t units = 0;  // of which a chunk is missing
    std::size_t count() const { return parities + tables + units; }
  };
  bool has_part(Part& part, const plan::StripeUnit& stripe, unsigned slot);

  // Of each, as the unit 0 of it names it: the nodes that have all of their part.
  std::map<plan::StripeUnit, plan::LiveNodes> whole_on_;
  std::size_t whole_ = 0;
  std::map<NodeIndex, Lacking> lacking_;
};

}  // namespace dedup::ctl
