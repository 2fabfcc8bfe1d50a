// Structs as bytes, for messages: what a struct consists of is taken from its declaration, so that
// each field is written there alone, in the order in which it is sent.
//
//   bool, enums            one number, as large as its type; of an enum, at most last_of(), which
//                          stands beside it: constexpr E last_of(E)
//   unsigned numbers       little-endian
//   Id128, Fingerprint,    as they are
//   arrays of bytes
//   strings, Bytes         a 32-bit length, then the bytes
//   NodeIndexes in a       a 16-bit count, then the nodes; in any order: that a NodeSet ascends is
//   vector                 for possible() to say
//   std::vector<uint8_t>   flags, each 0 or 1: a 32-bit count, then a byte each
//   std::vector            a 32-bit count, then the items
//   std::set               the same, ascending
//   std::pair              one, then the other
//   std::optional          a bool, then the value if there is one
//   what has encode(Encoder&) const and static decode(Decoder&): what these make of it
//   other aggregates       their fields, one after the other. If one has `bool possible() const`,
//                          what was decoded must be so.
//
// The room for what something is encoded as is made at once, but for what encodes itself and does
// not say how large it is, at most, by `std::size_t encoded_size() const`.
//
// Decoding takes untrusted bytes: whatever cannot be fails the Decoder, and a count is compared
// with what is left, at the least size of an item, before anything is allocated. Nor does a count
// alone allocate more than twice as much memory as there are bytes left: what items take beyond
// that grows as they are decoded. A struct has at most 19 fields, no base, no C array.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/types.h"

namespace dedup {

// ---- The fields of an aggregate ---------------------------------------------------------------

namespace fields {

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <typename T>
inline constexpr bool is_vector = false;
template <typename T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <typename T>
inline constexpr bool is_set = false;
template <typename T>
inline constexpr bool is_set<std::set<T>> = true;
template <typename T>
inline constexpr bool is_pair = false;
template <typename A, typename B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
// Byte for byte in memory what is sent.
template <typename T>
inline constexpr bool is_raw = std::is_same_v<T, Id128> || std::is_same_v<T, Fingerprint>;
template <std::size_t N>
inline constexpr bool is_raw<std::array<std::uint8_t, N>> = true;

template <typename T>
concept EncodesItself = requires(const T& value, Encoder& e) {
  value.encode(e);
};
template <typename T>
concept DecodesItself = requires(Decoder& d) {
  { T::decode(d) } -> std::same_as<T>;
};

// Stands for any field's initialiser. Never made: used in unevaluated expressions only.
struct Anything {
  template <typename T>
  requires(!is_optional<T>) operator T() const { __builtin_unreachable(); }
};

template <typename T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires {
    T{(static_cast<void>(I), Anything{})...};
  };
}

// How many fields T has: as many as it can be initialised with. A wrong number does not compile in
// fields_of().
template <typename T, std::size_t N = 19>
constexpr std::size_t count() {
  if constexpr (N == 0 || takes<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return count<T, N - 1>();
  }
}

}  // namespace fields

// References to the fields of an aggregate, in order, as a tuple.
template <typename T>
constexpr auto fields_of(T& m) {
  constexpr std::size_t kCount = fields::count<std::remove_const_t<T>>();
  if constexpr (kCount == 0) {
    return std::tie();
  } else if constexpr (kCount == 1) {
    auto& [a] = m;
    return std::tie(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = m;
    return std::tie(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = m;
    return std::tie(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = m;
    return std::tie(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = m;
    return std::tie(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = m;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = m;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = m;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = m;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (kCount == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (kCount == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (kCount == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, n] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n);
  } else if constexpr (kCount == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, n, o] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n, o);
  } else if constexpr (kCount == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, n, o, p] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p);
  } else if constexpr (kCount == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q);
  } else if constexpr (kCount == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r);
  } else if constexpr (kCount == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s, t] = m;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s, t);
  }
}

