#include "plan/tally.h"

#include <gtest/gtest.h>

#include <vector>

namespace dedup::plan {
namespace {

Piece chunk(std::uint32_t begin, std::uint32_t length) {
  Piece piece;
  piece.begin = begin;
  piece.length = length;
  piece.chunk_length = length;
  return piece;
}

Piece zeros(std::uint32_t begin, std::uint32_t length) {
  Piece piece = chunk(begin, length);
  piece.chunk_length = 0;
  return piece;
}

constexpr std::uint64_t kIgnored = 0;

TEST(Tally, OfNothing) {
  const Tally tally(0, 3);
  EXPECT_EQ(tally.lowest_copies(), 3u);
  EXPECT_TRUE(tally.lost().empty());
}

TEST(Tally, CountsDataAndNotZeros) {
  Tally tally(kBlockSpan, 2);
  const std::vector<std::uint64_t> copies{2, kIgnored, 5};
  tally.add(0, {{chunk(0, 100), zeros(100, 50), chunk(200, 7)}, {}}, copies);
  EXPECT_EQ(tally.data_bytes(), 107u);
  EXPECT_EQ(tally.references(), 2u);
  EXPECT_EQ(tally.lowest_copies(), 2u);
  EXPECT_EQ(tally.short_bytes(), 0u);
  EXPECT_EQ(tally.lost_bytes(), 0u);
}

TEST(Tally, TellsWhatIsLostFromWhatIsShort) {
  Tally tally(10 * kBlockSpan, 3);
  const std::vector<std::uint64_t> copies{1, 0, 0, 3};
  tally.add(2, {{chunk(0, 10), chunk(10, 10), chunk(20, 10), chunk(30, 10)}, {}}, copies);
  EXPECT_EQ(tally.short_bytes(), 10u);
  EXPECT_EQ(tally.lost_bytes(), 20u);
  EXPECT_EQ(tally.lowest_copies(), 0u);
  EXPECT_EQ(tally.lost(), (std::vector<ByteRange>{{2 * kBlockSpan + 10, 20}}));
}

TEST(Tally, JoinsRangesOfBlocksInAnyOrder) {
  Tally tally(10 * kBlockSpan, 1);
  const std::vector<std::uint64_t> none{0};
  const auto span = static_cast<std::uint32_t>(kBlockSpan);
  tally.add(5, {{chunk(0, 10)}, {}}, none);
  tally.add(4, {{chunk(span - 5, 5)}, {}}, none);
  tally.add(1, {{chunk(0, 1)}, {}}, none);
  EXPECT_EQ(tally.lost(), (std::vector<ByteRange>{{kBlockSpan, 1}, {5 * kBlockSpan - 5, 15}}));
}

TEST(Tally, ShardsThatCannotBeRead) {
  Tally tally(3 * kBlockSpan + 100, 2);
  tally.add_unknown_blocks(1, 2);
  EXPECT_EQ(tally.lost(),
            (std::vector<ByteRange>{{kBlockSpan, kBlockSpan}, {3 * kBlockSpan, 100}}));
  EXPECT_EQ(tally.lowest_copies(), 0u);
  Tally beyond(kBlockSpan, 2);
  beyond.add_unknown_blocks(1, 2);
  EXPECT_EQ(beyond.lost_bytes(), 0u);
  EXPECT_EQ(beyond.lowest_copies(), 2u);
}

}  // namespace
}  // namespace dedup::plan
