// What the parts of class Store's implementation share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/fs.h"
#include "store/layout.h"
#include "store/store.h"

namespace dedup::store {

struct Store::Private {
  Layout layout;
  Id128 uuid;

  // All committed records of a file that have the highest number, and the damage met.
  struct Records {
    std::vector<CommitRecord> newest;
    std::vector<std::string> damaged;
  };
  Result<Records> records(const Id128& identity) const;
  // Attempts that have a directory, committed or not.
  Result<std::vector<Id128>> attempts(const Id128& identity) const;
};

// Names in a directory; none if it is missing.
Result<std::vector<std::string>> list_if_there(const std::string& path);

// Takes a kernel lock on the file `path`. kNotFound if it is not there or was removed while the
// lock was being taken, kFileInUse if somebody else has it.
Result<std::unique_ptr<fs::File>> lock_path(const std::string& path, bool exclusive);

}  // namespace dedup::store
