#include "bench/data/data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "plan/cut.h"

namespace dedup::bench {
namespace {

constexpr std::uint64_t kBytes = 400 * kUnit;

std::vector<std::byte> fill(const Data& data, unsigned rank, unsigned step) {
  std::vector<std::byte> out(data.bytes_a_rank());
  data.fill(rank, step, 0, out);
  return out;
}

std::string unit_of(const std::vector<std::byte>& data, std::size_t number) {
  return {reinterpret_cast<const char*>(data.data()) + number * kUnit, kUnit};
}

// What deduplication finds in the bytes, as shares of all of them.
struct Found {
  double local = 0;
  double global = 0;
  double zero = 0;
  double on_two = 0;    // of what is left in each rank, on exactly two
  double on_three = 0;  // on three and more
  double sent = 0;      // copies at K = 3, one rank a node
};

Found look_at(const Data& data) {
  Found found;
  std::map<std::string, unsigned> ranks_with;
  double zero = 0;
  for (unsigned rank = 0; rank < data.ranks(); ++rank) {
    const auto bytes = fill(data, rank, 0);
    std::set<std::string> mine;
    for (std::size_t u = 0; u < bytes.size() / kUnit; ++u) {
      if (plan::all_zero(std::span(bytes).subspan(u * kUnit, kUnit))) {
        ++zero;
      } else {
        mine.insert(unit_of(bytes, u));
      }
    }
    for (const std::string& unit : mine) ++ranks_with[unit];
  }
  double on[4] = {};
  for (const auto& [unit, ranks] : ranks_with) {
    on[std::min(ranks, 3u)] += ranks;
    found.sent += ranks < 3 ? 3 - ranks : 0;
  }
  const double all = static_cast<double>(data.bytes_a_rank()) / kUnit * data.ranks();
  const double left = on[1] + on[2] + on[3];
  found.local = left / all;
  found.global = static_cast<double>(ranks_with.size()) / all;
  found.zero = zero / all;
  found.on_two = left > 0 ? on[2] / left : 0;
  found.on_three = left > 0 ? on[3] / left : 0;
  found.sent /= all;
  return found;
}

TEST(BenchData, HasTheSharesThatWereMeasured) {
  // Unique bytes in each process, across all, zeros, and copies sent at K = 3, as measured.
  struct Row {
    const char* name;
    unsigned ranks;
    double local, global, zero, sent;
  };
  const Row rows[] = {
      {"hpccg-8", 8, .450, .210, .000, .34},   {"hpccg-16", 16, .446, .159, .000, .28},
      {"hpccg-32", 32, .525, .245, .000, .47}, {"cloverleaf-8", 8, .238, .135, .33, .23},
      {"lulesh-8", 8, .463, .314, .36, .56},   {"cm1-8", 8, .521, .454, .42, .88},
      {"hpcg-8", 8, .702, .666, .002, 1.32},   {"comd-8", 8, .963, .959, .037, 1.92},
      {"minife-8", 8, .994, .993, .001, 1.98}, {"cm1-restart-8", 8, .483, .469, .51, .93},
      {"hpccg-408", 16, .33, .06, .0, -1},     {"cm1-408", 34, .30, .05, .42, -1}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Profile* profile = find_profile(row.name);
    ASSERT_NE(profile, nullptr);
    for (const double skew : {0.0, 0.8}) {
      const Found found = look_at(Data::create(*profile, 1, row.ranks, kBytes, skew).value());
      EXPECT_NEAR(found.local, row.local, .005);
      EXPECT_NEAR(found.global, row.global, .005);
      EXPECT_NEAR(found.zero, row.zero, .005);
      if (row.sent >= 0) {
        EXPECT_NEAR(found.sent, row.sent, .03);
      }
      EXPECT_LT(found.on_two, .02);
    }
  }
}

TEST(BenchData, ExtremesAreExtreme) {
  const auto found = [](const char* name) {
    return look_at(Data::create(*find_profile(name), 1, 5, kBytes).value());
  };
  EXPECT_EQ(found("unique").global, 1);
  EXPECT_EQ(found("zero").zero, 1);
  EXPECT_EQ(found("same").local, 1);
  EXPECT_EQ(found("same").on_three, 1);
  EXPECT_DOUBLE_EQ(found("same").global, 1.0 / 5);
}

TEST(BenchData, SecondStepHasTheOverlapThatWasMeasured) {
  for (const Profile& profile : profiles()) {
    SCOPED_TRACE(profile.name);
    const Data data = Data::create(profile, 1, 8, kBytes).value();
    for (const unsigned rank : {0u, 7u}) {
      for (const unsigned step : {1u, 2u}) {
        const auto before = fill(data, rank, step - 1);
        const auto after = fill(data, rank, step);
        std::set<std::string> had;
        for (std::size_t u = 0; u < before.size() / kUnit; ++u) had.insert(unit_of(before, u));
        double kept = 0;
        for (std::size_t u = 0; u < after.size() / kUnit; ++u)
          kept += had.contains(unit_of(after, u));
        EXPECT_NEAR(kept / (kBytes / kUnit), profile.overlap, .005);
      }
    }
  }
}

TEST(BenchData, SharesSayWhatTheBytesAre) {
  const Data data = Data::create(*find_profile("lulesh-8"), 1, 8, kBytes, 0.5).value();
  std::uint64_t least = kBytes;
  std::uint64_t most = 0;
  for (unsigned rank = 0; rank < 8; ++rank) {
    const Shares shares = data.shares(rank);
    EXPECT_EQ(shares.zero + shares.shared + shares.own + shares.repeated, kBytes / kUnit);
    const auto bytes = fill(data, rank, 0);
    std::set<std::string> mine;
    for (std::size_t u = 0; u < bytes.size() / kUnit; ++u) mine.insert(unit_of(bytes, u));
    EXPECT_EQ(mine.size(), shares.shared + shares.own + 1);  // and zeros
    least = std::min(least, shares.own);
    most = std::max(most, shares.own);
  }
  EXPECT_NEAR(static_cast<double>(most) / static_cast<double>(least), 1.5 / 0.5, 0.1);
}

TEST(BenchData, AnyPartIsThePartOfTheWhole) {
  const Data data = Data::create(*find_profile("cm1-8"), 3, 4, 40 * kUnit + 100).value();
  const auto whole = fill(data, 2, 1);
  for (std::uint64_t offset : {0ul, 1ul, kUnit - 1, kUnit, 5 * kUnit + 17}) {
    for (std::uint64_t length : {0ul, 1ul, 100ul, kUnit, 3 * kUnit + 5, whole.size() - offset}) {
      std::vector<std::byte> part(length);
      data.fill(2, 1, offset, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + offset))
          << offset << ' ' << length;
    }
  }
}

TEST(BenchData, IsAFunctionOfWhatItIsToldAndOfNothingElse) {
  const auto make = [](const char* profile, std::uint64_t seed, unsigned ranks, unsigned rank) {
    return fill(Data::create(*find_profile(profile), seed, ranks, kBytes).value(), rank, 0);
  };
  const auto once = make("hpccg-8", 1, 8, 3);
  EXPECT_EQ(once, make("hpccg-8", 1, 8, 3));
  EXPECT_NE(once, make("hpccg-8", 2, 8, 3));
  EXPECT_NE(once, make("hpccg-8", 1, 8, 4));
  EXPECT_NE(once, make("hpcg-8", 1, 8, 3));
}

TEST(BenchData, TakesAnyNumberOfRanks) {
  for (const Profile& profile : profiles()) {
    for (const unsigned ranks : {1u, 2u, 3u, 17u, 408u}) {
      const Data data = Data::create(profile, 1, ranks, 64 * kUnit, 1).value();
      for (unsigned rank = 0; rank < ranks; ++rank) {
        const Shares shares = data.shares(rank);
        EXPECT_EQ(shares.zero + shares.shared + shares.own + shares.repeated, 64u)
            << profile.name << ' ' << ranks;
      }
    }
  }
  EXPECT_EQ(Data::create(*find_profile("zero"), 1, 0, 4096).status().code(), Code::kArgument);
  EXPECT_EQ(Data::create(*find_profile("zero"), 1, 1, 4096, 2).status().code(), Code::kArgument);
  EXPECT_EQ(find_profile("nothing"), nullptr);
}

}  // namespace
}  // namespace dedup::bench
