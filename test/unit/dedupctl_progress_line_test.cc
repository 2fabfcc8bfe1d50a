#include "tools/dedupctl/progress_line.h"

#include <gtest/gtest.h>

namespace dedup::ctl {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(ProgressLine, HasTheRateAndWhatIsLeft) {
  EXPECT_EQ(progress_line("/f", kGiB, 4 * kGiB, 16),
            "/f [#######.......................] 1.0 GiB of 4.0 GiB, 64.0 MiB/s, 48.0 s left");
  EXPECT_EQ(progress_line("/f", 4 * kGiB, 4 * kGiB, 16),
            "/f [##############################] 4.0 GiB of 4.0 GiB, 256.0 MiB/s, 0.00 s left");
}

TEST(ProgressLine, HasNoRateBeforeItMeansSomething) {
  EXPECT_EQ(progress_line("/f", kGiB, 4 * kGiB, 0.1),
            "/f [#######.......................] 1.0 GiB of 4.0 GiB");
  EXPECT_EQ(progress_line("/f", 0, 4 * kGiB, 100),
            "/f [..............................] 0 B of 4.0 GiB");
}

TEST(ProgressLine, NamesDoNothingToTheTerminal) {
  EXPECT_TRUE(progress_line("/\x1b[2J", 1, 2, 0).starts_with("/\\x1b[2J ["));
}

}  // namespace
}  // namespace dedup::ctl
