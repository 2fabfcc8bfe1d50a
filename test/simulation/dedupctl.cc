#include "test/simulation/dedupctl.h"

#include <set>
#include <utility>

#include "tools/dedupctl/removal.h"

namespace dedup::simulation {

Dedupctl::Dedupctl(const std::vector<NodeIndex>& nodes) {
  for (const NodeIndex n : nodes) {
    auto opened = store::Store::open(Cluster::disk(n) + "/s", false);
    if (!opened.is_ok()) continue;
    upkeep_.local.stores.push_back({"n" + std::to_string(n), std::move(*opened)});
  }
  upkeep_.catalog = ctl::make_catalog(alone_, upkeep_.local, {}, true);
}

const store::Store& Dedupctl::store(const ctl::FileOnStore& on) const {
  return *upkeep_.local.stores[upkeep_.catalog.stores[on.store].local].store;
}

Status Dedupctl::gc(bool unnamed, ctl::Freed& freed) {
  std::set<Id128> given_up;
  for (const ctl::FileRow& row : upkeep_.catalog.files) {
    if (unnamed) given_up.insert(row.identity);
  }
  return ctl::free_space(upkeep_, given_up, freed);
}

Status Dedupctl::rm(const std::string& path, const std::vector<std::string>& nodes) {
  return ctl::remove_file(upkeep_, {path, 0, nodes}).status();
}

}  // namespace dedup::simulation
