// The placeholder: what stands at a file's real path while its data is in the stores.
//
// 4096 bytes (doc/format.md): the file's own first eight bytes, so that whoever looks for a magic
// number finds it; then plain text for people; then the mark, with which the driver finds the data.
// It is never a valid header of a file format: who checks one gets an error. Who reads raw data
// without the driver gets these bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace dedup::store {

inline constexpr std::size_t kPlaceholderSize = 4096;

struct Placeholder {
  std::array<std::uint8_t, 8> first{};  // bytes of the file; zeros behind its end
  Id128 identity;
  Id128 attempt;  // of the generation that it names
  Id128 session;  // of the job that made it (CommitRecord::lineage)
  std::uint64_t number = 0;
  std::uint64_t size = 0;          // of the file
  std::uint64_t time = 0;          // of the commit, seconds since 1970
  std::uint64_t inode = 0;         // of the placeholder itself: a copy has another one
  std::string path;                // where it was put
  std::string store;               // dedup_store, with %n
  std::vector<std::string> nodes;  // that have the stores; the first ones, if they are many

  bool operator==(const Placeholder&) const = default;
};

// A path or names that would not fit are left out or cut.
Bytes encode_placeholder(const Placeholder& placeholder);

// One that was cut off is known as such down to this size; a shorter one is a file of a few bytes
// like any other.
inline constexpr std::size_t kLeastPlaceholder = 20;

// Whether these, the first bytes of some file (kPlaceholderSize of them are enough), are a
// placeholder's, sound or not.
bool looks_like_placeholder(std::span<const std::byte> bytes);

// `what` (a path) starts the message. kCorrupt: not one, or damaged; kVersion: of newer software.
Result<Placeholder> decode_placeholder(std::span<const std::byte> bytes, const std::string& what);

// "n0, n1, n2", for messages; the first ones, if they are many.
std::string list_nodes(const Placeholder& p);

// "generation 3 (attempt 01…) of identity 23…, committed 2026-01-31 12:00:00 UTC on nodes n0, n1"
std::string describe(const Placeholder& placeholder);

}  // namespace dedup::store
