#include "tools/dedupctl/repetition.h"

#include <gtest/gtest.h>

#include "base/hasher.h"

namespace dedup::ctl {
namespace {

constexpr std::uint32_t kChunk = 4096;

Piece piece_of(std::uint64_t number, std::uint32_t length = kChunk) {
  Piece piece;
  piece.length = length;
  piece.chunk_length = kChunk;
  const Sha256 hash = sha256(std::as_bytes(std::span(&number, 1)));
  std::copy(hash.begin(), hash.end(), piece.fingerprint.bytes.begin());
  return piece;
}

double share_of(const Repetition& repetition, std::uint64_t most) {
  for (const Repetition::Row& row : repetition.rows()) {
    if (row.most == most) return row.share;
  }
  return 0;
}

TEST(Repetition, SharesOfTheData) {
  Repetition repetition;
  EXPECT_TRUE(repetition.rows().empty());
  for (std::uint64_t n = 0; n < 12; ++n) repetition.add(piece_of(n));
  for (int i = 0; i < 3; ++i) repetition.add(piece_of(0));
  repetition.add(piece_of(1));
  const auto rows = repetition.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ((std::pair{rows[0].least, rows[0].most}), std::pair(1ul, 1ul));
  EXPECT_EQ((std::pair{rows[1].least, rows[1].most}), std::pair(2ul, 2ul));
  EXPECT_EQ((std::pair{rows[2].least, rows[2].most}), std::pair(3ul, 4ul));
  EXPECT_DOUBLE_EQ(rows[0].share, 10.0 / 16);
  EXPECT_DOUBLE_EQ(rows[1].share, 2.0 / 16);
  EXPECT_DOUBLE_EQ(rows[2].share, 4.0 / 16);
}

TEST(Repetition, PartsOfAChunkCountAsTheirBytes) {
  Repetition repetition;
  repetition.add(piece_of(1, kChunk - 1000));
  repetition.add(piece_of(1, 1000));
  repetition.add(piece_of(2, 10));
  EXPECT_DOUBLE_EQ(share_of(repetition, 1), 1);
}

TEST(Repetition, OfManySomeAreDrawn) {
  Repetition repetition(2000);
  for (std::uint64_t n = 0; n < 40'000; ++n) {
    for (int i = 0; i < (n % 2 == 0 ? 1 : 3); ++i) repetition.add(piece_of(n));
  }
  EXPECT_NEAR(share_of(repetition, 1), 0.25, 0.05);
  EXPECT_NEAR(share_of(repetition, 4), 0.75, 0.05);
}

}  // namespace
}  // namespace dedup::ctl