// The fewest bytes that a T is encoded as.
template <typename T>
constexpr std::size_t least_encoded_size() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || fields::is_raw<T>) {
    return sizeof(T);
  } else if constexpr (std::is_same_v<T, NodeSet>) {
    return sizeof(std::uint16_t);
  } else if constexpr (std::is_same_v<T, std::string> || fields::is_vector<T> ||
                       fields::is_set<T>) {
    return sizeof(std::uint32_t);
  } else if constexpr (fields::is_pair<T>) {
    return least_encoded_size<typename T::first_type>() +
           least_encoded_size<typename T::second_type>();
  } else if constexpr (fields::is_optional<T> || fields::DecodesItself<T>) {
    return 1;
  } else {
    return []<typename... Field>(std::type_identity<std::tuple<Field&...>>) {
      return (std::size_t{0} + ... + least_encoded_size<Field>());
    }(std::type_identity<decltype(fields_of(std::declval<T&>()))>());
  }
}

// Whether all Ts are encoded as equally many bytes.
template <typename T>
constexpr bool has_one_encoded_size() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || fields::is_raw<T>) {
    return true;
  } else if constexpr (std::is_same_v<T, std::string> || fields::is_vector<T> ||
                       fields::is_set<T> || fields::is_pair<T> || fields::is_optional<T> ||
                       fields::EncodesItself<T>) {
    return false;
  } else {
    return []<typename... Field>(std::type_identity<std::tuple<Field&...>>) {
      return (has_one_encoded_size<Field>() && ...);
    }(std::type_identity<decltype(fields_of(std::declval<T&>()))>());
  }
}

// ---- Encoding ---------------------------------------------------------------------------------

// The bytes that it is encoded as, at most; fewer where something does not say how large it is.
template <typename T>
std::size_t encoded_size(const T& value) {
  if constexpr (has_one_encoded_size<T>()) {
    return least_encoded_size<T>();
  } else if constexpr (std::is_same_v<T, NodeSet>) {
    return sizeof(std::uint16_t) + value.size() * sizeof(NodeIndex);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return sizeof(std::uint32_t) + value.size();
  } else if constexpr (fields::is_vector<T> || fields::is_set<T>) {
    using Item = typename T::value_type;
    if constexpr (has_one_encoded_size<Item>()) {
      return sizeof(std::uint32_t) + value.size() * least_encoded_size<Item>();
    } else {
      std::size_t bytes = sizeof(std::uint32_t);
      for (const auto& item : value) bytes += encoded_size(item);
      return bytes;
    }
  } else if constexpr (fields::is_pair<T>) {
    return encoded_size(value.first) + encoded_size(value.second);
  } else if constexpr (fields::is_optional<T>) {
    return 1 + (value ? encoded_size(*value) : 0);
  } else if constexpr (requires { value.encoded_size(); }) {
    return value.encoded_size();
  } else if constexpr (fields::EncodesItself<T>) {
    return 0;
  } else {
    return std::apply(
        [](const auto&... field) { return (std::size_t{0} + ... + encoded_size(field)); },
        fields_of(value));
  }
}

template <typename T>
void put_fields(Encoder& e, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    e.put(static_cast<std::uint8_t>(value));
  } else if constexpr (std::is_enum_v<T>) {
    e.put(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::unsigned_integral<T> || std::is_same_v<T, NodeSet>) {
    e.put(value);
  } else if constexpr (fields::is_raw<T>) {
    e.put_raw(&value, sizeof value);
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Bytes> ||
                       std::is_same_v<T, std::vector<std::uint8_t>>) {
    e.put_bytes(std::as_bytes(std::span(value)));
  } else if constexpr (fields::is_vector<T>) {
    e.put(static_cast<std::uint32_t>(value.size()));
    if constexpr (fields::is_raw<typename T::value_type>) {
      e.put_raw(value.data(), std::span(value).size_bytes());
    } else {
      for (const auto& item : value) put_fields(e, item);
    }
  } else if constexpr (fields::is_set<T>) {
    e.put(static_cast<std::uint32_t>(value.size()));
    for (const auto& item : value) put_fields(e, item);
  } else if constexpr (fields::is_pair<T>) {
    put_fields(e, value.first);
    put_fields(e, value.second);
  } else if constexpr (fields::is_optional<T>) {
    put_fields(e, value.has_value());
    if (value) put_fields(e, *value);
  } else if constexpr (fields::EncodesItself<T>) {
    value.encode(e);
  } else {
    std::apply([&e](const auto&... field) { (put_fields(e, field), ...); }, fields_of(value));
  }
}

