#include "base/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace dedup {
namespace {

constexpr int kRanks = 3;

// What the ranks' threads show each other.
struct Board {
  std::barrier<> all{kRanks};
  std::vector<std::vector<std::uint64_t>> values{kRanks};
  std::vector<Bytes> bytes{kRanks};
  Status combined;  // what combine() says
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(Board& board, int rank) : board_(board), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return kRanks; }
  Status combine(Combining how, std::span<std::uint64_t> values, Waiting) const override {
    board_.values[at(rank_)].assign(values.begin(), values.end());
    board_.all.arrive_and_wait();
    for (int r = 0; r < kRanks; ++r) {
      if (r == rank_) continue;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t other = board_.values[at(r)][i];
        values[i] = how == Combining::kSum     ? values[i] + other
                    : how == Combining::kLeast ? std::min(values[i], other)
                                               : std::max(values[i], other);
      }
    }
    board_.all.arrive_and_wait();
    return board_.combined;
  }
  void broadcast(Bytes& bytes, int root) const override {
    if (rank_ == root) board_.bytes[0] = bytes;
    board_.all.arrive_and_wait();
    bytes = board_.bytes[0];
    board_.all.arrive_and_wait();
  }
  void broadcast(Id128&) const override { ADD_FAILURE() << "nothing here needs it"; }
  std::vector<Bytes> gather(const Bytes& mine) const override {
    board_.bytes[at(rank_)] = mine;
    board_.all.arrive_and_wait();
    std::vector<Bytes> all;
    if (is_root()) all = board_.bytes;
    board_.all.arrive_and_wait();
    return all;
  }
  std::vector<Bytes> exchange(const std::vector<Bytes>& to) const override { return to; }
  void exchange_letters(std::span<const int>, std::span<const Letter>, std::vector<Letter>&,
                        const std::function<void()>&) const override {
    ADD_FAILURE() << "nothing here needs it";
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  Board& board_;
  int rank_;
};

// Each rank in a thread of its own.
void on_all(Board& board, const std::function<void(const Ranks&)>& what) {
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&board, &what, r] { what(ThreadRanks(board, r)); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Ranks, AgreeOnWhatAllHaveDone) {
  Board board;
  on_all(board, [](const Ranks& ranks) {
    auto value = static_cast<std::uint64_t>(10 * ranks.rank());
    EXPECT_TRUE(ranks.agree(Status::ok()).is_ok());
    EXPECT_TRUE(ranks.agree_max(Status::ok(), value).is_ok());
    EXPECT_EQ(value, 20U);
  });
}

TEST(Ranks, AgreeOnTheErrorOfTheLowestThatHasOne) {
  Board board;
  on_all(board, [](const Ranks& ranks) {
    const Status mine = ranks.is_root() ? Status::ok()
                                        : Status(ranks.rank() == 1 ? Code::kNoSpace : Code::kIo,
                                                 "rank " + std::to_string(ranks.rank()));
    std::uint64_t value = 7;
    const Status status = ranks.agree_max(mine, value);
    EXPECT_EQ(status.code(), Code::kNoSpace);
    EXPECT_EQ(status.message(), "rank 1");
    EXPECT_EQ(value, 7U);
  });
}

TEST(Ranks, SayThatTheyDoNotReachEachOther) {
  Board board;
  board.combined = Status(Code::kUnreachable, "nobody answers");
  on_all(board, [](const Ranks& ranks) {
    EXPECT_EQ(ranks.agree(Status::ok()).code(), Code::kUnreachable);
  });
}

TEST(Ranks, CombineValues) {
  Board board;
  on_all(board, [](const Ranks& ranks) {
    const auto rank = static_cast<std::uint64_t>(ranks.rank());
    std::vector<std::uint64_t> values{rank, 5 - rank};
    ranks.sum(values);
    EXPECT_EQ(values, (std::vector<std::uint64_t>{3, 12}));
    values = {rank, 5 - rank};
    ranks.least(values);
    EXPECT_EQ(values, (std::vector<std::uint64_t>{0, 3}));
    EXPECT_EQ(ranks.largest(5 - rank), 5U);
  });
}

