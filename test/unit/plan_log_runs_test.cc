#include "plan/log_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace dedup::plan {
namespace {

struct LogRun {
  std::uint64_t file_offset = 0;
  std::uint64_t length = 0;
  std::uint64_t log_offset = 0;
};

TEST(NewestRuns, EmptyAndZeroLength) {
  EXPECT_TRUE(newest_runs(std::vector<LogRun>{}).empty());
  EXPECT_TRUE(newest_runs(std::vector<LogRun>{{5, 0, 0}}).empty());
}

TEST(NewestRuns, JoinsWhatContinuesInFileAndLog) {
  const auto out = newest_runs(std::vector<LogRun>{{10, 5, 0}, {15, 5, 5}, {20, 5, 100}});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].length, 10u);
  EXPECT_EQ(out[1].log_offset, 100u);
}

// Byte by byte: which log offset is the newest for each file byte.
TEST(NewestRuns, AgreesWithABytewiseModel) {
  constexpr std::size_t kFile = 200;
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::vector<LogRun> runs;
    std::array<std::int64_t, kFile> model;
    model.fill(-1);
    std::uint64_t log = 0;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t offset = random() % kFile;
      const std::uint64_t length = random() % std::min<std::uint64_t>(30, kFile - offset + 1);
      runs.push_back({offset, length, log});
      for (std::uint64_t b = 0; b < length; ++b) {
        model[offset + b] = static_cast<std::int64_t>(log + b);
      }
      log += length;
      const auto newest = newest_runs(runs);
      std::array<std::int64_t, kFile> got;
      got.fill(-1);
      std::uint64_t end = 0;
      for (const LogRun& run : newest) {
        ASSERT_GE(run.file_offset, end);
        ASSERT_GT(run.length, 0u);
        end = run.file_offset + run.length;
        for (std::uint64_t b = 0; b < run.length; ++b) {
          got[run.file_offset + b] = static_cast<std::int64_t>(run.log_offset + b);
        }
      }
      ASSERT_EQ(got, model) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace dedup::plan
