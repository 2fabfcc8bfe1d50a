#include "base/byte_ranges.h"

#include <gtest/gtest.h>

#include <random>

namespace dedup {
namespace {

using Ranges = std::vector<ByteRange>;

TEST(ByteRanges, AreJoinedWhereTheyTouchOrOverlap) {
  EXPECT_EQ(joined({{10, 5}, {0, 3}, {3, 2}, {12, 1}, {20, 0}, {30, 4}, {31, 9}}),
            (Ranges{{0, 5}, {10, 5}, {30, 10}}));
  EXPECT_EQ(joined({}), Ranges{});
}

TEST(ByteRanges, OneThatGoesOnIsAddedToTheLast) {
  Ranges ranges;
  append(ranges, {0, 3});
  append(ranges, {3, 4});
  append(ranges, {1, 1});
  EXPECT_EQ(ranges, (Ranges{{0, 7}, {1, 1}}));
}

TEST(ByteRanges, WhatIsMissingIsTheRestOfTheFile) {
  EXPECT_EQ(missing({{5, 5}, {20, 100}}, 50), (Ranges{{0, 5}, {10, 10}}));
  EXPECT_EQ(missing({}, 7), (Ranges{{0, 7}}));
  EXPECT_EQ(missing({}, 0), Ranges{});
  EXPECT_EQ(missing({{0, 7}}, 7), Ranges{});
  EXPECT_EQ(missing({{100, 7}}, 50), (Ranges{{0, 50}}));
}

TEST(ByteRanges, TheyAndWhatIsMissingAreAllBytesOnce) {
  std::minstd_rand random(7);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t size = random() % 200;
    Ranges some;
    std::vector<bool> has(size);
    for (std::size_t k = random() % 6; k > 0; --k) {
      const std::uint64_t offset = random() % 200;
      some.push_back({offset, random() % 60});
      for (std::uint64_t b = offset; b < some.back().end() && b < size; ++b) has[b] = true;
    }
    std::uint64_t last_end = 0;
    for (const ByteRange& range : missing(some, size)) {
      EXPECT_GT(range.length, 0u);
      EXPECT_TRUE(range.offset > last_end || range.offset == 0);
      last_end = range.end();
      for (std::uint64_t b = range.offset; b < range.end(); ++b) {
        EXPECT_FALSE(has.at(b));
        has.at(b) = true;
      }
    }
    EXPECT_EQ(std::count(has.begin(), has.end(), false), 0);
  }
}

TEST(ByteRanges, CommonIsWhatIsInBoth) {
  EXPECT_TRUE(common({}, {{0, 10}}).empty());
  EXPECT_TRUE(common({{0, 10}}, {{10, 10}}).empty());
  EXPECT_EQ(common({{20, 10}, {0, 10}}, {{5, 20}}), (std::vector<ByteRange>{{5, 5}, {20, 5}}));
  EXPECT_EQ(common({{3, 4}, {5, 6}}, {{0, 100}}), (std::vector<ByteRange>{{3, 8}}));
}

}  // namespace
}  // namespace dedup
