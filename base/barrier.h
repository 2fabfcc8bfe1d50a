// Nothing throws across a module's border, and nothing out of a thread's body: what may throw,
// which is mostly an allocation, is called through this.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "base/status.h"

namespace dedup {

// Calls `work`; returns what it threw as an error, or ok. Throws nothing itself: where there is no
// memory, the texts are short enough to need none.
template <typename Work>
Status no_exceptions(Work&& work) noexcept {
  try {
    work();
    return {};
  } catch (const std::bad_alloc&) {
    return {Code::kNoMemory, "out of memory"};
  } catch (const std::exception& e) {
    try {
      return {Code::kInternal, e.what()};
    } catch (...) {
      return {Code::kNoMemory, "out of memory"};
    }
  } catch (...) {
    return {Code::kInternal, "an exception"};
  }
}

}  // namespace dedup
