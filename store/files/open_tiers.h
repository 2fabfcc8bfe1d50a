// Opening and making the faster tiers of a store.
//
// The store's file TIERS says where they are, so that who opens the store with fewer of them finds
// what is there: such a tier is leaving. One is forgotten when its directory is gone.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/store_place.h"
#include "base/types.h"
#include "store/files/layout.h"
#include "store/files/tiers.h"

namespace dedup::store {

// kArgument if two of them are one directory, or one is within another.
Status check_tiers_differ(const StorePlace& place);
// kAccess if this directory, which has no store, is a tier of another one.
Status check_no_tier(const Layout& layout);
// Those that the place names and those that are leaving, and the store itself. Without `create`,
// those that are there.
Result<std::vector<Tiers::Tier>> open_tiers(const StorePlace& place, const Id128& uuid,
                                            bool create);

}  // namespace dedup::store
