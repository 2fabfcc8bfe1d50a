#include "plan/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace dedup::plan {
namespace {

TEST(Grid, LetsFewAskEachOtherDirectly) {
  for (std::uint32_t nodes = 1; nodes <= Grid::kDirect; ++nodes) {
    const Grid grid(nodes);
    EXPECT_EQ(grid.rows(), 1u);
    EXPECT_EQ(grid.columns(), nodes);
    EXPECT_EQ(grid.row(0).size(), nodes);
  }
  EXPECT_GT(Grid(Grid::kDirect + 1).rows(), 1u);
}

TEST(Grid, HasEachNodeInOneRow) {
  for (std::uint32_t nodes = 1; nodes < 700; nodes += nodes < 80 ? 1 : 7) {
    const Grid grid(nodes, 1);
    std::set<std::uint32_t> seen;
    for (std::uint32_t r = 0; r < grid.rows(); ++r) {
      const auto row = grid.row(r);
      // One guest at most, behind the others.
      ASSERT_LE(row.size(), grid.columns() + 1);
      for (std::uint32_t i = 0; i < row.size(); ++i) {
        EXPECT_EQ(grid.row_of(row[i]), r);
        EXPECT_EQ(grid.is_home(row[i]), i < grid.columns());
        if (i < grid.columns()) {
          EXPECT_EQ(grid.column_of(row[i]), i);
          EXPECT_EQ(grid.column(i)[r], row[i]);
        }
        EXPECT_TRUE(seen.insert(row[i]).second);
      }
    }
    EXPECT_EQ(seen.size(), nodes);
    EXPECT_EQ(*seen.rbegin(), nodes - 1);
    for (std::uint32_t c = 0; c < grid.columns(); ++c) {
      EXPECT_EQ(grid.column(c).size(), grid.rows());
    }
  }
}

TEST(Grid, TakesTwoStepsOfAboutTheSquareRoot) {
  for (const std::uint32_t nodes : {65u, 100u, 1000u, 4096u, 32768u, 65534u}) {
    const Grid grid(nodes);
    EXPECT_LE(grid.rows() + grid.columns(), 2 * std::sqrt(nodes) + 2);
    EXPECT_GE(grid.homes() + grid.rows(), nodes + 1);
  }
}

TEST(Grid, DividesNamesEquallyAndInOrder) {
  for (const std::uint32_t nodes : {1u, 2u, 7u, 64u, 65u, 1000u, 65534u}) {
    const Grid grid(nodes);
    std::uint64_t before = 0;
    EXPECT_EQ(grid.begin(0, 0), 0u);
    for (std::uint32_t c = 0; c < grid.columns(); ++c) {
      for (std::uint32_t r = 0; r < grid.rows(); ++r) {
        EXPECT_EQ(grid.begin(c, r), before);
        const std::uint64_t end = grid.begin(c, r + 1);
        ASSERT_GE(end, before);
        const double share = static_cast<double>(end - before) * 0x1p-64 * grid.homes();
        EXPECT_NEAR(share, 1, 1e-6);
        before = end;
      }
      EXPECT_EQ(grid.begin(c + 1), before);
    }
    EXPECT_EQ(before, std::numeric_limits<std::uint64_t>::max());
  }
}

}  // namespace
}  // namespace dedup::plan
