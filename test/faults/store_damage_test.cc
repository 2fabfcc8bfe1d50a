// Every byte of a small file's segments, recipe shards, indexes, commit records and placeholder
// changed, and each of these files cut to every length: what is read is right, or it is an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "service/messages/store_node.h"
#include "store/choose.h"
#include "store/files/layout.h"
#include "store/real_path.h"
#include "store/replacement.h"
#include "store/shard_content.h"
#include "test/faults/memory_system.h"
#include "test/hooks/names.h"
#include "test/unit/shard_helpers.h"
#include "test/unit/store_job.h"

namespace dedup::test {
namespace {

using service::Chunk;
using service::StoreNode;

constexpr const char* kPath = "/shared/ckpt";
constexpr const char* kTemplate = "/%n/store";
constexpr NodeIndex kNodes = 2;
constexpr std::uint32_t kShards = 2;
constexpr int kBlockCount = 4;
constexpr std::size_t kBlockChunks = 6;

// How each byte is changed: 0 stands for one bit, another one for each of eight bytes in turn. The
// sanitizer takes too long for both.
#if defined(__has_feature)
#define DEDUP_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define DEDUP_ADDRESS_SANITIZER 1
#else
#define DEDUP_ADDRESS_SANITIZER 0
#endif
#if DEDUP_ADDRESS_SANITIZER
constexpr std::array kMasks = {std::byte{0xff}};
#else
constexpr std::array kMasks = {std::byte{0}, std::byte{0xff}};
#endif

std::string node_name(NodeIndex node) {
  return "n" + std::to_string(node);
}

// A file of four blocks in two shards, each piece of which both nodes have; its shards too. Of each
// shard one block was carried over from the generation before, and the other is a difference to
// what it was then.
class StoreDamage : public testing::Test {
 protected:
  MemorySystem memory_;
  store::System& before_ = store::use_system(memory_);
  Random random_{3};
  Id128 identity_ = random_id(random_);
  std::vector<Chunk> chunks_;  // kBlockChunks for each block
  Bytes content_;
  std::uint64_t points_ = 0, right_ = 0, errors_ = 0;

  StoreDamage() {
    memory_.mount("/shared");
    for (NodeIndex n = 0; n < kNodes; ++n) memory_.mount("/" + node_name(n));
    for (std::size_t i = 0; i < kBlockChunks * kBlockCount; ++i) {
      chunks_.push_back({random_fingerprint(random_), random_bytes(random_, 20 + 3 * i)});
      Chunk& chunk = chunks_.back();
      const bool twin = i % 3 == 1;
      if (!twin) chunk.fingerprint = test::single_name(chunk.data, chunks_.size());
      content_.insert(content_.end(), chunks_.back().data.begin(), chunks_.back().data.end());
    }
    const Status made = make();
    EXPECT_TRUE(made.is_ok()) << made.message();
  }
  ~StoreDamage() override { store::use_system(before_); }

  std::vector<Chunk> block(std::uint64_t number) const {
    return service::slice(chunks_, number * kBlockChunks, (number + 1) * kBlockChunks);
  }

  Status make() {
    DEDUP_TRY(store::create_empty(kPath).status());
    store::CommitRecord record;
    record.identity = identity_;
    record.path = kPath;
    record.size = content_.size();
    record.replication = 2;
    record.chunk_size = 4096;
    record.fingerprint = "sha256";
    record.lineage = {{random_id(random_), 1}};
    std::vector<std::unique_ptr<StoreNode>> nodes;
    for (NodeIndex n = 0; n < kNodes; ++n) {
      nodes.push_back(std::make_unique<StoreNode>(node_name(n), n, kNodes));
      DEDUP_ASSIGN(const auto found, nodes[n]->on(service::Find{kPath, {}, kTemplate}));
      record.stores.push_back({found.store.uuid, node_name(n)});
      const service::Attach attach{identity_, kPath, kTemplate, {}, true, true};
      DEDUP_TRY(nodes[n]->on(attach).status());
      service::PutChunks put{identity_, {plan::Placement::copies_on({0, 1})}, {}};
      for (const Chunk& chunk : chunks_)
        put.chunks.push_back(service::PutChunk::sealed(chunk.fingerprint, 0, chunk.data));
      DEDUP_TRY(nodes[n]->on(put).status());
    }
    DEDUP_TRY(commit(nodes, record, 1));
    DEDUP_TRY(commit(nodes, record, 2));
    for (auto& node : nodes) DEDUP_TRY(node->on(service::Detach{identity_, false, {}}).status());
    return put_placeholder(record);
  }

