// What a store in memory (test/unit/memory_store.h) keeps: plain values, and who reads and writes
// them. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/cached.h"
#include "store/commit_record.h"
#include "store/index.h"
#include "store/log.h"
#include "store/segment.h"
#include "store/shard.h"
#include "store/written.h"

namespace dedup::test {

// Who wants to take so many bytes more asks first: kNoSpace.
using TakeSpace = std::function<Status(std::uint64_t bytes)>;

struct MemorySegment {
  struct Chunk {
    Fingerprint fingerprint;
    Bytes data;
    bool is_spoiled = false;
  };
  std::map<std::uint64_t, Chunk> chunks;  // by offset
  std::uint64_t size = 0;
};

struct MemoryLog {
  std::uint64_t first = 0;  // offset of the first byte that is there
  Bytes bytes;
  std::shared_ptr<std::vector<std::uint64_t>> leases;  // null: no table
};

// The newest run of an index.
struct MemoryIndex {
  Id128 attempt;
  std::vector<std::shared_ptr<const MemoryIndex>> older;  // runs, oldest first
  std::uint64_t dead = 0;                                 // bytes of what these name
  std::vector<store::IndexEntry> entries;
  std::vector<store::IndexReader::SegmentUse> uses;
  std::vector<plan::Placement> placements{{}};  // by number in the entries; the first is of none
};

// Of a file or a generation: by one exclusively, or by any number.
struct MemoryLockState {
  bool is_exclusive = false;
  unsigned shared = 0;
  bool is_free() const { return !is_exclusive && shared == 0; }
};

struct MemoryShard {
  store::Digest digest{};
  std::map<std::uint64_t, std::shared_ptr<const store::EncodedBlock>> blocks;
};

struct MemoryGeneration {
  std::optional<store::CommitRecord> prepared;
  std::optional<store::CommitRecord> committed;
  std::shared_ptr<const MemoryIndex> index;
  std::map<std::uint32_t, std::shared_ptr<const MemoryShard>> shards;
  std::map<std::uint32_t, store::WrittenPart> written;
  std::optional<store::CachedNote> cached;
  std::shared_ptr<MemoryLockState> lock = std::make_shared<MemoryLockState>();

  std::uint64_t bytes() const;
};

struct MemoryFile {
  std::set<std::string> paths;
  std::map<std::uint64_t, std::shared_ptr<MemorySegment>> segments;
  std::map<std::uint64_t, std::shared_ptr<MemoryLog>> logs;
  std::map<Id128, MemoryGeneration> generations;
  std::shared_ptr<MemoryLockState> lock = std::make_shared<MemoryLockState>();

  std::uint64_t bytes() const;
};

std::unique_ptr<store::SegmentWriter> write_to(std::shared_ptr<MemorySegment> segment,
                                               std::uint64_t number, TakeSpace take);
std::shared_ptr<const store::SegmentReader> read_from(std::shared_ptr<const MemorySegment> segment);
std::unique_ptr<store::LogWriter> write_to(std::shared_ptr<MemoryLog> log, std::uint64_t number,
                                           TakeSpace take);
std::shared_ptr<const store::LogReader> read_from(std::shared_ptr<const MemoryLog> log);
std::unique_ptr<store::LeaseTable> leases_of(const MemoryLog& log);
// `finished` gets it.
std::unique_ptr<store::IndexWriter> write_index(
    const Id128& attempt, std::vector<std::shared_ptr<const MemoryIndex>> older, std::uint64_t dead,
    std::function<void(std::shared_ptr<const MemoryIndex>)> finished);
// All runs of it.
std::unique_ptr<store::IndexReader> read_from(std::shared_ptr<const MemoryIndex> index);
// `finished` gets it. `base`: null if there is none.
std::unique_ptr<store::ShardWriter> write_shard(
    const store::ShardDigest& digest, std::shared_ptr<const MemoryShard> base, TakeSpace take,
    std::function<void(std::shared_ptr<const MemoryShard>)> finished);
// kCorrupt if it has another digest.
Result<std::shared_ptr<const store::ShardReader>> read_from(
    std::shared_ptr<const MemoryShard> shard, const store::Digest& digest);

}  // namespace dedup::test
