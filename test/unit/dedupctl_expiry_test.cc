#include "tools/dedupctl/expiry.h"

#include <gtest/gtest.h>

namespace dedup::ctl {
namespace {

using Numbers = std::vector<std::size_t>;

constexpr std::uint64_t kNow = 1'000'000;
// The file's newest generation, and those before it.
constexpr std::uint64_t kNewest = kNow - 100;
const std::vector<std::uint64_t> kKept{kNow - 200, kNow - 300, kNow - 400};

Expired expired_of(const Expiry& expiry) {
  return expired(expiry, kNow, kNewest, kKept);
}

TEST(ExpiredGenerations, TooMany) {
  EXPECT_EQ(expired_of({.keep = 0}), (Expired{false, {2, 1, 0}}));
  EXPECT_EQ(expired_of({.keep = 1}), (Expired{false, {2, 1}}));
  EXPECT_EQ(expired_of({.keep = 3}), Expired{});
  EXPECT_EQ(expired_of({.keep = 9}), Expired{});
}

TEST(ExpiredGenerations, TooOld) {
  EXPECT_EQ(expired_of({.older_than = 401}), Expired{});
  EXPECT_EQ(expired_of({.older_than = 400}).kept, Numbers{2});
  EXPECT_EQ(expired_of({.older_than = 101}), (Expired{false, {2, 1, 0}}));
  EXPECT_EQ(expired_of({.older_than = 100}), (Expired{true, {}}));
  EXPECT_EQ(expired_of({.older_than = 0}), (Expired{true, {}}));
}

TEST(ExpiredGenerations, TooManyAndTooOld) {
  EXPECT_EQ(expired_of({.keep = 1, .older_than = 0}), (Expired{false, {2, 1}}));
  EXPECT_EQ(expired_of({.keep = 1, .older_than = 350}), (Expired{false, {2}}));
  EXPECT_EQ(expired_of({.keep = 0, .older_than = 500}), Expired{});
}

TEST(ExpiredGenerations, AClockThatIsAheadMakesNothingOld) {
  EXPECT_EQ(expired({.older_than = 0}, kNow, kNow + 1, std::vector<std::uint64_t>{kNow + 1}),
            Expired{});
}

}  // namespace
}  // namespace dedup::ctl
