// Where placeholders stand: what a directory has, whatever names the files in it have been given.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/commit_record.h"
#include "store/placeholder.h"

namespace dedup::store {

// A placeholder that stands somewhere.
struct Placed {
  std::string path;
  Placeholder placeholder;
  bool is_copy = false;  // made by copying one, not by moving it
};

// What is in a directory.
struct DirectoryLook {
  DirectoryId id;  // zero: there is no such directory
  std::vector<Placed> placeholders;
  // Of placeholders that are about to take some path's place, or that killed jobs left
  // (store/replacement.h): what they name may stand there any moment.
  std::vector<Id128> to_be_placed;
  std::vector<std::string> directories;  // paths; links to directories are none
  // Why there may be placeholders that were not seen, if so: the directory cannot be read or was
  // just changing, or a placeholder in it is damaged.
  Status whole;
};

// Files of another size than a placeholder's are not opened.
DirectoryLook look_in(const std::string& directory);

// Looks at each directory once, however often it is asked for.
class Directories {
 public:
  const DirectoryLook& look_in(const std::string& directory);

 private:
  std::map<std::string, DirectoryLook> looks_;
};

}  // namespace dedup::store
