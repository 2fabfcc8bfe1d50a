#include "plan/cut.h"

#include <algorithm>
#include <bit>

#include "base/piece.h"

namespace dedup::plan {
namespace {

constexpr std::size_t kStep = 64;

// One bit pattern of 64 bytes: the compiler makes vector instructions of it.
std::uint64_t any_bit(const std::byte* p) {
  std::uint64_t words[kStep / sizeof(std::uint64_t)];
  std::memcpy(words, p, kStep);
  std::uint64_t bits = 0;
  for (const std::uint64_t word : words) bits |= word;
  return bits;
}

}  // namespace

bool all_zero(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  for (; at + kStep <= bytes.size(); at += kStep) {
    if (any_bit(bytes.data() + at) != 0) return false;
  }
  for (; at < bytes.size(); ++at) {
    if (bytes[at] != std::byte{0}) return false;
  }
  return true;
}

std::span<const std::byte> ChunkCutter::at(std::uint64_t offset) const {
  return data_.subspan(offset, std::min<std::uint64_t>(chunk_size_, data_.size() - offset));
}

Cut ChunkCutter::next() {
  Cut cut{next_, 0, false};
  if (next_ == data_.size()) return cut;
  while (!known_not_zero_ && next_ < data_.size()) {
    const auto chunk = at(next_);
    if (cut.length + chunk.size() > kBlockSpan) return cut;
    if (!all_zero(chunk)) {
      known_not_zero_ = true;
      break;
    }
    cut.zero = true;
    cut.length += static_cast<std::uint32_t>(chunk.size());
    next_ += chunk.size();
  }
  if (cut.length > 0) return cut;
  known_not_zero_ = false;
  cut.length = static_cast<std::uint32_t>(at(next_).size());
  next_ += cut.length;
  return cut;
}

void FingerprintTable::reset(std::size_t items) {
  const std::size_t slots = std::bit_ceil(items + items / 3 + 2);
  slots_.assign(slots, kEmpty);
  mask_ = slots - 1;
}

}  // namespace dedup::plan
