// Opening and creating a store's directory.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/store_place.h"
#include "base/types.h"
#include "store/files/tiers.h"

namespace dedup::store {

struct OpenedStore {
  StorePlace place;  // with absolute paths
  Id128 uuid;
  std::vector<Tiers::Tier> tiers;  // the store itself last
};

// As Store::open: checks or makes the directories and everything that every store has.
Result<OpenedStore> open_store_directory(const StorePlace& place, bool create);

}  // namespace dedup::store
