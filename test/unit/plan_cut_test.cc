#include "plan/cut.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/piece.h"

namespace dedup::plan {
namespace {

std::vector<Cut> cut_all(std::span<const std::byte> data, std::uint32_t chunk_size) {
  ChunkCutter cutter(data, chunk_size);
  std::vector<Cut> cuts;
  for (Cut cut = cutter.next(); cut.length > 0; cut = cutter.next()) cuts.push_back(cut);
  return cuts;
}

Fingerprint fingerprint_of(std::uint64_t number) {
  Fingerprint f;
  std::memcpy(f.bytes.data(), &number, sizeof number);
  return f;
}

TEST(PlanCut, AllZeroSeesEveryByte) {
  for (std::size_t size : {0u, 1u, 7u, 8u, 63u, 64u, 65u, 127u, 200u, 512u}) {
    Bytes bytes(size + 3);
    const std::span<std::byte> unaligned = std::span(bytes).subspan(1, size);
    EXPECT_TRUE(all_zero(unaligned));
    bytes[0] = bytes[size + 1] = std::byte{1};  // just outside
    EXPECT_TRUE(all_zero(unaligned));
    for (std::size_t i = 0; i < size; ++i) {
      unaligned[i] = std::byte{0x80};
      EXPECT_FALSE(all_zero(unaligned)) << i << " of " << size;
      unaligned[i] = std::byte{0};
    }
  }
}

TEST(PlanCut, CountsChunks) {
  EXPECT_EQ(chunk_count(0, 512), 0u);
  EXPECT_EQ(chunk_count(1, 512), 1u);
  EXPECT_EQ(chunk_count(512, 512), 1u);
  EXPECT_EQ(chunk_count(513, 512), 2u);
  EXPECT_EQ(chunk_count(~std::uint64_t{0}, 512), (std::uint64_t{1} << 55));
}

TEST(PlanCut, NothingGivesNothing) {
  EXPECT_TRUE(cut_all({}, 512).empty());
}

// Against chunk-by-chunk cutting, for random mixtures of zero and other chunks.
TEST(PlanCut, AgreesWithCuttingOneByOne) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const std::uint32_t chunk_size = 512u << random() % 3;
    Bytes data(random() % 20000);
    const unsigned density = random() % 4;
    for (std::size_t at = 0; at < data.size(); at += chunk_size) {
      if (random() % 4 < density) {
        data[std::min<std::size_t>(at + random() % chunk_size, data.size() - 1)] = std::byte{7};
      }
    }
    std::uint64_t at = 0;
    bool zero_before = false;
    for (const Cut& cut : cut_all(data, chunk_size)) {
      ASSERT_EQ(cut.offset, at);
      ASSERT_EQ(cut.offset % chunk_size, 0u);
      const auto bytes = std::span(data).subspan(cut.offset, cut.length);
      ASSERT_EQ(all_zero(bytes), cut.zero);
      if (cut.zero) {
        ASSERT_FALSE(zero_before) << "zeros were not joined";
      } else {
        ASSERT_EQ(cut.length, std::min<std::uint64_t>(chunk_size, data.size() - at));
      }
      zero_before = cut.zero;
      at += cut.length;
    }
    ASSERT_EQ(at, data.size());
  }
}

TEST(PlanCut, ZerosAreJoinedUpToABlock) {
  const Bytes data(2 * kBlockSpan + 100);
  const auto cuts = cut_all(data, 3 * 1024);  // no divisor of a block
  std::uint64_t at = 0;
  for (const Cut& cut : cuts) {
    EXPECT_TRUE(cut.zero);
    EXPECT_EQ(cut.offset, at);
    EXPECT_LE(cut.length, kBlockSpan);
    at += cut.length;
  }
  EXPECT_EQ(at, data.size());
  EXPECT_EQ(cuts.size(), 3u);
}

TEST(PlanCut, CutsFromTheStartOfThePiece) {
  Bytes data(5000, std::byte{1});
  const auto cuts = cut_all(std::span(data).subspan(123), 1024);
  ASSERT_EQ(cuts.size(), 5u);
  for (std::size_t i = 0; i < cuts.size(); ++i) EXPECT_EQ(cuts[i].offset, 1024 * i);
  EXPECT_EQ(cuts.back().length, (5000u - 123) % 1024);
}

TEST(PlanFingerprintTable, AgreesWithAMap) {
  std::mt19937 random(2);
  FingerprintTable table;
  for (int round = 0; round < 50; ++round) {
    std::vector<Fingerprint> items;
    std::map<Fingerprint, std::uint32_t> reference;
    const std::size_t count = random() % 2000;
    table.reset(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Fingerprint f = fingerprint_of(random() % (count + 1) << (round % 40));
      items.push_back(f);
      const auto number = static_cast<std::uint32_t>(i);
      const auto expected = reference.try_emplace(f, number).first->second;
      ASSERT_EQ(table.find_or_enter(f, number, [&](std::uint32_t n) { return items[n]; }),
                expected);
    }
  }
}

}  // namespace
}  // namespace dedup::plan
