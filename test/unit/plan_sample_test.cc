#include "plan/sample.h"

#include <gtest/gtest.h>

#include <random>

#include "test/unit/noise.h"

namespace dedup::plan {
namespace {

using test::append;
using test::noise;

constexpr std::uint32_t kChunk = 4096;
constexpr std::size_t kSize = 256 * kChunk;

// One piece, cut from its start.
Block block_of(std::size_t size) {
  Block block;
  for (std::size_t at = 0; at < size; at += kChunk) {
    Piece& piece = block.pieces.emplace_back();
    piece.begin = static_cast<std::uint32_t>(at);
    piece.length = static_cast<std::uint32_t>(std::min<std::size_t>(kChunk, size - at));
    piece.chunk_length = piece.length;
  }
  return block;
}

SampleFigures figures_of(const Bytes& content, std::uint32_t chunk_size = kChunk) {
  Sample sample(chunk_size);
  sample.add(block_of(content.size()), content);
  EXPECT_EQ(sample.figures().bytes, content.size());
  return sample.figures();
}

double share(std::uint64_t part, const Bytes& whole) {
  return static_cast<double>(part) / static_cast<double>(whole.size());
}

TEST(Entropy, OfOneValueAndOfAllAlike) {
  EXPECT_EQ(entropy(Bytes(1000)), 0);
  Bytes all;
  for (int i = 0; i < 1024; ++i) all.push_back(static_cast<std::byte>(i));
  EXPECT_DOUBLE_EQ(entropy(all), 8);
}

TEST(SampledBlocks, AllOfFewAndSomeOfMany) {
  for (std::uint64_t number = 0; number < kSampledBlocks; ++number) {
    EXPECT_TRUE(is_sampled(number, kSampledBlocks));
  }
  for (const std::uint64_t blocks : {100u, 1000u, 1'000'000u}) {
    std::uint64_t sampled = 0;
    for (std::uint64_t number = 0; number < blocks; ++number) {
      if (is_sampled(number, blocks)) ++sampled;
    }
    EXPECT_GT(sampled, kSampledBlocks / 2) << blocks;
    EXPECT_LT(sampled, kSampledBlocks * 2) << blocks;
  }
}

TEST(Sample, NothingIsFoundInNoise) {
  const Bytes content = noise(1, kSize);
  const SampleFigures figures = figures_of(content);
  EXPECT_EQ(figures.as_cut + figures.in_halves + figures.anywhere, 0u);
  EXPECT_EQ(figures.dense, content.size());
}

TEST(Sample, WhatIsAlignedIsFoundInEveryWay) {
  Bytes content = noise(1, kSize);
  append(content, noise(1, kSize));
  const SampleFigures figures = figures_of(content);
  EXPECT_DOUBLE_EQ(share(figures.as_cut, content), 0.5);
  EXPECT_DOUBLE_EQ(share(figures.in_halves, content), 0.5);
  EXPECT_NEAR(share(figures.anywhere, content), 0.5, 0.05);
}

TEST(Sample, WhatIsShiftedIsFoundAnywhereOnly) {
  Bytes content = noise(1, kSize);
  append(content, noise(2, 100));
  append(content, noise(1, kSize));
  const SampleFigures figures = figures_of(content);
  EXPECT_EQ(figures.as_cut, 0u);
  EXPECT_EQ(figures.in_halves, 0u);
  EXPECT_NEAR(share(figures.anywhere, content), 0.5, 0.05);
}

TEST(Sample, HalvesThatAreEqual) {
  Bytes content;
  const Bytes same = noise(1, kChunk / 2);
  for (int i = 0; i < 64; ++i) {
    append(content, same);
    append(content, noise(2 + i, kChunk / 2));
  }
  const SampleFigures figures = figures_of(content);
  EXPECT_EQ(figures.as_cut, 0u);
  EXPECT_EQ(figures.in_halves, 63u * kChunk / 2);
}

TEST(Sample, ChunksThatCannotBeSmallerHaveNoHalves) {
  Bytes content = noise(1, kSize);
  append(content, noise(1, kSize));
  const SampleFigures figures = figures_of(content, kMinChunkSize);
  EXPECT_GT(figures.as_cut, 0u);
  EXPECT_EQ(figures.in_halves, 0u);
}

TEST(Sample, NumbersAreNotDense) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> some(0, 1);
  Bytes content;
  for (std::size_t i = 0; i < kSize / sizeof(double); ++i) {
    const double value = some(random);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    content.insert(content.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(figures_of(content).dense, 0u);
}

TEST(Sample, PiecesOfZerosAreNoData) {
  Block block = block_of(3 * kChunk);
  block.pieces[1].chunk_length = 0;
  Bytes content = noise(1, kChunk);
  append(content, Bytes(kChunk));
  append(content, noise(1, kChunk));
  Sample sample(kChunk);
  sample.add(block, content);
  EXPECT_EQ(sample.figures().bytes, 2u * kChunk);
  EXPECT_EQ(sample.figures().as_cut, kChunk);
}

TEST(Sample, WhatIsWrittenIsCutFromItsStart) {
  Sample sample(kChunk);
  Bytes content = noise(1, 3 * kChunk);
  append(content, Bytes(2 * kChunk));
  append(content, noise(2, 100));
  sample.add_written(content);
  EXPECT_EQ(sample.figures().bytes, 3u * kChunk + 100);
  EXPECT_EQ(sample.figures().as_cut, 0u);
  sample.add_written(noise(1, 3 * kChunk));
  EXPECT_EQ(sample.figures().as_cut, 3u * kChunk);
}

}  // namespace
}  // namespace dedup::plan
