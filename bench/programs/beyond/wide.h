// Node numbers of 32 bits in place of 16, for sources that are compiled with `-include` of this:
// the driver has at most 65534 nodes in a job, and the question is how its reduction would go on
// growing beyond. (Counts of designated nodes in messages become 32 bits wide, too: 4 bytes an
// element more than need be.) Everything from the system that the sources include comes first.
#pragma once

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#define uint16_t uint32_t
