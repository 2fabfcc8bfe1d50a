#include "plan/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/hasher.h"
#include "plan/cut.h"

namespace dedup::plan {
namespace {

constexpr std::size_t kValues = 256;
constexpr std::size_t kLeastForEntropy = 256;  // bytes: of fewer it says little
constexpr double kBitsBelowRandom = 0.1;

// SplitMix64: the same numbers everywhere.
std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

// Random bytes have that much entropy on average, less than 8 bits as there are only so many.
double entropy_of_random(std::size_t bytes) {
  return 8 - (kValues - 1) / (2 * std::numbers::ln2 * static_cast<double>(bytes));
}

bool is_dense(std::span<const std::byte> chunk) {
  return chunk.size() >= kLeastForEntropy &&
         entropy(chunk) >= entropy_of_random(chunk.size()) - kBitsBelowRandom;
}

}  // namespace

SampleFigures& SampleFigures::operator+=(const SampleFigures& other) {
  blocks += other.blocks;
  bytes += other.bytes;
  as_cut += other.as_cut;
  in_halves += other.in_halves;
  anywhere += other.anywhere;
  dense += other.dense;
  return *this;
}

bool is_sampled(std::uint64_t number, std::uint64_t blocks) {
  return blocks <= kSampledBlocks || mixed(number) % blocks < kSampledBlocks;
}

double entropy(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, kValues> counts{};
  for (const std::byte byte : bytes) ++counts[std::to_integer<std::size_t>(byte)];
  double bits = 0;
  for (const std::uint64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(bytes.size());
    bits -= share * std::log2(share);
  }
  return bits;
}

std::uint64_t Sample::Seen::found(std::span<const std::byte> bytes) {
  return all_zero(bytes) || !hashes_.insert(fast_hash(bytes).low).second ? bytes.size() : 0;
}

Sample::Sample(std::uint32_t chunk_size) : chunk_size_(chunk_size) {
  for (std::size_t i = 0; i < gear_.size(); ++i) gear_[i] = mixed(i);
}

void Sample::add(const Block& block, std::span<const std::byte> content) {
  ++figures_.blocks;
  std::size_t begin = 0;
  std::size_t end = 0;
  for (const Piece& piece : block.pieces) {
    if (piece.is_zero()) continue;
    add_chunk(content.subspan(piece.begin, piece.length));
    if (piece.begin != end) {
      add_run(content.subspan(begin, end - begin));
      begin = piece.begin;
    }
    end = piece.end();
  }
  add_run(content.subspan(begin, end - begin));
}

void Sample::add_written(std::span<const std::byte> piece) {
  std::size_t begin = 0;
  ChunkCutter cutter(piece, chunk_size_);
  for (Cut cut = cutter.next(); cut.length > 0; cut = cutter.next()) {
    if (!cut.zero) {
      add_chunk(piece.subspan(cut.offset, cut.length));
      continue;
    }
    add_run(piece.subspan(begin, cut.offset - begin));
    begin = cut.offset + cut.length;
  }
  add_run(piece.subspan(begin));
}

void Sample::add_chunk(std::span<const std::byte> chunk) {
  figures_.bytes += chunk.size();
  figures_.as_cut += as_cut_.found(chunk);
  if (is_dense(chunk)) figures_.dense += chunk.size();
  const std::size_t half = chunk_size_ / 2;
  if (half < kMinChunkSize) return;
  const std::size_t first = std::min(half, chunk.size());
  figures_.in_halves += in_halves_.found(chunk.first(first));
  if (first < chunk.size()) figures_.in_halves += in_halves_.found(chunk.subspan(first));
}

void Sample::add_run(std::span<const std::byte> run) {
  while (!run.empty()) {
    const std::size_t length = cut(run);
    figures_.anywhere += anywhere_.found(run.first(length));
    run = run.subspan(length);
  }
}

// A chunk ends where a hash of the 64 bytes before has so many zeros that this happens every
// chunk_size bytes on average, and at four times that at most. Equal content has the same ends,
// soon after it begins.
std::size_t Sample::cut(std::span<const std::byte> rest) const {
  const auto zeros = static_cast<unsigned>(std::bit_width(chunk_size_) - 1);
  const std::size_t most = std::min<std::size_t>(rest.size(), std::size_t{4} * chunk_size_);
  const std::size_t least = std::min<std::size_t>(most, chunk_size_ / 4);
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < most; ++i) {
    hash = (hash << 1) + gear_[std::to_integer<std::size_t>(rest[i])];
    if (i + 1 >= least && (hash >> (64 - zeros)) == 0) return i + 1;
  }
  return most;
}

}  // namespace dedup::plan
