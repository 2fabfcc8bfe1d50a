#include "plan/domains.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace dedup::plan {
namespace {

constexpr std::uint64_t kBits = 64;
constexpr std::uint64_t kLongestNumber = 10;

std::uint64_t number_size(std::uint64_t value) {
  return (static_cast<std::uint64_t>(std::bit_width(value | 1)) + 6) / 7;
}

std::byte* put_number(std::byte* out, std::uint64_t value) {
  while (value >= 128) {
    *out++ = static_cast<std::byte>(value | 128);
    value >>= 7;
  }
  *out++ = static_cast<std::byte>(value);
  return out;
}

// False if `in` ends within the number or it has more than 64 bits.
bool get_number(std::span<const std::byte>& in, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < in.size() && i < kLongestNumber; ++i) {
    const auto digit = std::to_integer<std::uint64_t>(in[i]);
    if (i + 1 == kLongestNumber && digit > 1) return false;
    value |= (digit & 127) << (7 * i);
    if (digit < 128) {
      in = in.subspan(i + 1);
      return true;
    }
  }
  return false;
}

std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) {
  return value - value % unit;
}

}  // namespace

Reach look_ahead(FragmentCursor cursor, std::uint64_t budget, std::uint64_t span) {
  Reach reach;
  if (cursor.current().length == 0) return reach;
  reach.next = cursor.current().file_offset;
  const std::uint64_t stop = reach.next + std::min(span, kNoOffset - reach.next);
  // Where in the window the first piece is, is not known yet.
  std::uint64_t used = kLongestNumber;
  reach.end = reach.next;
  while (true) {
    const Fragment& f = cursor.current();
    if (f.length == 0 || f.file_offset < reach.end || f.file_offset >= stop) return reach;
    const std::uint64_t bytes = std::min(f.length, stop - f.file_offset);
    used += number_size(f.file_offset - reach.end) + number_size(bytes);
    const std::uint64_t room = used < budget ? budget - used : 0;
    if (bytes > room) {
      reach.limit = f.file_offset + room;
      reach.end = room == 0 ? reach.end : reach.limit;
      return reach;
    }
    used += bytes;
    reach.end = f.file_offset + bytes;
    cursor.consume(bytes);
  }
}

Domains Domains::agree(const Reach& all, unsigned ranks, std::uint32_t chunk_size,
                       std::uint64_t largest) {
  Domains d;
  d.begin_ = all.next;
  d.origin_ = round_down(all.next, chunk_size);
  d.end_ = std::min({all.limit, all.end, d.origin_ + ranks * largest});
  // A chunk that the window's end would cut waits for the next window.
  if (d.end_ < all.end) d.end_ = std::max(round_down(d.end_, chunk_size), d.begin_);
  if (d.end_ == d.begin_) d.end_ = std::min(all.limit, all.end);
  const std::uint64_t chunks = (d.end_ - d.origin_ + chunk_size - 1) / chunk_size;
  d.size_ = (chunks + ranks - 1) / ranks * chunk_size;
  return d;
}

ByteRange Domains::domain(unsigned rank) const {
  const std::uint64_t first = std::max(begin_, origin_ + rank * size_);
  const std::uint64_t last = std::min(end_, origin_ + (rank + std::uint64_t{1}) * size_);
  return first < last ? ByteRange{first, last - first} : ByteRange{end_, 0};
}

unsigned Domains::owner(std::uint64_t offset) const {
  return static_cast<unsigned>((offset - origin_) / size_);
}

void pack(FragmentCursor& cursor, const Domains& domains, std::span<std::byte> out,
          std::vector<std::uint32_t>& sizes) {
  std::fill(sizes.begin(), sizes.end(), 0);
  std::byte* at = out.data();
  std::uint64_t end = domains.begin();  // of the piece before
  ByteRange domain;
  unsigned owner = 0;
  while (true) {
    const Fragment& f = cursor.current();
    // What goes back in the file is left for a later window.
    if (f.length == 0 || f.file_offset < end || f.file_offset >= domains.end()) return;
    if (f.file_offset >= domain.end()) {
      owner = domains.owner(f.file_offset);
      domain = domains.domain(owner);
      end = domain.offset;
    }
    const std::uint64_t bytes = std::min(f.length, domain.end() - f.file_offset);
    std::byte* const start = at;
    at = put_number(at, f.file_offset - end);
    at = put_number(at, bytes);
    std::memcpy(at, f.memory, bytes);
    at += bytes;
    sizes[owner] += static_cast<std::uint32_t>(at - start);
    end = f.file_offset + bytes;
    cursor.consume(bytes);
  }
}

DomainBuffer::DomainBuffer(std::uint64_t largest)
    : data_(new (std::nothrow) std::byte[largest]),
      written_(new (std::nothrow) std::uint64_t[largest / kBits + 1]) {}

void DomainBuffer::reset(const ByteRange& domain) {
  domain_ = domain;
  at_ = 0;
  std::fill_n(written_.get(), domain.length / kBits + 1, 0);
}

bool DomainBuffer::merge(std::span<const std::byte> message) {
  std::uint64_t at = 0;
  while (!message.empty()) {
    std::uint64_t gap;
    std::uint64_t length;
    if (!get_number(message, gap) || !get_number(message, length)) return false;
    if (gap > domain_.length - at || length > domain_.length - at - gap) return false;
    if (length > message.size()) return false;
    at += gap;
    std::memcpy(data_.get() + at, message.data(), length);
    mark(at, at + length);
    at += length;
    message = message.subspan(length);
  }
  return true;
}

void DomainBuffer::mark(std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  if (begin == end) return;
  const std::uint64_t first = begin / kBits;
  const std::uint64_t last = (end - 1) / kBits;
  const std::uint64_t head = kAll << (begin % kBits);
  const std::uint64_t tail = kAll >> (kBits - 1 - (end - 1) % kBits);
  if (first == last) {
    written_[first] |= head & tail;
    return;
  }
  written_[first] |= head;
  std::fill(written_.get() + first + 1, written_.get() + last, kAll);
  written_[last] |= tail;
}

std::uint64_t DomainBuffer::find(std::uint64_t from, bool value) const {
  while (from < domain_.length) {
    const std::uint64_t word = value ? written_[from / kBits] : ~written_[from / kBits];
    const std::uint64_t rest = word >> (from % kBits);
    if (rest != 0) {
      return std::min(domain_.length, from + static_cast<std::uint64_t>(std::countr_zero(rest)));
    }
    from = (from / kBits + 1) * kBits;
  }
  return domain_.length;
}

MemoryRun DomainBuffer::next_run() {
  const std::uint64_t begin = find(at_, true);
  at_ = find(begin, false);
  return {domain_.offset + begin, data_.get() + begin, at_ - begin};
}

}  // namespace dedup::plan