TEST(Ranks, ShareWhatRankZeroHas) {
  Board board;
  on_all(board, [](const Ranks& ranks) {
    std::string text = ranks.is_root() ? "of rank 0" : "own";
    EXPECT_TRUE(ranks.share(Status::ok(), text).is_ok());
    EXPECT_EQ(text, "of rank 0");
    EXPECT_TRUE(ranks.share(Status::ok()).is_ok());
  });
}

TEST(Ranks, ShareTheErrorOfRankZeroAndNothingElse) {
  Board board;
  on_all(board, [](const Ranks& ranks) {
    std::string text = "own";
    const Status mine = ranks.is_root() ? Status(Code::kQuota, "full") : Status::ok();
    const Status status = ranks.share(mine, text);
    EXPECT_EQ(status.code(), Code::kQuota);
    EXPECT_EQ(status.message(), "full");
    EXPECT_EQ(text, "own");
  });
}

TEST(Ranks, GatherWhatAllHaveOrTheErrorOfTheLowest) {
  Board board;
  on_all(board, [](const Ranks& ranks) {
    const auto length = static_cast<std::size_t>(ranks.rank() + 1);
    const auto all = ranks.gather_if_all_ok(Status::ok(), Bytes(length));
    ASSERT_TRUE(all.is_ok());
    EXPECT_EQ(*all, ranks.is_root() ? (std::vector<Bytes>{Bytes(1), Bytes(2), Bytes(3)})
                                    : std::vector<Bytes>{});
    const Status mine =
        ranks.is_root() ? Status::ok() : Status(Code::kQuota, std::to_string(ranks.rank()));
    const auto failed = ranks.gather_if_all_ok(mine, Bytes(length));
    // Rank 0 is the one that tells.
    EXPECT_EQ(failed.status().code(), ranks.is_root() ? Code::kQuota : Code::kOk);
    EXPECT_EQ(failed.status().message(), ranks.is_root() ? "1" : "");
  });
}

// As if a rank were of another version: rank 0 tells a number where the others wait for an id.
TEST(Ranks, RefuseWhatTheyDoNotUnderstand) {
  Board board;
  on_all(board, [](const Ranks& ranks) {
    if (ranks.is_root()) {
      std::uint32_t number = 1;
      EXPECT_TRUE(ranks.share(Status::ok(), number).is_ok());
    } else {
      Id128 id;
      EXPECT_EQ(ranks.share(Status::ok(), id).code(), Code::kInternal);
    }
  });
}

TEST(Ranks, SpeakForNodesInTurn) {
  Board board;
  on_all(board, [](const Ranks& ranks) {
    for (NodeIndex node = 0; node < 9; ++node) {
      EXPECT_EQ(ranks.speaks_for(node), node % kRanks == ranks.rank());
    }
  });
}

TEST(Ranks, OneAgreesWithItself) {
  const OneRank alone;
  std::uint64_t value = 3;
  EXPECT_TRUE(alone.agree_max(Status::ok(), value).is_ok());
  EXPECT_EQ(value, 3U);
  EXPECT_EQ(alone.agree(Status(Code::kQuota, "full")).code(), Code::kQuota);
  EXPECT_EQ(alone.agree(Status(Code::kQuota, "full")).message(), "full");
  EXPECT_EQ(alone.share(Status(Code::kIo, "x"), value).code(), Code::kIo);
  EXPECT_TRUE(alone.share(Status::ok(), value).is_ok());
  EXPECT_EQ(value, 3U);
  EXPECT_TRUE(alone.speaks_for(5));
  const Bytes bytes(2);
  EXPECT_EQ(alone.gather(bytes), std::vector<Bytes>{bytes});
  EXPECT_EQ(alone.exchange({bytes}), std::vector<Bytes>{bytes});
}

}  // namespace
}  // namespace dedup
