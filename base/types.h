// The small value types that every room shares.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dedup {

using Bytes = std::vector<std::byte>;

// From the kernel: a library's own generator takes half a millisecond of each process to start. At
// most 256 bytes. Ends the process if there are none: with numbers that can be guessed or come
// again two files could get one identity and overwrite each other's data.
void fill_randomly(std::span<std::uint8_t> out);

// A node's position in the job's node table (0 … nodes − 1, the same on all ranks), or, above
// those, in a file's table of stores (see service/messages/file_info.h, FileInfo::stores).
using NodeIndex = std::uint16_t;
inline constexpr NodeIndex kNoNode = 0xffff;

// A random 128-bit number: identity of a file, attempt id of a generation, UUID of a store, id of a
// handle. Zero means "none".
struct Id128 {
  std::array<std::uint8_t, 16> bytes{};

  static Id128 random();  // fill_randomly()
  bool is_zero() const { return *this == Id128{}; }
  std::string hex() const;  // 32 lower-case hexadecimal digits
  static bool parse(const std::string& hex, Id128& out);
  auto operator<=>(const Id128&) const = default;
};

// What a chunk is called, 32 bytes: a hash of it and what goes with that, or, in mode `none`, a
// number that no other chunk has (base/hasher.h, NameKind). Equal fingerprints are taken as equal
// content.
struct Fingerprint {
  std::array<std::uint8_t, 32> bytes{};

  std::string hex() const;
  // The first eight bytes as a number: a hash of the hash, for tables and for dealing.
  std::uint64_t prefix() const {
    std::uint64_t value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  // The same bytes as a number that is ordered as they are.
  std::uint64_t leading() const { return __builtin_bswap64(prefix()); }
  bool operator==(const Fingerprint&) const = default;
  // As the bytes are ordered. The first eight nearly always tell.
  std::strong_ordering operator<=>(const Fingerprint& other) const {
    const std::uint64_t mine = leading();
    const std::uint64_t theirs = other.leading();
    if (mine != theirs) return mine <=> theirs;
    return std::memcmp(bytes.data() + 8, other.bytes.data() + 8, bytes.size() - 8) <=> 0;
  }
};

// 128 bits of which the low half is a chunk's checksum (base/hasher.h). Proves nothing.
struct FastHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  auto operator<=>(const FastHash&) const = default;
};

// Nodes that hold a chunk: sorted ascending, no duplicates.
using NodeSet = std::vector<NodeIndex>;

// A half-open range of file bytes.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t end() const { return offset + length; }
  auto operator<=>(const ByteRange&) const = default;
};

// Lower-case hexadecimal digits of `size` bytes.
std::string hex_string(const void* data, std::size_t size);

}  // namespace dedup

template <>
struct std::hash<dedup::Fingerprint> {
  std::size_t operator()(const dedup::Fingerprint& f) const noexcept { return f.prefix(); }
};
template <>
struct std::hash<dedup::Id128> {
  std::size_t operator()(const dedup::Id128& id) const noexcept {
    std::uint64_t value;
    std::memcpy(&value, id.bytes.data(), sizeof value);
    return value;
  }
};
