// The block homes of one node: the uncommitted state of the blocks whose home it is.
//
// What each request does is said in messages/block_home.h; the layers are there too. All requests
// but attach() need the file to be attached: kNotFound if it is not. One thread.
//
// Memory: what ranks wrote since the last commit, in pieces (56 bytes each, log pieces 32), and a
// cache of base blocks that is bounded for the whole node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/lru.h"
#include "base/status.h"
#include "base/types.h"
#include "plan/block.h"
#include "plan/overlay.h"
#include "service/messages/block_home.h"

namespace dedup::service {

// Base blocks that were installed, of all files; the least recently used ones are dropped first.
class BaseCache {
 public:
  explicit BaseCache(std::size_t capacity) : blocks_(capacity) {}

  // Null if it is not there; valid until the next insert or erase.
  const Block* find(const Id128& identity, std::uint64_t number);
  // Always keeps this one, even if it alone is larger than the capacity.
  void insert(const Id128& identity, std::uint64_t number, Block block);
  void erase(const Id128& identity);
  std::size_t bytes() const { return blocks_.weight(); }

 private:
  using Key = std::pair<Id128, std::uint64_t>;
  Lru<Key, Block> blocks_;
};

class BlockHomes {
 public:
  static constexpr std::size_t kBaseCacheBytes = std::size_t{32} << 20;

  explicit BlockHomes(std::size_t base_cache_bytes = kBaseCacheBytes) : bases_(base_cache_bytes) {}

  // The file's committed base is generation `base` (zero: none). Again: what was written stays.
  void attach(const Id128& identity, const Id128& base);
  // Drops all of the file's uncommitted state. Harmless if it is not attached.
  void detach(const Id128& identity);

  Result<WriteLogReply> on(const WriteLog& request);
  Result<LeasesReply> on(const WriteChunks& request);
  Result<Empty> on(const Convert& request);
  Result<LeasesReply> on(const Truncate& request);
  Result<ResolveReply> on(const Resolve& request);
  Result<Empty> on(const InstallBase& request);
  Result<SnapshotReply> on(const Snapshot& request);
  Result<Empty> on(const EndCommit& request);
  Result<Empty> on(const ReturnLease& request);

  // A block whose leases were recalled as often as this gets no more.
  static constexpr unsigned kRecalls = 8;

 private:
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  struct BlockState {
    plan::LogOverlay log;
    Block fresh;
    Block committing;
    Lease lease;  // serial 0: none
    unsigned recalls = 0;
    bool is_leased() const { return lease.serial != 0; }
    bool empty() const {
      return log.empty() && fresh.empty() && committing.empty() && !is_leased();
    }
  };
  struct File {
    Id128 base;  // attempt; zero: none
    std::uint64_t base_limit = kNoLimit;
    // The snapshot under way; attempt zero: none. `committing` is kept as the snapshot found it, so
    // that all of its pages are of one moment; only bytes below committing_limit, the smallest size
    // since, are still the file's.
    Id128 attempt;
    std::uint64_t snapshot_base_limit = kNoLimit;
    std::uint64_t committing_limit = kNoLimit;
    std::map<std::uint64_t, BlockState> blocks;  // none empty between requests
  };

  Result<File*> find(const Id128& identity);
  // Adds the lease on a block, if there is one, once.
  static void add_lease(const File& file, std::uint64_t block, std::vector<Lease>& leases);
  // The leases on blocks that the updates are of.
  template <typename Update>
  static std::vector<Lease> leases_on(const File& file, const std::vector<Update>& updates);
  static void put_below(File& file, const BlockUpdate& update);
  ResolvedRange resolve(const Id128& identity, const File& file, const ByteRange& range);
  static void begin_snapshot(File& file, const Id128& attempt);
  static void end_snapshot(File& file, bool committed);

  std::unordered_map<Id128, File> files_;
  BaseCache bases_;
};

}  // namespace dedup::service
