// dedupctl, with the stores of some nodes: what it finds there first, and what it then does.
#pragma once

#include <string>
#include <vector>

#include "base/ranks.h"
#include "test/simulation/cluster.h"
#include "tools/dedupctl/freeing.h"
#include "tools/dedupctl/upkeep.h"

namespace dedup::simulation {

class Dedupctl {
 public:
  explicit Dedupctl(const std::vector<NodeIndex>& nodes);

  // With `unnamed`, what has no name goes, too.
  Status gc(bool unnamed, ctl::Freed& freed);
  // Of the whole file, or of the part of these nodes.
  Status rm(const std::string& path, const std::vector<std::string>& nodes = {});

  const ctl::Catalog& catalog() const { return upkeep_.catalog; }
  const store::Store& store(const ctl::FileOnStore& on) const;

 private:
  OneRank alone_;
  ctl::Upkeep upkeep_{alone_, {}, {}};
};

}  // namespace dedup::simulation
