// xxHash's XXH3, in the widest vectors that the processor has: where the library was built to
// choose at run time, it is installed with the header that says so.
#pragma once

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif
