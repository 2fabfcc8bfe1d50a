// What a store may have of a file when nobody is at work on it and gc has been.
#pragma once

#include <string>

#include "store/store.h"

namespace dedup::simulation {

// The file's generation, the chunks that its index names, each as it is named, and nothing else.
// What is wrong; empty: nothing.
std::string untidy(const store::Store& store, const Id128& identity);

}  // namespace dedup::simulation
