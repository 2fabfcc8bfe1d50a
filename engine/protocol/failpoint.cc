#include "engine/protocol/failpoint.h"

namespace dedup::engine {

[[gnu::weak]] void failpoint(const char*) {}

}  // namespace dedup::engine
