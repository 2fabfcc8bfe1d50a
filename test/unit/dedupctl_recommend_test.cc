#include "tools/dedupctl/recommend.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/types.h"
#include "test/unit/noise.h"

namespace dedup::ctl {
namespace {

using test::append;
using test::noise;

constexpr std::size_t kPart = 16 * 65536;

Recommendation of(const Bytes& content, unsigned nodes = 4) {
  Scan scan({kScannedSizes.begin(), kScannedSizes.end()}, nodes);
  scan.begin(content.size());
  scan.add(0, content);
  CostTable costs(nodes);
  costs.add(scan);
  return recommend(costs);
}

std::map<std::string, std::string> settings(const Bytes& content, unsigned nodes = 4) {
  const Recommendation out = of(content, nodes);
  EXPECT_FALSE(out.reasons.empty());
  return {out.settings.begin(), out.settings.end()};
}

std::vector<std::string> names(unsigned nodes) {
  std::vector<std::string> out;
  for (const NamedWay& way : ways_for(nodes)) out.push_back(way.name);
  return out;
}

using Settings = std::map<std::string, std::string>;

TEST(WaysFor, AsManyNodesAsThereAre) {
  EXPECT_EQ(names(1), std::vector<std::string>{});
  EXPECT_EQ(names(2), std::vector<std::string>{"copies on 2"});
  EXPECT_EQ(names(4), (std::vector<std::string>{"copies on 2", "xor:3", "copies on 3", "rs:2+2"}));
  EXPECT_EQ(names(64), (std::vector<std::string>{"copies on 2", "xor:7", "copies on 3", "rs:8+2"}));
}

TEST(Recommend, NothingForZeros) {
  EXPECT_EQ(settings(Bytes(kPart)), Settings{});
}

// The same on all nodes: as it is by default.
TEST(Recommend, NothingForWhatSuitsTheDefaults) {
  Bytes content;
  for (int node = 0; node < 4; ++node) {
    for (std::uint64_t i = 0; i < kPart / 4096; ++i) append(content, noise(i, 4096));
  }
  EXPECT_EQ(settings(content), Settings{});
}

TEST(Recommend, StripesForWhatNothingRepeats) {
  const auto set = settings(noise(1, 4 * kPart));
  ASSERT_TRUE(set.contains("DEDUP_REDUNDANCY"));
  EXPECT_EQ(set.at("DEDUP_REDUNDANCY"), "xor:3");
  EXPECT_FALSE(set.contains("DEDUP_MODE"));
  EXPECT_FALSE(settings(noise(1, 4 * kPart), 2).contains("DEDUP_REDUNDANCY"));
}

TEST(Recommend, SmallerChunksWhereTheyFindMuchMore) {
  Bytes content;
  for (std::uint64_t i = 0; i < 1024; ++i) {
    append(content, noise(0, 2048));
    append(content, noise(i + 1, 2048));
  }
  EXPECT_EQ(settings(content)["DEDUP_CHUNK_SIZE"], "2048");
}

TEST(Recommend, TheModeThatLooksNoFurtherThanItMust) {
  Bytes content;
  for (std::uint64_t node = 0; node < 4; ++node) {
    append(content, noise(node, kPart / 2));
    append(content, noise(node, kPart / 2));
  }
  EXPECT_EQ(settings(content)["DEDUP_MODE"], "local");
}

// Of steps that share nearly all, what the first one alone would be better with counts once.
TEST(Recommend, StepsAreLookedAtTogether) {
  Bytes step;
  for (int i = 0; i < 4; ++i) append(step, noise(1, kPart));
  Scan scan({kScannedSizes.begin(), kScannedSizes.end()}, 4);
  CostTable costs(4);
  for (std::uint64_t i = 0; i < 2; ++i) {
    scan.begin(step.size());
    scan.add(0, step);
    costs.add(scan);
    EXPECT_TRUE(recommend(costs).settings.empty()) << i;
    step[0] = std::byte(i + 1);
  }
  EXPECT_GT(costs.figures(kUsualSize).found_before(), 0.4);
}

}  // namespace
}  // namespace dedup::ctl
