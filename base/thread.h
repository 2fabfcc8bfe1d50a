// Threads of the driver's own.
#pragma once

#include <functional>
#include <thread>

#include "base/status.h"

namespace dedup {

// Starts one that takes no signals: those are the program's threads' business. `name`: at most 15
// characters.
Result<std::thread> start_thread(const char* name, std::function<void()> body);

}  // namespace dedup