  // The record of the generation before becomes this one's. In the first one, half of the blocks
  // are cut off before their last chunk.
  Status commit(std::vector<std::unique_ptr<StoreNode>>& nodes, store::CommitRecord& record,
                std::uint64_t number) {
    const store::CommitRecord before = record;
    record.number = number;
    record.attempt = random_id(random_);
    record.parent = before.attempt;
    record.lineage[0].last = number;
    record.shards.clear();
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      EncodedBlocks blocks;
      for (std::uint64_t b = shard; b < kBlockCount; b += kShards) {
        const bool is_cut = number == 1 && b >= kShards;
        blocks[b] = store::encode_block(content_of(b, kBlockChunks - (is_cut ? 1 : 0)));
      }
      service::PutShard put = put_of(identity_, record.attempt, shard, blocks);
      if (number > 1) {
        put.base = {before.attempt, before.shards[shard].digest};
        put.carried = {store::summary_of(put.blocks.front())};
        put.blocks.erase(put.blocks.begin());
      }
      record.shards.push_back({digest_of(identity_, record.attempt, shard, blocks), {0, 1}});
      for (auto& node : nodes) {
        DEDUP_ASSIGN(const auto reply, node->on(put));
        EXPECT_TRUE(reply.lacking.empty());
      }
    }
    for (auto& node : nodes) {
      const NodeSet both{0, 1};
      const auto references = service::refer_to(identity_, record.attempt, names(chunks_), both);
      DEDUP_TRY(node->on(references).status());
      DEDUP_TRY(node->on(service::WriteIndex{identity_, record.attempt, true, {}, true}).status());
      DEDUP_TRY(node->on(service::Prepare{identity_, record.encode(), true}).status());
      DEDUP_TRY(node->on(service::Commit{identity_, record.attempt, true}).status());
      DEDUP_TRY(node->on(service::Collect{identity_, record.attempt}).status());
    }
    return Status::ok();
  }

  Block content_of(std::uint64_t number, std::size_t chunks) const {
    Block content;
    content.placements = {plan::Placement::copies_on({0, 1})};
    std::uint32_t at = 0;
    for (const Chunk& chunk : service::slice(block(number), 0, chunks)) {
      const auto size = static_cast<std::uint32_t>(chunk.data.size());
      content.pieces.push_back({at, size, 0, size, 0, chunk.fingerprint});
      at += size;
    }
    return content;
  }

  Status put_placeholder(const store::CommitRecord& record) const {
    store::Placeholder placeholder;
    std::memcpy(placeholder.first.data(), content_.data(), placeholder.first.size());
    placeholder.identity = identity_;
    placeholder.attempt = record.attempt;
    placeholder.session = record.lineage[0].session;
    placeholder.number = record.number;
    placeholder.size = content_.size();
    placeholder.path = kPath;
    placeholder.store = kTemplate;
    placeholder.nodes = {"n0", "n1"};
    DEDUP_ASSIGN(const auto replacement, store::Replacement::begin(kPath, record.attempt));
    DEDUP_ASSIGN(placeholder.inode, replacement->inode());
    DEDUP_TRY(replacement->write(0, store::encode_placeholder(placeholder)));
    DEDUP_TRY(replacement->flush());
    return replacement->put();
  }

