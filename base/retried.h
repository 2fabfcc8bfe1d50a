// System calls that a signal may interrupt.
#pragma once

#include <cerrno>

namespace dedup {

// Calls until no signal interrupts it.
template <typename Call>
auto retried(Call&& call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace dedup
