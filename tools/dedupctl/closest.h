// Which word somebody meant who mistyped one.
#pragma once

#include <span>
#include <string>

namespace dedup::ctl {

// Of `known`, the first that has the fewest mistakes in `word`, of these at most one for each three
// letters begun: a letter more, less or another one, or two that changed places. Empty: none has so
// few.
std::string closest(const std::string& word, std::span<const std::string> known);

}  // namespace dedup::ctl
