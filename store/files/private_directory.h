// Directories that are a user's own: where a store is, or a tier of one.
#pragma once

#include <string>

#include "base/status.h"

namespace dedup::store {

// A program may change its directory later: the path must not depend on it. Without slashes at the
// end, which would make the system follow a symbolic link.
Result<std::string> absolute(const std::string& directory);

// "store directory PATH WHY", kAccess.
Status refuse(const std::string& path, const std::string& why);

// Whether it is there; an error that says what to do if it cannot be.
Result<bool> is_there(const std::string& path);
// Makes it, and what is missing above.
Status make_private(const std::string& path);
// Whether it is a directory of this user's. One that others may enter is made private, unless it
// holds other things and not `marker`, which says that it is a store's.
Status check_private(const std::string& path, const std::string& marker);
// Makes the name of a directory durable, as far as who may do so is this user.
Status sync_above(const std::string& directory);

}  // namespace dedup::store
