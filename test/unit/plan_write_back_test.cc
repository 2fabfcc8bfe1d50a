#include "plan/write_back.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/byte_ranges.h"

namespace dedup::plan {
namespace {

constexpr std::uint64_t kUnit = 100;

TEST(PlanWriteBack, EveryWriterGetsOneLongPart) {
  const ByteRange all{0, 1050};
  const auto parts = deal_to_writers({&all, 1}, 4, kUnit);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0], (std::vector<ByteRange>{{0, 300}}));
  EXPECT_EQ(parts[1], (std::vector<ByteRange>{{300, 300}}));
  EXPECT_EQ(parts[2], (std::vector<ByteRange>{{600, 300}}));
  EXPECT_EQ(parts[3], (std::vector<ByteRange>{{900, 150}}));
}

TEST(PlanWriteBack, OfLittleNotAllGetSomething) {
  const ByteRange little{0, 150};
  const auto parts = deal_to_writers({&little, 1}, 5, kUnit);
  EXPECT_EQ(parts[0], (std::vector<ByteRange>{{0, 100}}));
  EXPECT_EQ(parts[1], (std::vector<ByteRange>{{100, 50}}));
  for (std::size_t w = 2; w < 5; ++w) EXPECT_TRUE(parts[w].empty());
  for (const auto& none : deal_to_writers({}, 3, kUnit)) EXPECT_TRUE(none.empty());
}

TEST(PlanWriteBack, AllIsDealtOnceAndNoUnitToTwo) {
  std::minstd_rand random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t size = 1 + random() % 5000;
    std::vector<ByteRange> written;
    for (std::size_t k = random() % 8; k > 0; --k)
      written.push_back({random() % size, random() % 700});
    const auto wanted = missing(written, size);
    const std::size_t writers = 1 + random() % 9;
    const auto parts = deal_to_writers(wanted, writers, kUnit);
    ASSERT_EQ(parts.size(), writers);
    std::vector<ByteRange> dealt;
    std::map<std::uint64_t, std::size_t> writer_of;
    std::uint64_t most = 0;
    for (std::size_t w = 0; w < writers; ++w) {
      std::set<std::uint64_t> units;
      for (const ByteRange& range : parts[w]) {
        EXPECT_GT(range.length, 0u);
        dealt.push_back(range);
        for (std::uint64_t u = range.offset / kUnit; u * kUnit < range.end(); ++u) {
          units.insert(u);
          EXPECT_EQ(writer_of.try_emplace(u, w).first->second, w);
        }
      }
      most = std::max<std::uint64_t>(most, units.size());
    }
    EXPECT_EQ(bytes_of(dealt), bytes_of(wanted));
    EXPECT_EQ(joined(dealt), wanted);
    EXPECT_TRUE(std::is_sorted(dealt.begin(), dealt.end()));
    // A unit that two ranges are in counts twice.
    EXPECT_LE(most, (writer_of.size() + wanted.size()) / writers + 2);
  }
}

TEST(PlanWriteBack, UnitsAreWholeBlocksOfTheFileSystem) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  EXPECT_EQ(writing_unit(0), 4 * kMiB);
  EXPECT_EQ(writing_unit(4096), 4 * kMiB);
  EXPECT_EQ(writing_unit(16 * kMiB), 16 * kMiB);
  EXPECT_EQ(writing_unit(3 * kMiB), 6 * kMiB);
}

}  // namespace
}  // namespace dedup::plan