  // As a job on these nodes reads the file.
  Result<Bytes> read(const std::vector<NodeIndex>& which) {
    DEDUP_ASSIGN(const store::PathState state, store::look_at(kPath));
    if (state.kind != store::PathState::Kind::kPlaceholder) {
      DEDUP_ASSIGN(const Bytes plain, store::fs::read_file(kPath));
      return plain;
    }
    std::map<NodeIndex, std::unique_ptr<StoreNode>> nodes;
    std::vector<store::StoreReport> reports;
    std::map<Id128, NodeIndex> by_store;
    for (const NodeIndex n : which) {
      nodes[n] = std::make_unique<StoreNode>(node_name(n), n, kNodes);
      service::Find find{kPath, state.placeholder.identity, kTemplate};
      find.whole = true;
      DEDUP_ASSIGN(const auto found, nodes[n]->on(find));
      store::StoreReport report{n, found.store.uuid, node_name(n), {}, found.deleted, {}};
      report.records.assign(found.whole.begin(), found.whole.end());
      reports.push_back(std::move(report));
      by_store[found.store.uuid] = n;
    }
    DEDUP_ASSIGN(const auto choice, store::choose_named(kPath, state.placeholder, reports));
    const store::CommitRecord& record = choice.record;
    for (auto& [n, node] : nodes) {
      const service::Attach attach{record.identity, kPath, kTemplate, record.attempt, false, true};
      DEDUP_TRY(node->on(attach).status());
    }
    for (const NodeIndex n : choice.adopt) {
      DEDUP_TRY(nodes.at(n)->on(service::Adopt{record.identity, record.encode()}).status());
    }
    Bytes content;
    for (std::uint64_t b = 0; b < kBlockCount; ++b) {
      DEDUP_ASSIGN(const Block recipe, read_block(nodes, record, b));
      for (const Piece& piece : recipe.pieces) {
        DEDUP_ASSIGN(const Bytes data, read_chunk(nodes, record, by_store, recipe, piece));
        content.insert(content.end(), data.begin(), data.end());
      }
    }
    return content;
  }

  static Result<Block> read_block(std::map<NodeIndex, std::unique_ptr<StoreNode>>& nodes,
                                  const store::CommitRecord& record, std::uint64_t number) {
    const auto shard = static_cast<std::uint32_t>(number % kShards);
    Status status(Code::kIo, "no node has the shard");
    for (auto& [n, node] : nodes) {
      const auto reply = node->on(service::ReadShard{
          record.identity, record.attempt, shard, record.shards[shard].digest, {number}});
      if (reply.is_ok()) return store::decode_block(reply->blocks[0].bytes);
      status = reply.status();
    }
    return status;
  }

  static Result<Bytes> read_chunk(std::map<NodeIndex, std::unique_ptr<StoreNode>>& nodes,
                                  const store::CommitRecord& record,
                                  const std::map<Id128, NodeIndex>& by_store, const Block& recipe,
                                  const Piece& piece) {
    for (const NodeIndex holder : recipe.placements[piece.placement].nodes()) {
      const auto node = by_store.find(record.stores[holder].uuid);
      if (node == by_store.end()) continue;
      const service::GetChunks get{record.identity, {{piece.fingerprint, piece.chunk_length}}};
      DEDUP_ASSIGN(const auto reply, nodes.at(node->second)->on(get));
      const auto chunk = reply.chunks(get.chunks).front();
      if (!chunk.empty()) return Bytes(chunk.begin(), chunk.end());
    }
    return Status(Code::kIo, "no node has the chunk");
  }

