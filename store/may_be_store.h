// Where stores are, for whoever looks for them.
#pragma once

#include <string>

namespace dedup::store {

// Whether a store is in this directory, or may be: what cannot be looked at may be one.
bool may_be_store(const std::string& directory);

}  // namespace dedup::store
