#include "base/erasure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

namespace dedup {
namespace {

Bytes random_bytes(std::mt19937_64& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// All k + m.
std::vector<Bytes> coded(const ErasureCode& code, std::vector<Bytes> units, std::size_t length) {
  std::vector<Bytes> parities(code.m(), Bytes(length));
  std::vector<std::span<std::byte>> out(parities.begin(), parities.end());
  for (unsigned i = 0; i < code.k(); ++i) code.add(i, units[i], out);
  for (Bytes& unit : units) unit.resize(length);
  units.insert(units.end(), parities.begin(), parities.end());
  return units;
}

void expect_restored(const ErasureCode& code, const std::vector<Bytes>& all, std::uint64_t there) {
  std::vector<unsigned> which;
  std::vector<std::span<const std::byte>> bytes;
  for (unsigned i = 0; i < all.size(); ++i) {
    if ((there >> i & 1) == 0) continue;
    which.push_back(i);
    bytes.emplace_back(all[i]);
  }
  for (unsigned wanted = 0; wanted < all.size(); ++wanted) {
    Bytes out(all[0].size());
    ASSERT_TRUE(code.restore(which, bytes, wanted, out));
    ASSERT_EQ(out, all[wanted]) << "the " << wanted << "-th of those that are there: " << there;
    if ((there >> wanted & 1) != 0) continue;
    // In the order in which they come, without their zeros at the end.
    const auto sum = code.sum_of(std::span(which).first(code.k()), wanted);
    ASSERT_TRUE(sum);
    Bytes added(all[0].size());
    for (std::size_t i = code.k(); i-- > 0;) {
      const auto zeros = std::find_if(bytes[i].rbegin(), bytes[i].rend(),
                                      [](std::byte byte) { return byte != std::byte{0}; });
      sum->add(i, bytes[i].first(static_cast<std::size_t>(bytes[i].rend() - zeros)), added);
    }
    ASSERT_EQ(added, all[wanted]);
  }
}

TEST(Erasure, AnyKOfThemTellTheOthers) {
  std::mt19937_64 random(1);
  for (const auto& [k, m] : std::vector<std::pair<unsigned, unsigned>>{{1, 1},
                                                                       {1, 3},
                                                                       {2, 1},
                                                                       {4, 1},
                                                                       {7, 1},
                                                                       {2, 2},
                                                                       {4, 2},
                                                                       {8, 2},
                                                                       {5, 3},
                                                                       {6, 4},
                                                                       {3, 8}}) {
    const ErasureCode code(k, m);
    std::vector<Bytes> units;
    for (unsigned i = 0; i < k; ++i) units.push_back(random_bytes(random, 100));
    const std::vector<Bytes> all = coded(code, units, 100);
    for (std::uint64_t there = 0; there < std::uint64_t{1} << (k + m); ++there) {
      if (static_cast<unsigned>(std::popcount(there)) == k) expect_restored(code, all, there);
    }
  }
}

TEST(Erasure, OfManyUnitsToo) {
  std::mt19937_64 random(2);
  for (const auto& [k, m] : std::vector<std::pair<unsigned, unsigned>>{{56, 8}, {63, 1}, {40, 5}}) {
    const ErasureCode code(k, m);
    std::vector<Bytes> units;
    for (unsigned i = 0; i < k; ++i) units.push_back(random_bytes(random, 33));
    const std::vector<Bytes> all = coded(code, units, 33);
    for (int round = 0; round < 50; ++round) {
      std::uint64_t there = k + m == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (k + m)) - 1;
      for (unsigned lost = 0; lost < m; ++lost) there &= ~(std::uint64_t{1} << random() % (k + m));
      expect_restored(code, all, there);
    }
  }
}

TEST(Erasure, OneParityIsTheExclusiveOr) {
  std::mt19937_64 random(3);
  const ErasureCode code(3, 1);
  const std::vector<Bytes> units{random_bytes(random, 50), random_bytes(random, 50),
                                 random_bytes(random, 50)};
  const std::vector<Bytes> all = coded(code, units, 50);
  for (std::size_t i = 0; i < 50; ++i)
    EXPECT_EQ(all[3][i], units[0][i] ^ units[1][i] ^ units[2][i]);
}

TEST(Erasure, ShorterUnitsEndInZeros) {
  std::mt19937_64 random(4);
  const ErasureCode code(4, 2);
  for (const std::size_t length : {1, 15, 16, 17, 63, 64, 65, 4096, 100'001}) {
    std::vector<Bytes> units;
    for (unsigned i = 0; i < 4; ++i)
      units.push_back(random_bytes(random, i == 2 ? length : random() % (length + 1)));
    const std::vector<Bytes> all = coded(code, units, length);
    expect_restored(code, all, 0b110011);
    expect_restored(code, all, 0b111100);
  }
}

TEST(Erasure, ASumIsOfExactlyK) {
  const ErasureCode code(3, 2);
  EXPECT_FALSE(code.sum_of(std::vector<unsigned>{0, 1}, 2));
  EXPECT_FALSE(code.sum_of(std::vector<unsigned>{0, 1, 3, 4}, 2));
  EXPECT_FALSE(code.sum_of(std::vector<unsigned>{0, 1, 5}, 2));
  EXPECT_FALSE(code.sum_of(std::vector<unsigned>{0, 1, 3}, 5));
  EXPECT_FALSE(code.sum_of(std::vector<unsigned>{0, 1, 1}, 2));
}

TEST(Erasure, FewerThanKTellNothing) {
  const ErasureCode code(3, 2);
  const Bytes bytes(10);
  Bytes out(10);
  const std::vector<std::span<const std::byte>> two{bytes, bytes};
  EXPECT_FALSE(code.restore(std::vector<unsigned>{0, 4}, two, 1, out));
  const std::vector<std::span<const std::byte>> uneven{bytes, bytes, std::span(bytes).first(9)};
  EXPECT_FALSE(code.restore(std::vector<unsigned>{0, 1, 4}, uneven, 2, out));
  const std::vector<std::span<const std::byte>> three{bytes, bytes, bytes};
  EXPECT_FALSE(code.restore(std::vector<unsigned>{0, 1, 4}, three, 5, out));
  EXPECT_FALSE(code.restore(std::vector<unsigned>{0, 1, 7}, three, 2, out));
}

}  // namespace
}  // namespace dedup