  // Reads with the file `path` damaged in every way. `always`: some other copy is there, so it must
  // be right, unless it looks as if newer software had written it: that one may know better.
  // `excused(size)`: a length at which the file tells nothing any more.
  void damage(const std::string& path, const std::vector<NodeIndex>& nodes, bool always,
              const std::function<bool(std::size_t)>& excused = nullptr) {
    const Bytes whole = memory_.content(path);
    ASSERT_FALSE(whole.empty()) << path;
    const auto check = [&](const Bytes& damaged, const std::string& what) {
      memory_.put_content(path, damaged);
      const auto found = read(nodes);
      ++points_;
      ++(found.is_ok() ? right_ : errors_);
      if (found.is_ok()) {
        EXPECT_TRUE(*found == content_) << path << ", " << what << ": wrong bytes";
      } else {
        EXPECT_TRUE(!always || found.status().code() == Code::kVersion)
            << path << ", " << what << ": " << found.status().message();
      }
    };
    Bytes damaged = whole;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const auto mask : kMasks) {
        damaged[i] = whole[i] ^ (mask == std::byte{0} ? std::byte{1} << (i % 8) : mask);
        check(damaged, "byte " + std::to_string(i));
      }
      damaged[i] = whole[i];
    }
    for (std::size_t size = 0; size < whole.size(); ++size) {
      if (excused && excused(size)) continue;
      check(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)),
            "cut to " + std::to_string(size));
    }
    memory_.put_content(path, whole);
  }

  // Files of node 0's store that end so.
  std::vector<std::string> files(const std::string& part) const {
    std::vector<std::string> found;
    for (const auto& [name, size] : memory_.tree("/n0/store")) {
      if (size > 0 && name.find(part) != std::string::npos) found.push_back("/n0/store/" + name);
    }
    return found;
  }
  void report(const char* what) const {
    std::printf("%s: %llu points, %llu read right, %llu errors\n", what,
                static_cast<unsigned long long>(points_), static_cast<unsigned long long>(right_),
                static_cast<unsigned long long>(errors_));
  }
};

TEST_F(StoreDamage, WithoutDamageTheFileIsRead) {
  for (const auto& nodes : {std::vector<NodeIndex>{0, 1}, {0}, {1}}) {
    const auto found = read(nodes);
    ASSERT_TRUE(found.is_ok()) << found.status().message();
    EXPECT_EQ(*found, content_);
  }
}

TEST_F(StoreDamage, OfAFileInWhichBlocksStandThatWereCarriedOverAndDifferences) {
  const auto shards = files("shard-");
  ASSERT_EQ(shards.size(), 2 * kShards);
  const auto is_donor = [](const std::string& path) {
    return store::parse_id_name(path.substr(path.rfind('-') + 1)).has_value();
  };
  EXPECT_EQ(std::count_if(shards.begin(), shards.end(), is_donor), kShards);
  for (const std::string& path : shards) {
    const std::uint32_t version = store::format::kShard.version;
    const Bytes bytes = memory_.content(path);
    const std::size_t tail = bytes.size() - store::ShardFooter::size(version);
    const auto footer =
        store::ShardFooter::decode(std::span(bytes).subspan(tail), version, tail, path);
    ASSERT_TRUE(footer.is_ok()) << footer.status().message();
    EXPECT_EQ(footer->differences, is_donor(path) ? 0u : 1u) << path;
  }
}

TEST_F(StoreDamage, OfWhatAnotherNodeHasToo) {
  for (const char* part : {"segments/", "shard-", "index", "record", "paths/"}) {
    const auto paths = files(part);
    ASSERT_FALSE(paths.empty()) << part;
    for (const auto& path : paths) damage(path, {0, 1}, true);
  }
  report("damage, with another copy");
}

TEST_F(StoreDamage, OfTheOnlyCopy) {
  for (const char* part : {"segments/", "shard-", "index", "record", "paths/", "STORE"}) {
    const auto paths = files(part);
    ASSERT_FALSE(paths.empty()) << part;
    for (const auto& path : paths) damage(path, {0}, false);
  }
  EXPECT_GT(right_, 0u);
  EXPECT_GT(errors_, 0u);
  report("damage of the only copy");
}

TEST_F(StoreDamage, OfThePlaceholder) {
  // So short it is a file of a few bytes, like any other.
  const auto excused = [](std::size_t size) { return size < store::kLeastPlaceholder; };
  damage(kPath, {0, 1}, false, excused);
  EXPECT_GT(right_, 0u);  // the text is for people only
  EXPECT_GT(errors_, 0u);
  report("damage of the placeholder");
}

}  // namespace
}  // namespace dedup::test
