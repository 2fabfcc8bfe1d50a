// Little-endian encoding of numbers, ids and byte strings, for on-disk formats and messages.
//
// Decoder never reads past its input: the first short or impossible field makes it fail for good
// (ok() is false and every later value is zero), so that a reader checks once, at the end. Every
// length read from the input is checked against what is left before anything is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/types.h"

namespace dedup {

class Encoder {
 public:
  template <typename T>
  requires std::unsigned_integral<T>
  void put(T value) {
    std::array<std::byte, sizeof(T)> bytes;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
    }
    put_raw(bytes.data(), bytes.size());
  }
  void put(const Id128& id) { put_raw(id.bytes.data(), id.bytes.size()); }
  void put(const Fingerprint& f) { put_raw(f.bytes.data(), f.bytes.size()); }
  // A 32-bit length, then the bytes.
  void put(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    put_raw(text.data(), text.size());
  }
  void put_bytes(std::span<const std::byte> bytes) {
    put(static_cast<std::uint32_t>(bytes.size()));
    put_raw(bytes.data(), bytes.size());
  }
  // A 16-bit count, then 16-bit node indexes.
  void put(const NodeSet& nodes) {
    put(static_cast<std::uint16_t>(nodes.size()));
    for (NodeIndex n : nodes) put(n);
  }
  void put_raw(const void* data, std::size_t size) {
    const auto* p = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), p, p + size);
  }

  // Room for so many bytes more, at once. Many of these one after the other cost no more than
  // without: room at least doubles.
  void make_room(std::size_t more) {
    if (out_.capacity() - out_.size() >= more) return;
    out_.reserve(std::max(out_.size() + more, 2 * out_.capacity()));
  }

  std::size_t size() const { return out_.size(); }
  const Bytes& bytes() const { return out_; }
  Bytes& bytes() { return out_; }
  Bytes take() { return std::move(out_); }

 private:
  Bytes out_;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> in) : in_(in) {}

  template <typename T>
  requires std::unsigned_integral<T> T get() {
    T value = 0;
    if (!has(sizeof(T))) return value;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(std::to_integer<std::uint8_t>(in_[at_ + i]))
                                         << (8 * i));
    }
    at_ += sizeof(T);
    return value;
  }
  Id128 get_id() {
    Id128 id;
    get_raw(id.bytes.data(), id.bytes.size());
    return id;
  }
  Fingerprint get_fingerprint() {
    Fingerprint f;
    get_raw(f.bytes.data(), f.bytes.size());
    return f;
  }
  std::string get_string() {
    const auto view = get_bytes();
    return {reinterpret_cast<const char*>(view.data()), view.size()};
  }
  // A view into the input: valid as long as the input is.
  std::span<const std::byte> get_bytes() {
    const auto size = get<std::uint32_t>();
    if (!has(size)) return {};
    const auto view = in_.subspan(at_, size);
    at_ += size;
    return view;
  }
  NodeSet get_nodes() {
    const auto count = get<std::uint16_t>();
    NodeSet nodes;
    if (!has(count * sizeof(NodeIndex))) return nodes;
    nodes.reserve(count);
    for (unsigned i = 0; i < count; ++i) nodes.push_back(get<NodeIndex>());
    return nodes;
  }
  // A 32-bit count of items that take at least `item_size` bytes each; fails if they cannot fit.
  std::uint32_t get_count(std::size_t item_size) {
    const auto count = get<std::uint32_t>();
    if (!has(static_cast<std::size_t>(count) * item_size)) return 0;
    return count;
  }
  // For how many of `count` items memory may be reserved before they are decoded: as many as there
  // can be of `size` bytes each in what is left.
  std::size_t room_for(std::size_t count, std::size_t size) const {
    return std::min(count, left() / size);
  }
  void get_raw(void* data, std::size_t size) {
    if (!has(size)) {
      std::memset(data, 0, size);
      return;
    }
    std::memcpy(data, in_.data() + at_, size);
    at_ += size;
  }

  void fail() { ok_ = false; }
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == in_.size(); }
  std::size_t position() const { return at_; }
  std::size_t left() const { return in_.size() - at_; }

 private:
  bool has(std::size_t size) {
    if (!ok_ || size > in_.size() - at_) {
      ok_ = false;
      return false;
    }
    return true;
  }

  std::span<const std::byte> in_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace dedup
