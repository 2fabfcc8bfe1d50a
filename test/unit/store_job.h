// A job of one node and one file, for tests: plays the ranks that use a node's store.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/hasher.h"
#include "hints/hints.h"
#include "service/messages/store_node.h"
#include "service/store_node.h"
#include "store/segment.h"
#include "store/shard.h"
#include "test/hooks/names.h"
#include "test/unit/shard_helpers.h"
#include "test/unit/store_helpers.h"

namespace dedup::service {

using test::Random;
using test::random_bytes;
using test::random_fingerprint;
using test::random_id;

struct Chunk {
  Fingerprint fingerprint;
  Bytes data;
};

inline std::vector<Fingerprint> names(const std::vector<Chunk>& chunks) {
  std::vector<Fingerprint> out;
  for (const Chunk& chunk : chunks) out.push_back(chunk.fingerprint);
  return out;
}

// What a rank asks before it dumps chunks of the content that these names tell, which may have
// twins.
inline Look look_at(const Id128& identity, const std::vector<Fingerprint>& names,
                    const DumpRound& round = {}) {
  Look look{identity, round, {}, {}, std::vector<std::uint8_t>(names.size(), 1)};
  for (const Fingerprint& name : names) look.names.push_back(content_of(name));
  return look;
}
// For each chunk 1 if it is held.
inline std::vector<std::uint8_t> held_of(const LookReply& reply) {
  std::vector<std::uint8_t> out;
  for (const Held held : reply.held) out.push_back(held == Held::kNot ? 0 : 1);
  return out;
}
// Of the chunks that are held, in order.
inline std::vector<plan::Placement> placements_of(const LookReply& reply) {
  std::vector<plan::Placement> out;
  for (const Held held : reply.held) {
    if (held == Held::kNot) continue;
    const std::uint32_t number = reply.found[out.size()].placement;
    out.push_back(held == Held::kSince ? reply.placements[number] : reply.committed[number]);
  }
  return out;
}
// What a recipe says of these chunks: all are kept on `nodes`.
inline References refer_to(const Id128& identity, const Id128& attempt,
                           const std::vector<Fingerprint>& names, const NodeSet& nodes = {1}) {
  References request{identity, attempt, {plan::Placement::copies_on(nodes)}, {}};
  for (const Fingerprint& name : names) request.chunks.push_back({name, 0});
  return request;
}

// What the node has of these chunks; no bytes for those that it does not have.
inline Result<std::vector<Bytes>> get_chunks(StoreNode& node, const Id128& identity,
                                             const std::vector<Chunk>& wanted) {
  GetChunks request{identity, {}};
  for (const Chunk& chunk : wanted) {
    request.chunks.push_back({chunk.fingerprint, static_cast<std::uint32_t>(chunk.data.size())});
  }
  DEDUP_ASSIGN(const ChunksReply reply, node.on(request));
  std::vector<Bytes> out;
  for (const auto chunk : reply.chunks(request.chunks))
    out.emplace_back(chunk.begin(), chunk.end());
  return out;
}

inline std::vector<Chunk> slice(const std::vector<Chunk>& chunks, std::size_t begin,
                                std::size_t end) {
  return {chunks.begin() + static_cast<std::ptrdiff_t>(begin),
          chunks.begin() + static_cast<std::ptrdiff_t>(end)};
}

class StoreJob {
 public:
  // `store_template` must have %n, which becomes "n1".
  StoreJob(std::string store_template, std::string path,
           store::StoreOpener opener = store::Store::open)
      : template_(std::move(store_template)), path_(std::move(path)), opener_(std::move(opener)) {}

  Result<FindReply> find() {
    Find request{path_, {}, template_};
    request.whole = true;
    auto reply = node_->on(request);
    if (reply.is_ok()) uuid_ = reply->store.uuid;
    return reply;
  }
  Result<AttachReply> attach(bool write) {
    DEDUP_TRY(find().status());
    return node_->on(Attach{identity_, path_, template_, base_, write, write && base_.is_zero()});
  }
  // Everything in memory is lost, locks are freed.
  void restart() { node_ = new_node(); }

  std::vector<Chunk> chunks(std::size_t count, std::size_t size = 1000) {
    std::vector<Chunk> out;
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back({random_fingerprint(random_), random_bytes(random_, size)});
      // Every other one had no twin.
      if (++made_ % 2 == 0) out.back().fingerprint = test::single_name(out.back().data, made_ / 2);
    }
    return out;
  }

  // As a rank stores chunks; those that it is not granted are left out. Gives the segment's number.
  Result<std::uint64_t> store_as_rank(const std::vector<Chunk>& what,
                                      const NodeSet& nodes = {0, 1}) {
    DEDUP_ASSIGN(const ClaimReply claims, node_->on(Claim{identity_, names(what)}));
    DEDUP_ASSIGN(const NumberReply segment, node_->on(OpenSegment{identity_}));
    DEDUP_ASSIGN(const auto store, open_store());
    DEDUP_ASSIGN(auto writer, store->create_segment(identity_, segment.number));
    Register request{identity_, {plan::Placement::copies_on(nodes)}, {}};
    for (std::size_t i = 0; i < what.size(); ++i) {
      if (claims.granted[i] == 0) continue;
      DEDUP_ASSIGN(const auto location, writer->append(what[i].fingerprint, what[i].data));
      request.chunks.push_back({what[i].fingerprint, location, 0});
    }
    DEDUP_TRY(writer->write_out());
    DEDUP_TRY(node_->on(request).status());
    return segment.number;
  }
  Status put(const std::vector<Chunk>& what, const NodeSet& nodes = {1, 2}) {
    PutChunks request{identity_, {plan::Placement::copies_on(nodes)}, {}};
    for (const Chunk& chunk : what)
      request.chunks.push_back(PutChunk::sealed(chunk.fingerprint, 0, chunk.data));
    return node_->on(request).status();
  }

