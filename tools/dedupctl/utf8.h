#pragma once

#include <string>

namespace dedup::ctl {

// Names of files need not be UTF-8: what is not is replaced by U+FFFD.
std::string as_utf8(const std::string& text);

}  // namespace dedup::ctl
