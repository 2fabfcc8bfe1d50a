// Letters handed on in a grid, among any number of ranks.
#include "engine/protocol/rank_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "test/simulation/rank_fibers.h"

namespace dedup::simulation {
namespace {

using engine::Post;
using engine::RankGrid;

std::string text_of(int from, int to) {
  return std::to_string(from) + " to " + std::to_string(to);
}

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Every rank of `members` writes to those that `writes_to` says; each gets just these letters.
template <typename WritesTo>
void deliver(RankFibers& fibers, const std::vector<int>& members, const WritesTo& writes_to) {
  fibers.run([&](int rank) {
    const RankGrid grid(fibers.rank(rank), members);
    const bool is_one = std::find(members.begin(), members.end(), rank) != members.end();
    ASSERT_EQ(grid.is_member(), is_one);
    if (!is_one) return;
    std::vector<Post> posts;
    std::map<int, std::string> expected;
    for (const int other : members) {
      if (writes_to(rank, other)) {
        posts.push_back({static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(other),
                         bytes_of(text_of(rank, other))});
      }
      if (writes_to(other, rank)) expected[other] = text_of(other, rank);
    }
    const auto came = grid.deliver(std::move(posts));
    ASSERT_TRUE(came.is_ok()) << came.status().message();
    std::map<int, std::string> got;
    for (const Post& post : *came) {
      EXPECT_EQ(static_cast<int>(post.to), rank);
      got[static_cast<int>(post.from)] =
          std::string(reinterpret_cast<const char*>(post.what.data()), post.what.size());
    }
    EXPECT_EQ(came->size(), expected.size());
    EXPECT_EQ(got, expected);
  });
}

TEST(RankGrid, BringsEachLetterToWhoItIsFor) {
  for (int ranks = 1; ranks <= 40; ++ranks) {
    SCOPED_TRACE(ranks);
    RankFibers fibers(ranks);
    std::vector<int> all(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) all[static_cast<std::size_t>(r)] = r;
    deliver(fibers, all, [](int, int) { return true; });
    deliver(fibers, all, [](int from, int to) { return (from * 7 + to * 3) % 5 == 0; });
    deliver(fibers, all, [](int, int) { return false; });
  }
}

TEST(RankGrid, IsOfSomeOfTheRanks) {
  RankFibers fibers(30);
  std::vector<int> some;
  for (int r = 1; r < 30; r += 4) some.push_back(r);
  deliver(fibers, some, [](int, int) { return true; });
}

TEST(RankGrid, TakesFewMessagesOfEach) {
  constexpr int kRanks = 150;
  RankFibers fibers(kRanks);
  std::vector<int> all(kRanks);
  for (int r = 0; r < kRanks; ++r) all[static_cast<std::size_t>(r)] = r;
  deliver(fibers, all, [](int, int) { return true; });
  for (int r = 0; r < kRanks; ++r) {
    // Rows of 13, and as many columns: an envelope and a letter to each, and from each; who plays
    // in two rows has one row more.
    EXPECT_LE(fibers.traffic(r).messages(), 4U * 3 * 13) << r;
  }
}

TEST(RankGrid, AWrongReceiverIsAnErrorOfItsSenderAlone) {
  RankFibers fibers(5);
  fibers.run([&](int rank) {
    const RankGrid grid(fibers.rank(rank), {0, 1, 2, 4});
    if (rank == 3) return;
    const auto came = grid.deliver({{static_cast<std::uint32_t>(rank), rank == 2 ? 3U : 0U, {}}});
    EXPECT_EQ(came.is_ok(), rank != 2);
    if (rank == 0) {
      EXPECT_EQ(came->size(), 3U);
    }
  });
}

}  // namespace
}  // namespace dedup::simulation
