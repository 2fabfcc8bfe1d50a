// Texts for places that do not hold everything, and for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dedup {

// `text` as it is if it has at most `most` bytes. Otherwise long absolute paths in it are replaced
// by "..." and their last component, from the left, until it fits, so that the cause behind a path
// is not what gets lost; what is still too long is cut at the end.
std::string abbreviate(std::string_view text, std::size_t most);

// For terminals: control characters, which names of files may have, as \x1b.
std::string printable(std::string_view text);

// "512 B", "4.0 KiB", "8.2 MiB".
std::string human(std::uint64_t bytes);

}  // namespace dedup
