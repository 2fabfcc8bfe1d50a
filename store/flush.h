// Flushing several files and directories together.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace dedup::store {

// Makes the data of `files` and the names in `directories` durable, in no order: whoever needs one
// of them before another makes two calls. A file system with a journal writes what is flushed at
// the same time at once, so that it takes about as long as one of them. The first error, in the
// order given; none of the files may be flushed again then.
Status flush_together(const std::vector<std::string>& files,
                      const std::vector<std::string>& directories);

}  // namespace dedup::store
