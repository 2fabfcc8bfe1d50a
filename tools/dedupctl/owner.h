// What root does with a user's stores, he does as that user: so neither a store nor a placeholder
// can have him read, write or remove anything that the user could not.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace dedup::ctl {

// If this process is root's, and these directories (stores, or with stores in them) belong to
// another user: the whole process becomes his from here on, for good. Before there is a second
// thread. kArgument if they belong to several.
Status become_owner(const std::vector<std::string>& directories);

}  // namespace dedup::ctl
