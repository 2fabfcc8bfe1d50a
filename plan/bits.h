// Numbers in as few bits as they need, for messages of many: bits one after the other, the lowest
// first, and ascending numbers as what each is more than the one before it.
//
// BitReader never reads past its input: the first field that is not there makes it fail for good
// (ok() is false and every later value is zero).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/types.h"

namespace dedup::plan {

class BitWriter {
 public:
  // `value` is below 2^bits; at most 64 bits.
  void put(std::uint64_t value, unsigned bits) {
    word_ |= value << filled_;
    filled_ += bits;
    if (filled_ < 64) return;
    append();
    filled_ -= 64;
    word_ = filled_ == 0 ? 0 : value >> (bits - filled_);
  }
  // A number above 0, in twice as many bits as it has (Elias' gamma code), less one.
  void put_count(std::uint64_t value) {
    const auto bits = static_cast<unsigned>(std::bit_width(value));
    put(std::uint64_t{1} << (bits - 1), bits);
    put(value & ~(std::uint64_t{1} << (bits - 1)), bits - 1);
  }
  // For so many, at once.
  void reserve(std::size_t bytes) { out_.resize(std::max(out_.size(), bytes)); }
  // All that was put since it was made or since the last call; valid until the next one.
  std::span<const std::byte> finish() {
    fill_byte();
    return std::span(out_).first(std::exchange(at_, 0));
  }

  // In whole bytes: what is put between these two calls, after its size as a varint. Between frames
  // nothing is put.
  void begin_frame() {
    frame_ = at_;
    put(0, 8);  // of the size; nearly always enough
    fill_byte();
  }
  void end_frame();
  // The same as finish(), to keep.
  Bytes take() {
    fill_byte();
    out_.resize(std::exchange(at_, 0));
    return std::exchange(out_, {});
  }

 private:
  void fill_byte() {
    append();
    at_ -= sizeof word_ - (filled_ + 7) / 8;
    word_ = filled_ = 0;
  }
  void append() {
    static_assert(std::endian::native == std::endian::little);
    if (out_.size() - at_ < sizeof word_) out_.resize(2 * out_.size() + sizeof word_);
    std::memcpy(out_.data() + at_, &word_, sizeof word_);
    at_ += sizeof word_;
  }

