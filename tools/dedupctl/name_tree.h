// Paths as a tree of directories, for a file system that shows them. No file system is looked at.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace dedup::ctl {

class NameTree {
 public:
  enum class Kind { kFile, kDirectory };
  using Entries = std::map<std::string, Kind, std::less<>>;

  // A file, by its absolute path. kBadFile, and nothing is added, if it cannot be shown: names in
  // it are not such as a directory can have, or something else has its place.
  Status add(const std::string& path);

  // Null if there is no such directory; "" is the topmost, "/scratch" one in it.
  const Entries* directory(std::string_view path) const;

 private:
  std::map<std::string, Entries, std::less<>> directories_{{"", {}}};
};

}  // namespace dedup::ctl