template <typename T>
Bytes encoded(const T& value) {
  Encoder e;
  e.make_room(encoded_size(value));
  put_fields(e, value);
  return e.take();
}

// ---- Decoding ---------------------------------------------------------------------------------

// `value` must be as a new one; it means nothing if the Decoder fails.
template <typename T>
void get_fields(Decoder& d, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    const auto byte = d.get<std::uint8_t>();
    if (byte > 1) d.fail();
    value = byte == 1;
  } else if constexpr (std::is_enum_v<T>) {
    const auto number = d.get<std::underlying_type_t<T>>();
    if (number > static_cast<std::underlying_type_t<T>>(last_of(T{}))) {
      d.fail();
    } else {
      value = static_cast<T>(number);
    }
  } else if constexpr (std::unsigned_integral<T>) {
    value = d.get<T>();
  } else if constexpr (fields::is_raw<T>) {
    d.get_raw(&value, sizeof value);
  } else if constexpr (std::is_same_v<T, NodeSet>) {
    value = d.get_nodes();
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = d.get_string();
  } else if constexpr (std::is_same_v<T, Bytes>) {
    const auto view = d.get_bytes();
    value.assign(view.begin(), view.end());
  } else if constexpr (std::is_same_v<T, std::vector<std::uint8_t>>) {
    value.resize(d.get_count(1));
    if (!value.empty()) d.get_raw(value.data(), value.size());
    if (std::any_of(value.begin(), value.end(), [](std::uint8_t flag) { return flag > 1; })) {
      d.fail();
    }
  } else if constexpr (fields::is_vector<T>) {
    using Item = typename T::value_type;
    static_assert(least_encoded_size<Item>() > 0);
    const std::uint32_t count = d.get_count(least_encoded_size<Item>());
    if constexpr (fields::is_raw<Item>) {
      value.resize(count);
      if (!value.empty()) d.get_raw(value.data(), std::span(value).size_bytes());
    } else {
      // Mostly all of them: moving many once more would cost as much as decoding them.
      value.reserve(d.room_for(count, (sizeof(Item) + 1) / 2));
      for (std::uint32_t i = 0; i < count && d.ok(); ++i) get_fields(d, value.emplace_back());
    }
  } else if constexpr (fields::is_set<T>) {
    const std::uint32_t count = d.get_count(least_encoded_size<typename T::value_type>());
    for (std::uint32_t i = 0; i < count && d.ok(); ++i) {
      typename T::value_type item{};
      get_fields(d, item);
      if (!value.empty() && !(*value.rbegin() < item)) d.fail();
      value.insert(value.end(), std::move(item));
    }
  } else if constexpr (fields::is_pair<T>) {
    get_fields(d, value.first);
    get_fields(d, value.second);
  } else if constexpr (fields::is_optional<T>) {
    bool is_there = false;
    get_fields(d, is_there);
    if (is_there) get_fields(d, value.emplace());
  } else if constexpr (fields::DecodesItself<T>) {
    value = T::decode(d);
  } else {
    std::apply([&d](auto&... field) { (get_fields(d, field), ...); }, fields_of(value));
    if constexpr (requires { value.possible(); }) {
      if (d.ok() && !value.possible()) d.fail();
    }
  }
}

template <typename T>
T get_fields(Decoder& d) {
  T value;
  get_fields(d, value);
  return value;
}

// From exactly these bytes; nothing if they are not a T.
template <typename T>
std::optional<T> decoded(std::span<const std::byte> bytes) {
  std::optional<T> value(std::in_place);
  Decoder d(bytes);
  get_fields(d, *value);
  if (!d.ok() || !d.at_end()) value.reset();
  return value;
}

}  // namespace dedup
