#include "plan/advice.h"

#include <gtest/gtest.h>

namespace dedup::plan {
namespace {

constexpr std::uint64_t kData = 1'000'000;

// With this many of a thousand bytes of the sample found in each way, as of the whole file.
Findings found(std::uint64_t as_cut, std::uint64_t in_halves, std::uint64_t anywhere,
               std::uint64_t dense = 0) {
  Findings findings;
  findings.chunk_size = 4096;
  findings.data_bytes = kData;
  findings.unique_bytes = kData / 1000 * (1000 - as_cut);
  findings.sample = {1, 1000, as_cut, in_halves, anywhere, dense};
  return findings;
}

bool has(const Findings& findings, const std::string& text) {
  for (const std::string& sentence : advice(findings)) {
    if (sentence.find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(Advice, OfZerosThereIsNothingToDo) {
  Findings findings = found(0, 0, 0);
  findings.data_bytes = findings.unique_bytes = 0;
  EXPECT_TRUE(has(findings, "zeros only"));
}

TEST(Advice, WhatDeduplicatesWell) {
  EXPECT_EQ(advice(found(500, 520, 510)).size(), 1u);
  EXPECT_TRUE(has(found(500, 520, 510), "50 % of its data is duplicates. Nothing to do"));
}

TEST(Advice, WhatIsDifferentEverywhere) {
  EXPECT_EQ(advice(found(0, 0, 10)).size(), 1u);
  EXPECT_TRUE(has(found(0, 0, 10), "different everywhere"));
  EXPECT_TRUE(has(found(0, 0, 10), "stripes"));
  Findings striped = found(0, 0, 10);
  striped.in_stripes = true;
  EXPECT_FALSE(has(striped, "stripes"));
}

TEST(Advice, SmallerChunks) {
  EXPECT_TRUE(has(found(100, 300, 120), "dedup_chunk_size=2048 would find 30 %"));
  EXPECT_FALSE(has(found(100, 120, 120), "dedup_chunk_size=2048"));
  Findings least = found(100, 0, 120);
  least.chunk_size = kMinChunkSize;
  EXPECT_FALSE(has(least, "too large"));
}

TEST(Advice, WhatIsShifted) {
  EXPECT_TRUE(has(found(100, 110, 400), "different places"));
  // Halves find it as well.
  EXPECT_FALSE(has(found(100, 390, 400), "different places"));
}

TEST(Advice, WhatLooksCompressed) {
  EXPECT_TRUE(has(found(100, 100, 100, 900), "compressed or encrypted"));
  EXPECT_FALSE(has(found(100, 100, 100, 400), "compressed or encrypted"));
  EXPECT_FALSE(has(found(700, 700, 700, 900), "compressed or encrypted"));
}

TEST(Advice, ShortPieces) {
  Findings findings = found(0, 0, 0);
  findings.piece_bytes = 4096;
  EXPECT_FALSE(has(findings, "pieces of"));
  findings.piece_bytes = 1000;
  EXPECT_TRUE(has(findings, "pieces of 1000 bytes"));
}

TEST(Advice, WhatWasNotCompared) {
  Findings findings = found(600, 600, 600);
  findings.is_compared = false;
  findings.unique_bytes = kData;
  EXPECT_TRUE(has(findings, "dedup_mode=none"));
}

}  // namespace
}  // namespace dedup::plan
