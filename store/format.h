// What all on-disk formats share: magic numbers, versions, checksums. doc/format.md has the
// formats.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/codec.h"
#include "base/hasher.h"
#include "base/status.h"
#include "base/types.h"
#include "store/commit_record.h"

namespace dedup::store::format {

// A file starts with its kind's eight characters and a 32-bit version.
struct Kind {
  std::string_view magic;    // eight characters
  std::uint32_t version;     // the newest that this software reads, and the one that it writes
  std::string_view name;     // for messages
  std::uint32_t oldest = 1;  // that it reads
};

inline constexpr Kind kStore{"DEDUPSTO", 1, "store"};
inline constexpr Kind kPathEntry{"DEDUPPTH", 1, "path entry"};
inline constexpr Kind kMark{"DEDUPMRK", 1, "mark"};
inline constexpr Kind kSegment{"DEDUPSEG", 2, "segment", 2};
inline constexpr Kind kLogSegment{"DEDUPSEG", 3, "segment", 2};  // which was a log
inline constexpr Kind kLog{"DEDUPLOG", 1, "log"};
inline constexpr Kind kIndex{"DEDUPIDX", 4, "index"};
inline constexpr Kind kShard{"DEDUPSHD", 5, "recipe shard"};
inline constexpr Kind kRecord{"DEDUPREC", 2, "commit record"};
inline constexpr Kind kPlaceholder{"DEDUPPLH", 1, "placeholder"};
inline constexpr Kind kTier{"DEDUPTIE", 1, "tier"};
inline constexpr Kind kTiers{"DEDUPTRS", 1, "list of tiers"};
inline constexpr Kind kWritten{"DEDUPWRB", 1, "written part"};
inline constexpr Kind kCached{"DEDUPCCH", 1, "cached note"};

inline constexpr std::size_t kStartSize = 12;

// Magic and version.
void put_start(Encoder& out, const Kind& kind);
// kCorrupt if the magic is another one, kVersion if the version is newer or too old. `what` (a
// path) starts the message.
Status check_start(Decoder& in, const Kind& kind, const std::string& what);

// The version of a file whose start check_start() has accepted.
std::uint32_t version_of(std::span<const std::byte> file);

// The header of a segment or log: 64 bytes, checksummed.
inline constexpr std::size_t kFileHeaderSize = 64;
struct FileHeader {
  Id128 identity;
  std::uint64_t number = 0;
  std::uint64_t salt = 0;  // of segments
};
Bytes encode_file_header(const Kind& kind, const FileHeader& header);
Result<FileHeader> check_file_header(std::span<const std::byte> bytes, const Kind& kind,
                                     const std::string& what);

Status corrupt(const std::string& what, const std::string& why);

// XXH3, 64 bits.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);
// Appends the checksum of all that `out` has.
void put_checksum(Encoder& out);
// Takes a checksum off the end of `bytes`; false if it does not hold.
bool take_checksum(std::span<const std::byte>& bytes);

using dedup::sha256;

}  // namespace dedup::store::format
