// One attempt at committing a generation, as one node's store sees it: the chunks that the recipe
// refers to, the shards, the record.
//
// Memory until prepare(): what store/shard.h says of the shard that is being written, one bit for a
// chunk that came since the last commit, at most 54 bytes for one that is carried over; prepare()
// needs 4 bytes for each of the former more, and 112 for one that it moves. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "service/file_chunks.h"
#include "service/fingerprint_numbers.h"
#include "service/messages/store_node.h"
#include "service/stripe_units.h"
#include "store/commit_record.h"
#include "store/shard.h"
#include "store/store.h"

namespace dedup::service {

class NodeCommit {
 public:
  // Makes the attempt's directory. `store` and `chunks` must outlive it.
  static Result<std::unique_ptr<NodeCommit>> begin(store::Store& store, FileChunks& chunks,
                                                   const Id128& identity, const Id128& id);

  const Id128& id() const { return id_; }
  bool prepared() const { return prepared_; }
  bool committed() const { return committed_; }

  // What this node gives to stripes: see MakeUnits in messages/store_node.h.
  StripeUnits& stripes() { return stripes_; }
  // See PutShard in messages/store_node.h.
  Result<PutShardReply> put_shard(const PutShard& request);
  // Remembers these chunks, and how they are kept; 1 for each that is not here.
  std::vector<std::uint8_t> refer(const References& request);
  // See WriteIndex in messages/store_node.h. Again: does nothing.
  Result<WriteIndexReply> write_index(const WriteIndex& request);
  // Phase 1: see Prepare in messages/store_node.h. kCorrupt or kNotFound if a shard that the record
  // says is here is not, or not whole.
  Status prepare(const store::CommitRecord& record, bool flush);
  // Phase 2. The generation may be committed although it fails: committed() says it.
  Status commit(bool flush);
  bool commit_failed() const { return commit_failed_; }
  // Once it is prepared.
  const store::CommitRecord& record() const { return record_; }
  bool flushed() const { return flushed_; }
  // Removes what the attempt left on disk, its record too if the commit failed.
  Status abandon();

  // After the commit: the new generation is what `chunks` starts from.
  void install();

 private:
  NodeCommit(store::Store& store, FileChunks& chunks, const Id128& identity, const Id128& id)
      : store_(store), chunks_(chunks), identity_(identity), id_(id), stripes_(chunks, identity) {}

  bool has_unit(const NamedChunk& part);
  Status add_pins(bool all, std::span<const FingerprintNumbers::Item>& carried,
                  std::vector<FingerprintNumbers::Item>& memory);
  Status check_shards(const store::CommitRecord& record) const;

  store::Store& store_;
  FileChunks& chunks_;
  Id128 identity_;
  Id128 id_;
  std::map<std::uint32_t, std::unique_ptr<store::ShardWriter>> shards_;  // begun, not finished
  StripeUnits stripes_;
  FingerprintNumbers carried_;    // referred to, and not registered since the last commit
  std::uint64_t compacted_ = 0;   // segment that write_index() wrote; 0: none
  std::uint64_t first_open_ = 0;  // segments below it were written before write_index()
  std::vector<std::uint64_t> live_segments_;  // ascending
  std::uint64_t dropped_ = 0;                 // see References
  store::CommitRecord record_;                // once it is prepared
  WriteIndexReply index_;                     // what the index has
  bool indexed_ = false;
  bool has_all_ = false;  // the index was written after all chunks were referred to
  bool flushed_ = false;
  bool prepared_ = false;
  bool committed_ = false;
  bool commit_failed_ = false;
};

}  // namespace dedup::service
