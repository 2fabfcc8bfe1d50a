// FragmentWalk against an expansion of the access byte by byte.
#include "plan/access.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <vector>

namespace dedup::plan {
namespace {

// A FlatType with storage of its own.
struct OwnedType {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;
  std::int64_t extent = 0;

  FlatType flat() const {
    std::int64_t size = 0;
    for (const std::int64_t length : lengths) size += length;
    return {offsets, lengths, extent, size};
  }
};

struct ByteAt {
  std::uint64_t file;
  std::byte* memory;
  auto operator<=>(const ByteAt&) const = default;
};

// Offset of each data byte of a type, from its first byte on.
std::vector<std::int64_t> expand(const FlatType& type, std::int64_t start, std::uint64_t bytes) {
  std::vector<std::int64_t> out;
  std::int64_t number = 0;
  for (std::int64_t repetition = 0; out.size() < bytes; ++repetition) {
    for (std::size_t piece = 0; piece < type.lengths.size(); ++piece) {
      for (std::int64_t i = 0; i < type.lengths[piece] && out.size() < bytes; ++i) {
        if (number++ >= start) out.push_back(repetition * type.extent + type.offsets[piece] + i);
      }
    }
  }
  return out;
}

std::vector<ByteAt> expand(const Access& access) {
  const auto file = expand(access.filetype, access.start, access.bytes);
  const auto memory = expand(access.memtype, 0, access.bytes);
  std::vector<ByteAt> out;
  for (std::size_t i = 0; i < file.size(); ++i) {
    out.push_back(
        {static_cast<std::uint64_t>(access.displacement + file[i]), access.memory + memory[i]});
  }
  return out;
}

bool follow(const Fragment& a, const Fragment& b) {
  return a.file_offset + a.length == b.file_offset && a.memory + a.length == b.memory;
}

// Walks with cuts at `limit()`, checks that fragments are as long as they can be, and expands them.
template <typename Limit>
std::vector<ByteAt> walk(const Access& access, Limit limit) {
  std::vector<ByteAt> out;
  FragmentWalk walk(access);
  Fragment before;
  std::uint64_t before_limit = 0;
  while (true) {
    const std::uint64_t most = limit();
    const Fragment f =
        most == std::numeric_limits<std::uint64_t>::max() ? walk.next() : walk.next(most);
    if (f.length == 0) break;
    EXPECT_LE(f.length, most);
    const bool maximal = before.length != 0 && before.length < before_limit;
    EXPECT_FALSE(maximal && follow(before, f));
    before = f;
    before_limit = most;
    for (std::uint64_t i = 0; i < f.length; ++i) out.push_back({f.file_offset + i, f.memory + i});
  }
  EXPECT_EQ(0, walk.next().length);
  return out;
}

OwnedType random_type(std::mt19937& random, bool file) {
  OwnedType type;
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  const std::size_t pieces = 1 + random() % 5;
  std::int64_t at = file ? below(10) : below(40) - 20;
  std::int64_t end = at;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::int64_t length = random() % 3 == 0 ? 0 : below(9);
    type.offsets.push_back(at);
    type.lengths.push_back(length);
    end = std::max(end, at + length);
    // Adjacent to the one before, after a hole, or, in memory, anywhere.
    at += length;
    if (random() % 2 == 0) at += below(6);
    if (!file && random() % 4 == 0) at = below(60) - 30;
  }
  if (type.flat().size == 0) type.lengths[random() % pieces] = 1 + below(5);
  const std::int64_t size = type.flat().size;
  switch (random() % 4) {
    case 0:
      type.extent = size;
      break;
    case 1:
      type.extent = end + below(7);
      break;
    case 2:  // repetitions that interlock, or go backwards in memory
      type.extent = file ? below(8) : below(30) - 15;
      break;
    default:
      type.extent = end;
  }
  return type;
}

TEST(FragmentWalk, MatchesTheExpansionByBytes) {
  std::mt19937 random(1);
  std::vector<std::byte> memory(1 << 16);
  for (int round = 0; round < 20000; ++round) {
    const OwnedType file = random_type(random, true);
    const OwnedType mem = random_type(random, false);
    Access access;
    access.displacement = static_cast<std::int64_t>(random() % 2 == 0 ? random() % 100 : random());
    if (random() % 4 == 0) access.displacement *= 1 << 20;
    access.filetype = file.flat();
    access.memtype = mem.flat();
    access.start = static_cast<std::int64_t>(random() % 50);
    access.memory = memory.data() + memory.size() / 2;
    access.bytes = random() % 200;
    const std::vector<ByteAt> expected = expand(access);
    ASSERT_EQ(expected, walk(access, [] { return std::numeric_limits<std::uint64_t>::max(); }));
    ASSERT_EQ(expected, walk(access, [&] { return 1 + random() % 12; }));
  }
}

TEST(FragmentWalk, StartsFarInAHugeFile) {
  const OwnedType file{{4, 12}, {4, 4}, 16};
  const OwnedType byte{{0}, {1}, 1};
  std::byte memory[64];
  Access access{std::int64_t{1} << 40, file.flat(), (std::int64_t{1} << 50) + 2, memory,
                byte.flat(),           16};
  FragmentWalk walk(access);
  // 2^50 data bytes are 2^47 repetitions of 16 bytes.
  const std::uint64_t base = (std::uint64_t{1} << 40) + (std::uint64_t{1} << 51);
  for (const auto& [offset, length, at] :
       {std::array<std::uint64_t, 3>{6, 2, 0}, {12, 4, 2}, {20, 4, 6}, {28, 4, 10}, {36, 2, 14}}) {
    const Fragment f = walk.next();
    EXPECT_EQ(base + offset, f.file_offset);
    EXPECT_EQ(length, f.length);
    EXPECT_EQ(memory + at, f.memory);
  }
  EXPECT_EQ(0, walk.next().length);
}

// 2^50 repetitions of a byte are one fragment, found at once.
TEST(FragmentWalk, TakesGaplessTypesWhole) {
  const OwnedType file{{0, 0, 8}, {0, 8, 0}, 8};
  const OwnedType byte{{0}, {1}, 1};
  std::byte memory;
  const std::uint64_t bytes = std::uint64_t{1} << 50;
  Access access{100, file.flat(), 3, &memory, byte.flat(), bytes};
  FragmentWalk walk(access);
  Fragment f = walk.next(1000);
  EXPECT_EQ(103, f.file_offset);
  EXPECT_EQ(1000, f.length);
  f = walk.next();
  EXPECT_EQ(1103, f.file_offset);
  EXPECT_EQ(bytes - 1000, f.length);
  EXPECT_EQ(0, walk.next().length);
}

void expect_nothing(const Access& access) {
  EXPECT_EQ(0, FragmentWalk(access).next().length);
}

TEST(FragmentWalk, NothingToDoIsTheEnd) {
  const OwnedType byte{{0}, {1}, 1};
  const OwnedType empty{{}, {}, 0};
  const OwnedType hollow{{0, 4}, {0, 0}, 8};
  std::byte memory;
  expect_nothing({0, byte.flat(), 0, &memory, byte.flat(), 0});
  expect_nothing({0, byte.flat(), 0, &memory, empty.flat(), 5});
  expect_nothing({0, hollow.flat(), 0, &memory, byte.flat(), 5});
  expect_nothing({});
}

}  // namespace
}  // namespace dedup::plan