  // Everything of a commit up to phase 1: a recipe with all of `what` in one shard, kept here.
  // `nodes`: those that each chunk is said to be on.
  Result<store::CommitRecord> begin_commit(const Id128& attempt, const std::vector<Chunk>& what,
                                           const NodeSet& nodes = {1}) {
    Block block;
    block.placements = {plan::Placement::copies_on({0})};
    std::uint32_t at = 0;
    for (const Chunk& chunk : what) {
      const auto size = static_cast<std::uint32_t>(chunk.data.size());
      block.pieces.push_back({at, size, 0, size, 0, chunk.fingerprint});
      at += size;
    }
    const test::EncodedBlocks blocks{{3, store::encode_block(block)}, {7, rest_of_recipe()}};
    DEDUP_TRY(put_shard(attempt, blocks));
    DEDUP_ASSIGN(const auto reply, node_->on(refer_to(identity_, attempt, names(what), nodes)));
    const auto missing = std::accumulate(reply.missing.begin(), reply.missing.end(), 0);
    if (missing != 0) {
      return Status(Code::kNotFound, std::to_string(missing) + " chunks are missing");
    }
    store::CommitRecord record;
    record.identity = identity_;
    record.number = number_ + 1;
    record.attempt = attempt;
    record.parent = base_;
    record.path = path_;
    record.size = kBlockSpan * 8;
    record.replication = 2;
    record.chunk_size = 4096;
    record.fingerprint = "sha256";
    record.stores = {{uuid_, "n1"}};
    record.shards = {{test::digest_of(identity_, attempt, 0, blocks), {0}}};
    record.lineage = {{session_, number_ + 1}};
    return record;
  }
  Result<WriteIndexReply> prepare(const store::CommitRecord& record, bool flush = true) {
    DEDUP_ASSIGN(const auto reply, node_->on(WriteIndex{identity_, record.attempt, flush,
                                                        keeps_numbers_ ? base_ : Id128{}, true}));
    DEDUP_TRY(node_->on(Prepare{identity_, record.encode(), flush}).status());
    return reply;
  }
  Status finish_commit(const store::CommitRecord& record, bool flush = true) {
    DEDUP_TRY(node_->on(Commit{identity_, record.attempt, flush}).status());
    base_ = record.attempt;
    base_digest_ = record.shards[0].digest;
    number_ = record.number;
    return Status::ok();
  }
  // A whole commit of a file that consists of `what`; the bytes that it freed.
  Result<std::uint64_t> commit(const std::vector<Chunk>& what, const NodeSet& nodes = {1}) {
    DEDUP_ASSIGN(const auto record, begin_commit(random_id(random_), what, nodes));
    DEDUP_ASSIGN(const WriteIndexReply prepared, prepare(record));
    EXPECT_EQ(prepared.chunks, what.size());
    DEDUP_TRY(finish_commit(record));
    DEDUP_ASSIGN(const CollectReply collected, node_->on(Collect{identity_, record.attempt}));
    return collected.freed_bytes;
  }

  // Sends a shard's blocks as a commit does: what is as in the base is only named.
  Status put_shard(const Id128& attempt, const test::EncodedBlocks& blocks) {
    PutShard request{identity_, attempt, 0, {base_, base_digest_}, true, false, {}, {}};
    for (const auto& [number, bytes] : blocks) {
      const auto block = store::with_checksum(number, bytes);
      if (number == 7 && !base_.is_zero()) {
        request.carried.push_back(store::summary_of(block));
      } else {
        request.blocks.push_back(block);
      }
    }
    DEDUP_ASSIGN(const PutShardReply reply, node_->on(request));
    PutShard last{identity_, attempt, 0, request.base, false, true, {}, {}};
    for (const std::uint64_t number : reply.lacking) {
      last.blocks.push_back(store::with_checksum(number, blocks.at(number)));
    }
    return node_->on(last).status();
  }
  // Block 7 of each generation's recipe: zeros.
  static Bytes rest_of_recipe() {
    Block block;
    block.pieces.push_back({0, static_cast<std::uint32_t>(kBlockSpan), 0, 0, 0, {}});
    return store::encode_block(block);
  }

 protected:
  // The node's store, as a rank opens it.
  Result<std::unique_ptr<store::Store>> open_store() const {
    return opener_(hints::expand_store(template_, "n1"), false);
  }
  std::unique_ptr<StoreNode> new_node() const {
    return std::make_unique<StoreNode>("n1", 1, 4, opener_);
  }

  Random random_{42};
  std::uint64_t made_ = 0;  // chunks
  const std::string template_;
  std::string path_;
  const store::StoreOpener opener_;
  Id128 identity_ = random_id(random_);
  Id128 session_ = random_id(random_);
  std::unique_ptr<StoreNode> node_ = new_node();
  Id128 uuid_;
  Id128 base_;                   // the newest generation that was committed
  store::Digest base_digest_{};  // of its shard
  std::uint64_t number_ = 0;
  bool keeps_numbers_ = true;  // so that WriteIndex names the base
};

}  // namespace dedup::service
