#include "tools/dedupctl/duration.h"

#include <gtest/gtest.h>

namespace dedup::ctl {
namespace {

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

TEST(ParseDuration, MayHaveFractions) {
  EXPECT_DOUBLE_EQ(*parse_duration("0.5s"), 0.5);
  EXPECT_DOUBLE_EQ(*parse_duration("1.5h"), 5400);
  EXPECT_DOUBLE_EQ(*parse_duration("24h"), 86400);
  for (const char* text : {"", "s", "0s", "-1s", "1e3s", "infs", "nans", "1", "1.5.2s", " 1s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(DurationText, HasTheUnitThatFits) {
  EXPECT_EQ(duration_text(0.25), "0.25 s");
  EXPECT_EQ(duration_text(12), "12.0 s");
  EXPECT_EQ(duration_text(1440), "24.0 min");
  EXPECT_EQ(duration_text(86400), "24.0 h");
  EXPECT_EQ(duration_text(1e6), "11.6 d");
}

}  // namespace
}  // namespace dedup::ctl
