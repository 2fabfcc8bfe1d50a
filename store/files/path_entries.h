// Path entries: which identities a path had on this store. One small file for each path, named by
// the path's hash, so that no path ever becomes part of a file name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/files/layout.h"

namespace dedup::store {

// The name of a path's entry: SHA-256 in hexadecimal.
std::string path_key(std::string_view path);

// Identities that `path` had here. A damaged entry is replaced by what the files themselves say.
Result<std::vector<Id128>> read_path_entry(const Layout& layout, const std::string& path);
// Those of one file, by its marks; of damaged entries nothing is known.
Result<std::vector<std::string>> paths_of(const Layout& layout, const Id128& identity);
// All paths that have an entry here; of damaged entries nothing is known.
Result<std::vector<std::string>> list_paths(const Layout& layout);
// Safe while other processes do the same. What is added is durable when the entry and the directory
// of all entries have been flushed; until then a loss of power may leave a damaged entry.
Status add_to_path_entry(const Layout& layout, const std::string& path, const Id128& identity);
// Durable when it returns; otherwise as above.
Status remove_from_path_entry(const Layout& layout, const std::string& key, const Id128& identity);

}  // namespace dedup::store
