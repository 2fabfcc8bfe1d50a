// What goes wrong, for HDF5's error stack.
#pragma once

#include <H5public.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "engine/dedup.h"

namespace dedup::hdf5 {

// Onto the error stack of the call that HDF5 is in.
void push_error(const char* where, const std::string& text);

// If `result` is not MPI_SUCCESS; from a call of the engine.
inline void check(int result, const dedup_error& error) {
  if (result != MPI_SUCCESS) throw std::runtime_error(error.text);
}

// Nothing throws through C: what f throws becomes an entry of the error stack, and `failure` is
// returned.
template <typename Result, typename F>
Result guarded(const char* where, Result failure, F&& f) {
  try {
    return f();
  } catch (const std::exception& e) {
    push_error(where, e.what());
    return failure;
  }
}

}  // namespace dedup::hdf5
