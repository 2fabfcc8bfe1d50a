#include "plan/block_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

namespace dedup::plan {
namespace {

Fingerprint name(std::uint8_t n) {
  Fingerprint fingerprint;
  fingerprint.bytes[31] = n;
  return fingerprint;
}

// Pieces of 16 bytes one behind the other, each a chunk and the number of its placement; 0: zeros.
Block block_of(const std::vector<std::pair<int, std::uint32_t>>& chunks,
               std::vector<Placement> placements) {
  Block block{{}, std::move(placements)};
  std::uint32_t at = 0;
  for (const auto& [chunk, placement] : chunks) {
    Piece piece{at, 16, 0, chunk == 0 ? 0u : 16u, placement, {}};
    if (chunk != 0) piece.fingerprint = name(static_cast<std::uint8_t>(chunk));
    block.pieces.push_back(piece);
    at += 16;
  }
  return block;
}

const Placement kHere = Placement::copies_on({0, 1});
const Placement kThere = Placement::copies_on({1, 2});

using Pieces = std::vector<std::uint32_t>;

TEST(BlockChanges, AreNoneOfTheSame) {
  const Block block = block_of({{1, 0}, {2, 1}, {0, 0}, {1, 0}}, {kHere, kThere});
  const BlockChanges changes = changes_between(block, block);
  EXPECT_EQ(changes.fresh, Pieces());
  EXPECT_EQ(changes.gone, Pieces());
  // The placements' numbers are each block's own.
  const Block other = block_of({{1, 1}, {2, 0}, {0, 0}, {1, 1}}, {kThere, kHere});
  EXPECT_EQ(changes_between(block, other).fresh, Pieces());
  EXPECT_EQ(changes_between(block, other).gone, Pieces());
}

TEST(BlockChanges, AreWhatOneAloneHas) {
  const Block before = block_of({{1, 0}, {2, 0}, {3, 0}}, {kHere});
  const Block block = block_of({{1, 0}, {0, 0}, {4, 0}, {5, 0}}, {kHere});
  const BlockChanges changes = changes_between(before, block);
  EXPECT_EQ(changes.fresh, (Pieces{2, 3}));
  EXPECT_EQ(changes.gone, (Pieces{1, 2}));
  EXPECT_EQ(changes_between({}, block).fresh, (Pieces{0, 2, 3}));
  EXPECT_EQ(changes_between(before, {}).gone, (Pieces{0, 1, 2}));
}

TEST(BlockChanges, AreNoneOfWhatOnlyMoved) {
  const Block before = block_of({{1, 0}, {2, 0}, {3, 0}, {3, 0}}, {kHere});
  const Block block = block_of({{3, 0}, {1, 0}, {2, 0}}, {kHere});
  EXPECT_EQ(changes_between(before, block).fresh, Pieces());
  EXPECT_EQ(changes_between(before, block).gone, Pieces());
}

TEST(BlockChanges, AreWhatIsKeptOtherwise) {
  const Block before = block_of({{1, 0}, {2, 0}}, {kHere});
  const Block block = block_of({{1, 0}, {2, 1}}, {kHere, kThere});
  EXPECT_EQ(changes_between(before, block).fresh, Pieces{1});
  EXPECT_EQ(changes_between(before, block).gone, Pieces{1});
}

// Against sets: nothing that is fresh is left out, and what is said to be gone once too often is
// repeated.
TEST(BlockChanges, OfRandomBlocksAreTheDifferencesOfSets) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    const auto draw = [&] {
      std::vector<std::pair<int, std::uint32_t>> chunks(random() % 8);
      for (auto& [chunk, placement] : chunks) {
        chunk = static_cast<int>(random() % 6);
        placement = random() % 2;
      }
      const bool turned = random() % 2 == 0;
      return block_of(chunks, turned ? std::vector{kThere, kHere} : std::vector{kHere, kThere});
    };
    const Block before = draw();
    const Block block = draw();
    using Set = std::set<std::pair<Fingerprint, Placement>>;
    const auto set_of = [](const Block& of) {
      Set all;
      for (const Piece& piece : of.pieces) {
        if (!piece.is_zero()) all.emplace(piece.fingerprint, of.placements[piece.placement]);
      }
      return all;
    };
    const auto named = [](const Block& of, const Pieces& pieces) {
      Set all;
      for (const std::uint32_t i : pieces) {
        all.emplace(of.pieces[i].fingerprint, of.placements[of.pieces[i].placement]);
      }
      EXPECT_EQ(all.size(), pieces.size()) << "each once";
      return all;
    };
    const Set had = set_of(before);
    const Set has = set_of(block);
    const BlockChanges changes = changes_between(before, block);
    const Set fresh = named(block, changes.fresh);
    const Set gone = named(before, changes.gone);
    for (const auto& one : has) EXPECT_TRUE(had.contains(one) || fresh.contains(one));
    for (const auto& one : had) EXPECT_TRUE(has.contains(one) || gone.contains(one));
    for (const auto& one : fresh) EXPECT_TRUE(has.contains(one) && !gone.contains(one));
    for (const auto& one : gone) EXPECT_TRUE(had.contains(one));
  }
}

}  // namespace
}  // namespace dedup::plan
