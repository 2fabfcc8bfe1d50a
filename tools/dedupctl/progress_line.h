// How far something is, for people.
#pragma once

#include <cstdint>
#include <string>

namespace dedup::ctl {

// "file [#####.....] 2.0 GiB of 4.0 GiB, 100.0 MiB/s, 20.5 s left", after so many seconds.
std::string progress_line(const std::string& label, std::uint64_t done, std::uint64_t total,
                          double seconds);

}  // namespace dedup::ctl
