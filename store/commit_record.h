// The commit record: the same on every node, it makes a generation exist.
//
// Written as record.tmp in phase 1 of a commit and renamed in phase 2 (design: "Commit and
// recovery"). It names everything else of its generation by digest, so that nothing that an earlier
// or failed attempt left behind can be taken for part of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/piece.h"
#include "base/status.h"
#include "base/types.h"

namespace dedup {
class Decoder;
class Encoder;
}  // namespace dedup

namespace dedup::store {

using Digest = std::array<std::uint8_t, 32>;  // SHA-256

// A store that took part in a generation. Its position in CommitRecord::stores is its number in
// every placement of this generation's recipe.
struct StoreEntry {
  Id128 uuid;
  std::string node;  // the node's name at commit, for messages only
  auto operator<=>(const StoreEntry&) const = default;
};

// A job that had the file open for writing and committed generations up to `last`. Generations of
// one session form one line, so (session, number) tells ancestry: record R descends from record A
// if R's lineage has A's session with last >= A's number. They form one since a session holds the
// exclusive lock, and goes on after it was closed only from the very last that it tried.
struct LineageEntry {
  Id128 session;
  std::uint64_t last = 0;
  auto operator<=>(const LineageEntry&) const = default;
};

// One recipe shard: blocks b with b % shards.size() == s, for s = its position.
struct ShardEntry {
  Digest digest{};  // of the shard file's block table, which has every block's checksum
  std::vector<NodeIndex> stores;  // positions in `stores` that have the shard
  auto operator<=>(const ShardEntry&) const = default;
};

// A directory that all nodes see, such that it is not taken for another one that is mounted at its
// path, or for the empty one that is there while nothing is mounted. All zero: there is none.
struct DirectoryId {
  std::uint64_t type = 0;    // of the file system (statfs: f_type)
  std::uint64_t system = 0;  // of the file system (statfs: f_fsid); 0 where there is none
  std::uint64_t inode = 0;
  auto operator<=>(const DirectoryId&) const = default;
};

// An older generation of a file: what tells it from every other one.
struct KeptGeneration {
  std::uint64_t number = 0;
  Id128 attempt;
  auto operator<=>(const KeptGeneration&) const = default;
};

// Of a file that is a kept generation of another one (store/kept.h): which file, and its number.
struct KeptOf {
  Id128 file;  // zero: it is a file by itself
  std::uint64_t number = 0;
  auto operator<=>(const KeptOf&) const = default;
};

// In stripes of how many units and parities chunks were to be kept, at most; 0: in none.
struct StripeShape {
  std::uint8_t data = 0;
  std::uint8_t parities = 0;
  auto operator<=>(const StripeShape&) const = default;
};

struct CommitRecord {
  Id128 identity;
  std::uint64_t number = 0;  // of the generation; the first is 1
  Id128 attempt;
  Id128 parent;           // attempt id of the generation it was made from; zero for the first
  std::string path;       // absolute, as it was opened
  DirectoryId directory;  // that the path was in; zero if the nodes share no file system there
  std::uint64_t size = 0;
  // K; with stripes one more than these have parities: how many losses are not survived.
  std::uint32_t replication = 0;
  std::uint32_t chunk_size = 0;
  std::string fingerprint;  // name of the hash: "keyed", "sha256", "none", or "sha1" of old
  std::uint64_t time = 0;   // seconds since 1970, for people
  std::vector<StoreEntry> stores;
  std::vector<ShardEntry> shards;
  std::vector<LineageEntry> lineage;  // oldest session first; the last entry is this generation's
  Id128 key;  // of the keyed hashes that chunks are named by; zero: there is none. A secret
  std::vector<KeptGeneration> kept;  // those before this one that are kept, newest first
  KeptOf kept_of;
  StripeShape stripes;
  // What newer software has added that this one may ignore: by tag, as it was.
  std::map<std::uint32_t, Bytes> ignored;

  auto operator<=>(const CommitRecord&) const = default;

  // Whether shard `s` has blocks that the file reaches to: else nothing is lost with it.
  bool is_shard_of_use(std::size_t s) const { return s * kBlockSpan < size; }

  // With magic, version and checksum (doc/format.md). Of what was decoded, the same bytes.
  Bytes encode() const;
  // kVersion for a newer format, kCorrupt for everything else that does not hold.
  static Result<CommitRecord> decode(std::span<const std::byte> bytes);
  // The same in a message; fails the Decoder.
  void encode(Encoder& e) const;
  static CommitRecord decode(Decoder& d);
};

// True if `younger` was made from `older`, directly or not, or is it.
bool descends_from(const CommitRecord& younger, const CommitRecord& older);

}  // namespace dedup::store
