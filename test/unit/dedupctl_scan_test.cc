#include "tools/dedupctl/scan.h"

#include <gtest/gtest.h>

#include "base/types.h"
#include "test/unit/noise.h"

namespace dedup::ctl {
namespace {

using test::noise;

constexpr std::uint32_t kSmall = 1024;
constexpr std::uint32_t kLarge = 4096;
constexpr std::size_t kPart = 64 * kLarge;

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class ScanTest : public testing::Test {
 protected:
  Scan scan_{{kSmall, kLarge}, 4};

  void take(const Bytes& content) {
    scan_.begin(content.size());
    scan_.add(0, content);
  }
  ScanCost cost(const Way& way, hints::Mode mode = hints::Mode::kCollective) const {
    return scan_.cost(1, way, mode);
  }
  void expect(const ScanCost& cost, double stored, double sent) {
    EXPECT_NEAR(cost.stored, stored * kPart, 1);
    EXPECT_NEAR(cost.sent, sent * kPart, 1);
    EXPECT_GT(cost.lists, 0);
  }
};

TEST_F(ScanTest, WhatAllNodesHave) {
  const Bytes same = noise(1, kPart);
  take(joined({same, same, same, same}));
  const ScanFigures figures = scan_.figures(1);
  EXPECT_EQ(figures.data, 4 * kPart);
  EXPECT_DOUBLE_EQ(figures.found(), 0.75);
  EXPECT_DOUBLE_EQ(figures.found_alone(), 0);
  expect(cost({2, 0, 0}), 2, 0);
  expect(cost({3, 0, 0}), 3, 0);
  expect(cost({16, 0, 0}), 4, 0);
  expect(cost({2, 3, 1}), 2, 0);
  expect(cost({2, 0, 0}, hints::Mode::kLocal), 8, 4);
  expect(cost({2, 0, 0}, hints::Mode::kNone), 8, 4);
}

TEST_F(ScanTest, WhatNodesFindAlone) {
  const Bytes a = noise(1, kPart / 2);
  const Bytes b = noise(2, kPart / 2);
  take(joined({a, a, b, b, noise(3, 2 * kPart)}));
  EXPECT_DOUBLE_EQ(scan_.figures(1).found(), 0.25);
  EXPECT_DOUBLE_EQ(scan_.figures(1).found_alone(), 0.25);
  expect(cost({2, 0, 0}), 6, 3);
  expect(cost({2, 0, 0}, hints::Mode::kLocal), 6, 3);
  expect(cost({2, 0, 0}, hints::Mode::kNone), 8, 4);
}

TEST_F(ScanTest, WhatNothingRepeats) {
  take(noise(1, 4 * kPart));
  EXPECT_DOUBLE_EQ(scan_.figures(1).found(), 0);
  expect(cost({2, 0, 0}), 8, 4);
  expect(cost({1, 0, 0}), 4, 0);
  expect(cost({2, 3, 1}), 4 + 4. / 3, 4);
  expect(cost({3, 2, 2}), 8, 4 + 4. / 2);
}

TEST_F(ScanTest, SmallerChunksFindMore) {
  Bytes content;
  for (std::uint64_t i = 0; i < 64; ++i) {
    for (const Bytes& part : {noise(0, kSmall), noise(i + 1, kLarge - kSmall)}) {
      content.insert(content.end(), part.begin(), part.end());
    }
  }
  take(content);
  EXPECT_DOUBLE_EQ(scan_.figures(1).found(), 0);
  EXPECT_DOUBLE_EQ(scan_.figures(0).found(), 63. / 256);
  EXPECT_GT(scan_.cost(0, {}, hints::Mode::kCollective).lists,
            scan_.cost(1, {}, hints::Mode::kCollective).lists);
}

TEST_F(ScanTest, ZerosAndHolesAreNoData) {
  scan_.begin(4 * kPart);
  scan_.add(kPart, Bytes(kPart));
  scan_.add(2 * kPart, noise(1, kPart));
  EXPECT_EQ(scan_.figures(1).data, kPart);
  expect(cost({2, 0, 0}), 2, 1);
}

TEST_F(ScanTest, ALaterFileTakesWhatIsNew) {
  const Bytes old = noise(1, 3 * kPart);
  take(joined({old, noise(2, kPart)}));
  EXPECT_DOUBLE_EQ(scan_.figures(1).found_before(), 0);
  take(joined({old, noise(3, kPart)}));
  EXPECT_DOUBLE_EQ(scan_.figures(1).found_before(), 0.75);
  EXPECT_DOUBLE_EQ(scan_.figures(1).found(), 0);
  expect(cost({2, 0, 0}), 2, 1);
  expect(cost({2, 0, 0}, hints::Mode::kNone), 8, 4);
}

TEST_F(ScanTest, OfVeryManyChunksSomeAreCounted) {
  Scan few({kSmall}, 4, 1000);
  const Bytes half = noise(1, 4096 * kSmall);
  const Bytes content = joined({half, half});
  few.begin(content.size());
  few.add(0, content);
  EXPECT_EQ(few.figures(0).data, content.size());
  EXPECT_NEAR(few.figures(0).found(), 0.5, 0.01);
  const double stored = few.cost(0, {1, 0, 0}, hints::Mode::kCollective).stored;
  EXPECT_NEAR(stored / static_cast<double>(half.size()), 1, 0.01);
}

TEST_F(ScanTest, TheLastChunkIsShorter) {
  take(noise(1, 100));
  EXPECT_EQ(scan_.figures(1).data, 100u);
  EXPECT_DOUBLE_EQ(cost({2, 0, 0}).stored, 200);
}

}  // namespace
}  // namespace dedup::ctl