  Bytes out_;              // longer than what is in it
  std::size_t at_ = 0;     // where that ends
  std::size_t frame_ = 0;  // where the last one begins
  std::uint64_t word_ = 0;
  unsigned filled_ = 0;  // bits of word_, below 64
};

inline void BitWriter::end_frame() {
  fill_byte();
  std::size_t size = at_ - frame_ - 1;
  const std::size_t more = (static_cast<std::size_t>(std::bit_width(size | 1)) + 6) / 7 - 1;
  if (more != 0) {
    if (out_.size() - at_ < more) out_.resize(2 * out_.size());
    std::memmove(out_.data() + frame_ + 1 + more, out_.data() + frame_ + 1, size);
    at_ += more;
  }
  std::size_t at = frame_;
  for (; size >= 0x80; size >>= 7) out_[at++] = static_cast<std::byte>(size | 0x80);
  out_[at] = static_cast<std::byte>(size);
}

class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> in) : in_(in) {}

  // At most 64 bits.
  std::uint64_t get(unsigned bits) {
    if (bits <= kPeeked) return get_peeked(bits);
    const std::uint64_t low = get_peeked(32);
    return low | get_peeked(bits - 32) << 32;
  }
  std::uint64_t get_count() {
    const auto zeros = static_cast<unsigned>(std::countr_zero(peek()));
    if (zeros >= kPeeked / 2) ok_ = false;
    if (!ok_ || !take(zeros + 1)) return 0;
    return std::uint64_t{1} << zeros | get(zeros);
  }
  // How many ones come before the next zero, which is taken, too. `most` of them, at most 32, end
  // without one.
  unsigned get_ones(unsigned most) {
    const auto ones = static_cast<unsigned>(std::countr_one(peek()));
    if (ones >= most) return take(most) ? most : 0;
    return take(ones + 1) ? ones : 0;
  }
  // The same, of items of `bits` bits each, at least: fails if they cannot be there.
  std::size_t get_items(unsigned bits) {
    const std::uint64_t count = get_count();
    if (count * bits > left()) ok_ = false;
    return ok_ ? static_cast<std::size_t>(count) : 0;
  }

  void fail() { ok_ = false; }
  bool ok() const { return ok_; }
  // Whether nothing is left but what fills the last byte.
  bool at_end() const { return left() < 8; }

 private:
  static constexpr unsigned kPeeked = 57;  // that one look shows, at least

  std::size_t left() const { return 8 * in_.size() - at_; }
  std::uint64_t get_peeked(unsigned bits) {
    const std::uint64_t value = peek() & ((std::uint64_t{1} << bits) - 1);
    return take(bits) ? value : 0;
  }
  std::uint64_t peek() const {
    std::uint64_t word = 0;
    const std::size_t byte = at_ / 8;
    if (byte + sizeof word <= in_.size()) {
      std::memcpy(&word, in_.data() + byte, sizeof word);
      return word >> at_ % 8;
    }
    if (byte >= in_.size()) return 0;
    if (in_.size() < sizeof word) {
      std::memcpy(&word, in_.data(), in_.size());
      return word >> at_;
    }
    // The last ones: what is behind them is shifted out.
    std::memcpy(&word, in_.data() + in_.size() - sizeof word, sizeof word);
    return word >> (at_ - 8 * (in_.size() - sizeof word));
  }
  bool take(unsigned bits) {
    if (!ok_ || bits > left()) {
      ok_ = false;
      return false;
    }
    at_ += bits;
    return true;
  }

  std::span<const std::byte> in_;
  std::size_t at_ = 0;  // in bits
  bool ok_ = true;
};

// Ascending numbers, of which the differences are coded (R. F. Rice, 1979; Golomb's code for powers
// of two): the best there is where numbers are spread evenly, as hashes are. `count` of them in a
// range of `span` take log2(span / count) + 1.5 bits each. Any others are coded as well, in at most
// 96 bits each.
class Gaps {
 public:
  // `from`: none of the numbers is below it.
  Gaps(std::uint64_t from, std::uint64_t span, std::size_t count) : before_(from) {
    const std::uint64_t mean = count == 0 ? 0 : span / count;
    // The mean times ln 2, rounded to a power of two.
    const std::uint64_t half = mean / 10 * 7 + mean % 10 * 7 / 10;
    low_bits_ = half == 0 ? 0 : static_cast<unsigned>(std::bit_width(half)) - 1;
  }

  void put(BitWriter& out, std::uint64_t number) {
    const std::uint64_t gap = number - before_;
    before_ = number;
    const std::uint64_t high = gap >> low_bits_;
    if (high >= kMostOnes) {
      out.put(kOnes, kMostOnes);
      out.put(gap, 64);
      return;
    }
    out.put((std::uint64_t{1} << high) - 1, static_cast<unsigned>(high) + 1);
    out.put(gap & ((std::uint64_t{1} << low_bits_) - 1), low_bits_);
  }
  std::uint64_t get(BitReader& in) {
    const unsigned high = in.get_ones(kMostOnes);
    const std::uint64_t gap =
        high == kMostOnes ? in.get(64) : (std::uint64_t{high} << low_bits_) + in.get(low_bits_);
    if (gap > ~std::uint64_t{0} - before_) in.fail();
    before_ += gap;
    return before_;
  }

 private:
  static constexpr unsigned kMostOnes = 32;
  static constexpr std::uint64_t kOnes = (std::uint64_t{1} << kMostOnes) - 1;

  std::uint64_t before_;
  unsigned low_bits_ = 0;
};

}  // namespace dedup::plan
