#include "plan/cut.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/piece.h"

namespace dedup::plan {
namespace {

// A vector register's bytes: from there on a chunk is compared with itself.
constexpr std::size_t kStep = 64;

}  // namespace

// Zeros at the start, and each byte is what the one kStep before it is: so the C library compares,
// with the widest instructions that the processor has.
bool all_zero(std::span<const std::byte> bytes) {
  static constexpr std::byte kZeros[kStep] = {};
  if (bytes.empty()) return true;
  const std::size_t start = std::min(bytes.size(), kStep);
  if (std::memcmp(bytes.data(), kZeros, start) != 0) return false;
  return std::memcmp(bytes.data(), bytes.data() + start, bytes.size() - start) == 0;
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
