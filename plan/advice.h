// What a user could do for a file to deduplicate better.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/sample.h"

namespace dedup::plan {

struct Findings {
  bool is_compared = true;  // false: it was written without deduplication
  bool in_stripes = false;  // it is kept so
  std::uint32_t chunk_size = 0;
  std::uint64_t piece_bytes = 0;   // how long the pieces are that it was written in; 0: not known
  std::uint64_t data_bytes = 0;    // of the file, without zeros
  std::uint64_t unique_bytes = 0;  // of these, each different chunk once
  SampleFigures sample;
};

// Of the data, the share that was found to be there already.
double found_share(const Findings& findings);
// Below that, little was found.
inline constexpr double kFewFound = 0.05;

// Sentences about what hides equal data from any size of chunks; none if nothing does.
std::vector<std::string> advice_on_content(const Findings& findings);
// Sentences about all of it, those that promise most first; never none.
std::vector<std::string> advice(const Findings& findings);

}  // namespace dedup::plan
