// What many tests include, compiled once for all of them where scripts/test builds them: see
// Makefile.am. Each test includes what it uses all the same. Nobody includes this one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/fields.h"
#include "base/hasher.h"
#include "base/status.h"
#include "service/messages/store_node.h"
#include "test/unit/store_helpers.h"
