// Numbered files: those of one series have names that differ in digits only, as ckpt_0001.h5 and
// ckpt_0002.h5 in one directory.
//
// No state is kept; all functions may be called by several threads at once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "store/placeholder.h"
#include "store/real_path.h"

namespace dedup::store {

// At most `most` of `names` that are of one series with `name`, without itself: those before it,
// from the nearest on, then those after it. Numbers count, not how many digits they are written
// with. Pure.
std::vector<std::string> nearest_in_series(const std::string& name,
                                           const std::vector<std::string>& names, std::size_t most);

// A plain file, which may be cached.
struct PlainAt {
  std::string path;
  Stamp stamp;
};

// Of the eight files of a series that are nearest to a path, what was committed last.
struct InSeries {
  std::optional<Placeholder> placeholder;
  std::optional<PlainAt> plain;  // if it is newer than that, and not empty
};
// Nothing if there is no such file, or it cannot be told. Costs a walk of the directory's names,
// and a look at eight of them; nothing if the name has no digit.
InSeries newest_in_series(const std::string& path);

}  // namespace dedup::store
