// Named steps at which a test build can kill this process (test/hooks/failpoint.cc). What users
// have does nothing there.
#pragma once

namespace dedup::engine {

void failpoint(const char* step);

}  // namespace dedup::engine
