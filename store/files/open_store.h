// Opening and creating a store's directory.
#pragma once

#include <string>

#include "base/status.h"
#include "base/types.h"
#include "store/files/layout.h"

namespace dedup::store {

struct OpenedStore {
  Layout layout;
  Id128 uuid;
};

// As Store::open: checks or makes the directory and everything that every store has.
Result<OpenedStore> open_store_directory(const std::string& directory, bool create);

}  // namespace dedup::store
