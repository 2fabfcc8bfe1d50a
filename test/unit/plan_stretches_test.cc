// StretchRounds against the file image that writing byte by byte gives, and against the chunks that
// cutting each stretch from its start gives.
#include "plan/stretches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "plan/cut.h"

namespace dedup::plan {
namespace {

struct OwnedAccess {
  std::vector<std::int64_t> file_offsets, file_lengths, memory_offsets, memory_lengths;
  std::vector<std::byte> memory;
  Access access;
};

// Pieces of up to `scale` bytes with holes or without, in memory and in the file.
void random_type(std::mt19937& random, std::uint32_t scale, std::vector<std::int64_t>& offsets,
                 std::vector<std::int64_t>& lengths, FlatType& type) {
  const std::size_t pieces = 1 + random() % 4;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    offsets.push_back(at);
    lengths.push_back(random() % scale);
    at += lengths.back() + (random() % 3 == 0 ? random() % 10 : 0);
    type.size += lengths.back();
  }
  ++lengths.back();
  ++type.size;
  type.offsets = offsets;
  type.lengths = lengths;
  type.extent = at + 1 + (random() % 3 == 0 ? random() % 10 : 0);
}

std::unique_ptr<OwnedAccess> random_access(std::mt19937& random) {
  auto a = std::make_unique<OwnedAccess>();
  const std::uint32_t scales[] = {8, 100, 3000};
  random_type(random, scales[random() % 3], a->file_offsets, a->file_lengths, a->access.filetype);
  random_type(random, scales[random() % 3], a->memory_offsets, a->memory_lengths,
              a->access.memtype);
  a->access.displacement = random() % 1000;
  a->access.start = random() % 100;
  a->access.bytes = random() % 20000;
  const auto repetitions = static_cast<std::int64_t>(a->access.bytes) / a->access.memtype.size + 1;
  a->memory.resize(static_cast<std::size_t>(repetitions * a->access.memtype.extent));
  for (auto& b : a->memory) b = static_cast<std::byte>(random());
  a->access.memory = a->memory.data();
  return a;
}

TEST(StretchRounds, CutsTheChunksOfEachStretchFromItsStart) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto owned = random_access(random);
    const Access& access = owned->access;
    const auto chunk_size = static_cast<std::uint32_t>(random() % 2 == 0 ? 64 : 1 + random() % 700);
    const std::uint64_t staging = random() % 5000;
    const StretchRounds::Limits limits{staging, 1 + random() % 50, 1 + random() % 50};

    // Expected: the bytes, and the chunks' boundaries.
    std::map<std::uint64_t, std::byte> image;
    std::vector<ByteRange> chunks;
    std::uint64_t stretches = 0;
    FragmentWalk walk(access);
    for (Fragment f = walk.next(1); f.length != 0; f = walk.next(1)) {
      image[f.file_offset] = *f.memory;
      const bool adjacent = !chunks.empty() && chunks.back().end() == f.file_offset;
      if (!adjacent) ++stretches;
      if (adjacent && chunks.back().length < chunk_size) {
        ++chunks.back().length;
      } else {
        chunks.push_back({f.file_offset, 1});
      }
    }
    EXPECT_EQ(stretches, count_stretches(access, 1 << 30));

    StretchRounds rounds(access, chunk_size, limits);
    ASSERT_TRUE(rounds.ok());
    const std::byte* const first = owned->memory.data();
    const std::byte* const last = first + owned->memory.size();
    std::vector<ByteRange> found;
    std::vector<MemoryRun> runs;
    bool more = true;
    while (more) {
      more = rounds.next(runs);
      ASSERT_TRUE(!more || !runs.empty());
      ASSERT_LE(runs.size(), limits.runs);
      std::uint64_t staged = 0;
      std::uint64_t count = 0;
      for (const MemoryRun& run : runs) {
        count += chunk_count(run.length, chunk_size);
        if (std::less<>()(run.data, first) || !std::less<>()(run.data, last)) staged += run.length;
        for (std::uint64_t i = 0; i < run.length; ++i) {
          ASSERT_EQ(image.at(run.file_offset + i), run.data[i]);
        }
        for (std::uint64_t i = 0; i < run.length; i += chunk_size) {
          found.push_back(
              {run.file_offset + i, std::min<std::uint64_t>(chunk_size, run.length - i)});
        }
      }
      ASSERT_LE(count, limits.chunks);
      ASSERT_LE(staged, std::max<std::uint64_t>(chunk_size, limits.staging));
    }
    ASSERT_EQ(chunks, found) << "round " << round;
    EXPECT_FALSE(rounds.next(runs));
    EXPECT_TRUE(runs.empty());
  }
}

// What needs no gathering is not copied, nor split.
TEST(StretchRounds, HandsOverContiguousDataInPlace) {
  const std::vector<std::int64_t> zero{0};
  const std::vector<std::int64_t> one{1};
  std::vector<std::byte> memory(100000);
  Access access{123, {zero, one, 1, 1}, 0, memory.data(), {zero, one, 1, 1}, memory.size()};
  StretchRounds rounds(access, 4096, {1 << 20, 100, 1 << 18});
  std::vector<MemoryRun> runs;
  EXPECT_FALSE(rounds.next(runs));
  ASSERT_EQ(1, runs.size());
  EXPECT_EQ(123, runs[0].file_offset);
  EXPECT_EQ(memory.data(), runs[0].data);
  EXPECT_EQ(memory.size(), runs[0].length);
}

TEST(CountStretches, JudgesByTheFirstFragments) {
  const std::vector<std::int64_t> zero{0};
  const std::vector<std::int64_t> one{1};
  const std::vector<std::int64_t> eight{8};
  std::byte memory{};
  Access access{0, {zero, eight, 16, 8}, 0, &memory, {zero, one, 1, 1}, std::uint64_t{8} << 30};
  EXPECT_EQ(std::uint64_t{1} << 30, count_stretches(access, 1000));
  access.bytes = 0;
  EXPECT_EQ(0, count_stretches(access, 1000));
}

}  // namespace
}  // namespace dedup::plan
