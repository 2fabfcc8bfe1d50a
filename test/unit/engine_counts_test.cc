#include "engine/mpi/counts.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace dedup::engine {
namespace {

using Pieces = std::vector<std::pair<std::uint64_t, int>>;
constexpr int kMost = int{1} << 30;

Pieces pieces_of(std::uint64_t items) {
  Pieces pieces;
  in_pieces(items, [&](std::uint64_t at, int count) { pieces.emplace_back(at, count); });
  return pieces;
}

Pieces pieces_with_end_of(std::uint64_t items) {
  Pieces pieces;
  in_pieces_with_end(items, [&](std::uint64_t at, int count) { pieces.emplace_back(at, count); });
  return pieces;
}

TEST(Counts, WhatAnIntCannotCountGoesInPieces) {
  EXPECT_EQ(pieces_of(0), Pieces{});
  EXPECT_EQ(pieces_of(5), (Pieces{{0, 5}}));
  EXPECT_EQ(pieces_of(kLargestCount), (Pieces{{0, kMost}}));
  EXPECT_EQ(pieces_of(kLargestCount + 1), (Pieces{{0, kMost}, {kLargestCount, 1}}));
  // Beyond what int, and what 32 bits hold.
  const std::uint64_t many = (std::uint64_t{1} << 33) + 7;
  std::uint64_t next = 0;
  for (const auto& [at, count] : pieces_of(many)) {
    EXPECT_EQ(at, next);
    EXPECT_GT(count, 0);
    next += static_cast<std::uint64_t>(count);
  }
  EXPECT_EQ(next, many);
}

TEST(Counts, WhoDoesNotKnowHowManyComeSeesTheLastPiece) {
  EXPECT_EQ(pieces_with_end_of(0), (Pieces{{0, 0}}));
  EXPECT_EQ(pieces_with_end_of(5), (Pieces{{0, 5}}));
  EXPECT_EQ(pieces_with_end_of(kLargestCount), (Pieces{{0, kMost}, {kLargestCount, 0}}));
  EXPECT_EQ(pieces_with_end_of(kLargestCount + 1), (Pieces{{0, kMost}, {kLargestCount, 1}}));
}

}  // namespace
}  // namespace dedup::engine
