#include "plan/bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "base/varint.h"

namespace dedup::plan {
namespace {

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

std::uint64_t low_bits(std::uint64_t value, unsigned bits) {
  return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

TEST(Bits, GiveWhatWasPut) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::pair<std::uint64_t, unsigned>> put;  // 65 bits: a count
    BitWriter out;
    for (int i = 0; i < 300; ++i) {
      const auto bits = static_cast<unsigned>(random() % 66);
      if (bits == 65) {
        put.emplace_back(1 + (random() >> (37 + random() % 27)), bits);
        out.put_count(put.back().first);
      } else {
        put.emplace_back(low_bits(random(), bits), bits);
        out.put(put.back().first, bits);
      }
    }
    const auto bytes = out.finish();
    BitReader in(bytes);
    for (const auto& [value, bits] : put) {
      ASSERT_EQ(bits == 65 ? in.get_count() : in.get(bits), value);
    }
    EXPECT_TRUE(in.ok());
    EXPECT_TRUE(in.at_end());
    in.get(9);
    EXPECT_FALSE(in.ok());
    EXPECT_EQ(in.get(1), 0u);
  }
}

// Sizes of one byte, of two and of three.
TEST(Bits, MakeFrames) {
  BitWriter out;
  for (int message = 0; message < 2; ++message) {
    Bytes expected;
    for (const std::size_t size : {0u, 1u, 127u, 128u, 5u, 16'383u, 16'384u, 0u, 300u}) {
      out.begin_frame();
      for (std::size_t i = 0; i < size; ++i) out.put(i & 0xff, 8);
      out.end_frame();
      Encoder frame;
      put_varint(frame, size);
      for (std::size_t i = 0; i < size; ++i) frame.put(static_cast<std::uint8_t>(i));
      expected.insert(expected.end(), frame.bytes().begin(), frame.bytes().end());
    }
    EXPECT_EQ(out.take(), expected);
  }
}

// What is left of a frame's last byte is not part of the next one.
TEST(Bits, FillTheLastByteOfAFrame) {
  BitWriter out;
  for (const unsigned bits : {3u, 9u, 64u, 61u}) {
    out.begin_frame();
    out.put(5, bits);
    out.end_frame();
  }
  const Bytes message = out.take();
  std::size_t at = 0;
  for (const unsigned bits : {3u, 9u, 64u, 61u}) {
    ASSERT_LT(at, message.size());
    const auto size = static_cast<std::size_t>(message[at]);
    ASSERT_EQ(size, (bits + 7) / 8);
    BitReader in(std::span<const std::byte>(message).subspan(at + 1, size));
    EXPECT_EQ(in.get(bits), 5u);
    EXPECT_TRUE(in.ok() && in.at_end());
    at += 1 + size;
  }
  EXPECT_EQ(at, message.size());
}

TEST(Bits, ReadNothingBehindTheEnd) {
  for (const std::byte filled : {std::byte{0}, std::byte{0xff}}) {
    for (std::size_t size = 0; size < 20; ++size) {
      const Bytes bytes(size, filled);
      for (const unsigned step : {1u, 7u, 33u, 57u, 58u, 64u}) {
        BitReader in(bytes);
        std::size_t taken = 0;
        for (; in.ok() && taken < 300; taken += step) in.get(step);
        EXPECT_FALSE(in.ok());
        EXPECT_EQ((taken - step) / step, 8 * size / step);
      }
      BitReader counts(bytes);
      for (int i = 0; i < 300; ++i) counts.get_count();
      EXPECT_FALSE(counts.ok());
      BitReader ones(bytes);
      for (int i = 0; i < 300; ++i) ones.get_ones(32);
      EXPECT_FALSE(ones.ok());
    }
  }
  BitWriter out;
  out.put_count(1000);
  const auto bytes = out.finish();
  BitReader items(bytes);
  EXPECT_EQ(items.get_items(1), 0u);
  EXPECT_FALSE(items.ok());
}

Bytes code(const std::vector<std::uint64_t>& numbers, std::uint64_t from, std::uint64_t span) {
  BitWriter out;
  Gaps gaps(from, span, numbers.size());
  for (const std::uint64_t number : numbers) gaps.put(out, number);
  const auto bytes = out.finish();
  return {bytes.begin(), bytes.end()};
}

void expect_same(const std::vector<std::uint64_t>& numbers, std::uint64_t from,
                 std::uint64_t span) {
  const Bytes bytes = code(numbers, from, span);
  BitReader in(bytes);
  Gaps gaps(from, span, numbers.size());
  for (const std::uint64_t number : numbers) ASSERT_EQ(gaps.get(in), number);
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.at_end());
}

TEST(Gaps, GiveWhatWasPutWhateverItIs) {
  std::mt19937_64 random(12);
  expect_same({}, 0, kAll);
  expect_same({0, 0, 0, kAll, kAll}, 0, kAll);
  expect_same({kAll}, 0, 0);
  expect_same({5, 6, kAll}, 5, 2);
  for (int round = 0; round < 100; ++round) {
    const auto shift = static_cast<unsigned>(random() % 64);
    const std::uint64_t from = random() >> 1;
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i < 200; ++i) numbers.push_back(from + (random() >> 1 >> shift));
    std::sort(numbers.begin(), numbers.end());
    expect_same(numbers, from, round % 2 == 0 ? kAll >> shift : random());
  }
}

// What is evenly spread takes what it must, and no more.
TEST(Gaps, TakeFewBits) {
  std::mt19937_64 random(13);
  for (const unsigned power : {4u, 10u, 16u}) {
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i < std::size_t{1} << power; ++i) numbers.push_back(random());
    std::sort(numbers.begin(), numbers.end());
    const double bits = 8.0 * static_cast<double>(code(numbers, 0, kAll).size()) /
                        static_cast<double>(numbers.size());
    EXPECT_LT(bits, 64 - power + 1.7 + 8.0 / static_cast<double>(numbers.size()));
  }
}

TEST(Gaps, FailOnWhatGoesPastTheLargestNumber) {
  BitWriter out;
  Gaps there(0, kAll, 1);
  there.put(out, kAll - 1);
  const auto bytes = out.finish();
  BitReader in(bytes);
  Gaps back(2, kAll, 1);
  back.get(in);
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace dedup::plan
