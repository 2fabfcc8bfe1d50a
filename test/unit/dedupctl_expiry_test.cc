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

TEST(ParseAge, ANumberAndAUnit) {
  EXPECT_EQ(parse_age("90s"), 90u);
  EXPECT_EQ(parse_age("30m"), 30u * 60);
  EXPECT_EQ(parse_age("12h"), 12u * 3600);
  EXPECT_EQ(parse_age("7d"), 7u * 86400);
  EXPECT_EQ(parse_age("0s"), 0u);
}

TEST(ParseAge, NothingElse) {
  for (const char* text : {"", "7", "d", "7w", "-7d", "+7d", " 7d", "7 d", "7.5d", "1h30m", "7dd",
                           "99999999999999999999s", "999999999999999999d"}) {
    EXPECT_EQ(parse_age(text), std::nullopt) << text;
  }
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
