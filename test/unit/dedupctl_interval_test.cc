#include "tools/dedupctl/interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dedup::ctl {
namespace {

TEST(Interval, Young) {
  EXPECT_DOUBLE_EQ(young_interval({12, 86400, 0}), std::sqrt(2 * 12 * 86400.0));
  EXPECT_DOUBLE_EQ(young_interval({2, 4, 0}), 4);
}

// C / 2 M = 1/16 gives roots that can be written down.
TEST(Interval, Daly) {
  const CheckpointCost cost{1, 8, 0};
  EXPECT_DOUBLE_EQ(daly_interval(cost), 4 * (1 + 0.25 / 3 + 1.0 / 16 / 9) - 1);
}

TEST(Interval, DalyOfCheckpointsThatTakeLongerThanIsLeft) {
  EXPECT_DOUBLE_EQ(daly_interval({200, 100, 0}), 100);
  EXPECT_DOUBLE_EQ(daly_interval({500, 100, 0}), 100);
}

// What is lost is least there, and more at half and twice the interval.
TEST(Interval, DalysLosesLeast) {
  for (const CheckpointCost& cost : {CheckpointCost{12, 86400, 0}, CheckpointCost{60, 3600, 120},
                                     CheckpointCost{600, 3600, 0}}) {
    const double best = daly_interval(cost);
    EXPECT_LT(time_lost(cost, best), time_lost(cost, best / 2)) << cost.write;
    EXPECT_LT(time_lost(cost, best), time_lost(cost, best * 2)) << cost.write;
    EXPECT_LE(time_lost(cost, best), time_lost(cost, young_interval(cost)) + 1e-4) << cost.write;
    EXPECT_GT(time_lost(cost, best), 0) << cost.write;
  }
}

TEST(Interval, ARestartCostsToo) {
  EXPECT_GT(time_lost({60, 3600, 600}, 600), time_lost({60, 3600, 0}, 600));
}

}  // namespace
}  // namespace dedup::ctl
