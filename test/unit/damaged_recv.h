// The process's recv(), in place of the C library's: one bit of what comes in can be flipped, as a
// bad cable or a bad memory module would.
#pragma once

#include <cstdint>

namespace dedup {

// Counts from here: the bit `bit` of the `byte`-th byte that the process receives is flipped, once.
void damage_received(std::uint64_t byte, unsigned bit);
// No more; how many bytes were received since damage_received() or stop_damage().
std::uint64_t stop_damage();

}  // namespace dedup
