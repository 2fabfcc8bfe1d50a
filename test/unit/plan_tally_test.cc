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

constexpr std::uint32_t kIgnored = 0;

std::vector<Redundancy> copies(std::initializer_list<std::uint32_t> numbers) {
  std::vector<Redundancy> kept;
  for (const std::uint32_t n : numbers) kept.push_back(Redundancy::copies(n));
  return kept;
}

TEST(Tally, OfNothing) {
  const Tally tally(0, Redundancy::copies(3));
  EXPECT_EQ(tally.lowest(), Redundancy::copies(3));
  EXPECT_TRUE(tally.lost().empty());
}

TEST(Tally, CountsDataAndNotZeros) {
  Tally tally(kBlockSpan, Redundancy::copies(2));
  const auto kept = copies({2, kIgnored, 5});
  tally.add(0, {{chunk(0, 100), zeros(100, 50), chunk(200, 7)}, {}}, kept);
  EXPECT_EQ(tally.data_bytes(), 107u);
  EXPECT_EQ(tally.references(), 2u);
  EXPECT_EQ(tally.lowest(), Redundancy::copies(2));
  EXPECT_EQ(tally.short_bytes(), 0u);
  EXPECT_EQ(tally.lost_bytes(), 0u);
}

TEST(Tally, TellsWhatIsLostFromWhatIsShort) {
  Tally tally(10 * kBlockSpan, Redundancy::copies(3));
  const auto kept = copies({1, 0, 0, 3});
  tally.add(2, {{chunk(0, 10), chunk(10, 10), chunk(20, 10), chunk(30, 10)}, {}}, kept);
  EXPECT_EQ(tally.short_bytes(), 10u);
  EXPECT_EQ(tally.lost_bytes(), 20u);
  EXPECT_EQ(tally.lowest(), Redundancy::copies(0));
  EXPECT_EQ(tally.lost(), (std::vector<ByteRange>{{2 * kBlockSpan + 10, 20}}));
}

TEST(Tally, JoinsRangesOfBlocksInAnyOrder) {
  Tally tally(10 * kBlockSpan, Redundancy::copies(1));
  const auto none = copies({0});
  const auto span = static_cast<std::uint32_t>(kBlockSpan);
  tally.add(5, {{chunk(0, 10)}, {}}, none);
  tally.add(4, {{chunk(span - 5, 5)}, {}}, none);
  tally.add(1, {{chunk(0, 1)}, {}}, none);
  EXPECT_EQ(tally.lost(), (std::vector<ByteRange>{{kBlockSpan, 1}, {5 * kBlockSpan - 5, 15}}));
}

TEST(Tally, ShardsThatCannotBeRead) {
  Tally tally(3 * kBlockSpan + 100, Redundancy::copies(2));
  tally.add_unknown_blocks(1, 2);
  EXPECT_EQ(tally.lost(),
            (std::vector<ByteRange>{{kBlockSpan, kBlockSpan}, {3 * kBlockSpan, 100}}));
  EXPECT_EQ(tally.lowest(), Redundancy::copies(0));
  Tally beyond(kBlockSpan, Redundancy::copies(2));
  beyond.add_unknown_blocks(1, 2);
  EXPECT_EQ(beyond.lost_bytes(), 0u);
  EXPECT_EQ(beyond.lowest(), Redundancy::copies(2));
}

}  // namespace
}  // namespace dedup::plan
