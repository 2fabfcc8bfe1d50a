// Log pieces against an array that says of each byte where it is.
#include "plan/overlay.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <tuple>
#include <vector>

namespace dedup::plan {
namespace {

constexpr std::uint32_t kSpan = 200;

using Place = std::tuple<NodeIndex, std::uint64_t, std::uint64_t>;  // node, log, position
using Model = std::vector<std::optional<Place>>;

Place next(const Place& place) {
  const auto& [node, log, position] = place;
  return {node, log, position + 1};
}

// The only pieces that an overlay may consist of: longest runs that continue in file and log.
std::vector<LogPiece> runs(const Model& model, std::uint32_t begin, std::uint32_t end) {
  std::vector<LogPiece> pieces;
  for (std::uint32_t i = begin; i < end; ++i) {
    if (!model[i]) continue;
    if (i > begin && model[i - 1] && next(*model[i - 1]) == *model[i]) {
      ++pieces.back().length;
    } else {
      const auto& [node, log, position] = *model[i];
      pieces.push_back({i, 1, node, log, position});
    }
  }
  return pieces;
}

void expect_equal(const std::vector<LogPiece>& actual, const std::vector<LogPiece>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i].begin, expected[i].begin);
    EXPECT_EQ(actual[i].length, expected[i].length);
    EXPECT_EQ(actual[i].node, expected[i].node);
    EXPECT_EQ(actual[i].log, expected[i].log);
    EXPECT_EQ(actual[i].log_offset, expected[i].log_offset);
  }
}

TEST(LogOverlay, SmallSequentialWritesStayOnePiece) {
  LogOverlay overlay;
  for (std::uint32_t i = 0; i < 1000; ++i) overlay.insert({i * 8, 8, 1, 2, 64 + i * 8});
  ASSERT_EQ(overlay.size(), 1u);
  EXPECT_EQ(overlay.slice(0, 9000)[0].end(), 8000u);
  // Overwritten in the middle by what is elsewhere in the log, then by what was there.
  overlay.insert({800, 8, 1, 2, 9000});
  EXPECT_EQ(overlay.size(), 3u);
  overlay.insert({800, 8, 1, 2, 864});
  EXPECT_EQ(overlay.size(), 1u);
}

TEST(LogOverlay, ConvertsOnlyWhatIsStillTheNewest) {
  LogOverlay overlay;
  overlay.insert({0, 100, 3, 7, 1000});
  overlay.insert({40, 20, 3, 7, 1100});  // the same log, later
  overlay.insert({80, 5, 4, 7, 1080});   // another node's log of that number
  const std::vector<Extent> expected{{10, 40}, {60, 80}, {85, 90}};
  EXPECT_EQ(overlay.convert({10, 80, 3, 7, 1010}), expected);
  EXPECT_TRUE(overlay.convert({10, 80, 3, 7, 1010}).empty());
  EXPECT_EQ(overlay.slice(0, 100).size(), 4u);
}

// Takes minutes where every piece moves those behind it.
TEST(LogOverlay, TakesManyPiecesInAnyOrder) {
  constexpr std::uint32_t kPieces = 1u << 20;
  LogOverlay overlay;
  for (std::uint32_t i = kPieces; i-- > 0;) overlay.insert({i * 4, 2, 1, 2, i * 2});
  EXPECT_EQ(overlay.size(), kPieces);
  for (std::uint32_t i = 0; i < kPieces; ++i) {
    ASSERT_EQ(overlay.convert({i * 4, 2, 1, 2, i * 2}).size(), 1u);
  }
  EXPECT_TRUE(overlay.empty());
}

TEST(LogOverlay, LikeAnArrayOfBytes) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    LogOverlay overlay;
    Model model(kSpan);
    for (int step = 0; step < 2000; ++step) {
      const std::uint32_t begin = up_to(kSpan);
      const std::uint32_t end = begin + 1 + up_to(std::min(kSpan - begin, 40u));
      // Few logs and positions, so that pieces meet that continue each other.
      const LogPiece piece{begin, end - begin, static_cast<NodeIndex>(up_to(2)), up_to(2),
                           begin + 100 * up_to(2)};
      switch (up_to(8)) {
        case 0:
          overlay.erase(begin, end);
          std::fill(model.begin() + begin, model.begin() + end, std::nullopt);
          break;
        case 1: {
          std::vector<Extent> expected;
          for (std::uint32_t i = begin; i < end; ++i) {
            const Place place{piece.node, piece.log, piece.log_offset + i - begin};
            if (model[i] != place) continue;
            if (expected.empty() || expected.back().end != i) expected.push_back({i, i});
            ++expected.back().end;
            model[i].reset();
          }
          EXPECT_EQ(overlay.convert(piece), expected);
          break;
        }
        case 2:
          if (up_to(4) != 0) break;
          overlay.truncate(end);
          std::fill(model.begin() + end, model.end(), std::nullopt);
          break;
        default:
          overlay.insert(piece);
          for (std::uint32_t i = begin; i < end; ++i) {
            model[i] = Place{piece.node, piece.log, piece.log_offset + i - begin};
          }
      }
      expect_equal(overlay.slice(0, kSpan), runs(model, 0, kSpan));
      EXPECT_EQ(overlay.size(), runs(model, 0, kSpan).size());
      expect_equal(overlay.slice(begin, end), runs(model, begin, end));
      EXPECT_EQ(overlay.empty(), runs(model, 0, kSpan).empty());
      if (HasFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace dedup::plan
