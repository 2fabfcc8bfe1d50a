// The protocol, simulated: a fixed number of sequences; and each way of breaking it is found.
#include <gtest/gtest.h>

#include "test/simulation/run.h"

namespace dedup::simulation {
namespace {

constexpr std::uint64_t kFirstSeed = 1;
constexpr std::uint64_t kSequences = 15000;

TEST(Simulation, ReadsWhatWasAcknowledgedOrLater) {
  Counts counts;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kSequences; ++seed) {
    const auto violation = run_sequence(draw_sequence(seed), Breakage::kNone, counts);
    ASSERT_FALSE(violation) << "simulate " << seed << ": step " << violation->step + 1 << ": "
                            << violation->what;
  }
  // It would say nothing if nothing happened.
  EXPECT_GT(counts.required, counts.sequences);
  EXPECT_GT(counts.committed, counts.sequences);
  EXPECT_GT(counts.died, counts.sequences / 4);
  EXPECT_GT(counts.before, counts.sequences / 10);
  EXPECT_GT(counts.later, 0u);
  EXPECT_GT(counts.upkeep, counts.sequences / 2);
}

// Errors of the disk that pass were taken for chunks that are gone: in about half of the runs,
// since some of what it does depends on the clock.
TEST(Simulation, DoesNotGoWrongWhereItOnceDid) {
  Counts counts;
  for (int i = 0; i < 20; ++i) {
    const auto violation = run_sequence(draw_jobs(74507), Breakage::kNone, counts);
    ASSERT_FALSE(violation) << violation->what;
  }
}

TEST(Simulation, IsTheSameForTheSameSeed) {
  Counts first;
  Counts second;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 50; ++seed) {
    (void)run_sequence(draw_sequence(seed), Breakage::kNone, first);
  }
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 50; ++seed) {
    (void)run_sequence(draw_sequence(seed), Breakage::kNone, second);
  }
  EXPECT_EQ(first, second);
}

class Broken : public testing::TestWithParam<Breakage> {};

TEST_P(Broken, IsFound) {
  constexpr std::uint64_t kMost = 20000;
  Counts counts;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kMost; ++seed) {
    const std::vector<Step> steps = draw_sequence(seed);
    if (!run_sequence(steps, GetParam(), counts)) continue;
    const std::vector<Step> small = shrink(steps, GetParam());
    EXPECT_LE(small.size(), steps.size());
    EXPECT_TRUE(run_sequence(small, GetParam(), counts));
    EXPECT_FALSE(run_sequence(small, Breakage::kNone, counts));
    return;
  }
  FAIL() << "not found in " << kMost << " sequences";
}

INSTANTIATE_TEST_SUITE_P(Simulation, Broken,
                         testing::Values(Breakage::kFenceBeforeRecords, Breakage::kNoParentCheck,
                                         Breakage::kNoDirectoryFlush, Breakage::kNoFileFlush,
                                         Breakage::kNoLocks, Breakage::kNumberTwice,
                                         Breakage::kNoSecondLook, Breakage::kLostLinks,
                                         Breakage::kLostSegments, Breakage::kMovedSegments,
                                         Breakage::kLostKept));

}  // namespace
}  // namespace dedup::simulation
