// A commit sends and writes the blocks of the recipe that changed, and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/fields.h"
#include "engine/protocol/base_recipe.h"
#include "engine/protocol/leave.h"
#include "service/messages/block_home.h"
#include "service/messages/store_node.h"
#include "store/format.h"
#include "store/store.h"
#include "test/simulation/handles.h"

namespace dedup::simulation {
namespace {

using service::Opcode;

constexpr std::uint64_t kBlockCount = 24;
// A block's pieces, all of one chunk.
constexpr std::uint32_t kPieces = 200;
constexpr std::uint32_t kSize = 64;

class Carried : public testing::Test {
 protected:
  Carried() {
    seed_product(1);
    start(1, {0, 1, 2});
  }

  void start(int number, const std::vector<NodeIndex>& nodes, std::size_t name = 0) {
    file.reset();
    job.reset();
    job = std::make_unique<Job>(cluster, number, nodes, 1);
    job->listen = [this](NodeIndex node, Opcode opcode, std::span<const std::byte> body) {
      if (opcode != Opcode::kPutShard) return;
      sent += body.size();
      const auto request = decoded<service::PutShard>(body).value();
      for (const auto& block : request.blocks) whole[node].insert(block.number);
      for (const auto& block : request.carried) carried[node].insert(block.number);
    };
    file = open_file(*job, name);
  }
  void end() {
    ASSERT_TRUE(engine::leave(*file).is_ok());
    file.reset();
    job.reset();
  }

  // On these nodes. The first pieces, all of which are different, have the value; the others are as
  // write_all() has them.
  void write(std::uint64_t number, std::uint8_t value, const NodeSet& nodes,
             std::uint32_t first = kPieces) {
    const auto placement = plan::Placement::copies_on(nodes);
    service::PutChunks put{file->identity(), {placement}, {}};
    Block block{{}, {placement}};
    for (std::uint32_t i = 0; i < kPieces; ++i) {
      Bytes bytes(kSize, static_cast<std::byte>(i < first ? value : 1 + number));
      std::memcpy(bytes.data(), &i, sizeof i);  // none twice: a block names each once
      Fingerprint fingerprint;
      const store::Digest digest = store::format::sha256(bytes);
      std::copy(digest.begin(), digest.end(), fingerprint.bytes.begin());
      put.chunks.push_back(service::PutChunk::sealed(fingerprint, 0, std::move(bytes)));
      block.pieces.push_back({i * kSize, kSize, 0, kSize, 0, fingerprint});
    }
    for (const NodeIndex node : nodes) ASSERT_TRUE(file->client().call(node, put).is_ok());
    const NodeIndex home = file->block_home(number);
    const service::WriteChunks chunks{file->identity(), {{number, block}}, false};
    ASSERT_TRUE(file->client().call(home, chunks).is_ok());
    ASSERT_TRUE(engine::extend(*file, number * kBlockSpan + kPieces * kSize).is_ok());
    expected[number] = block.pieces.front().fingerprint;
  }
  void write_all() {
    const std::vector<NodeSet> places = {{0, 1}, {0, 2}, {1, 2}};
    for (std::uint64_t b = 0; b < kBlockCount; ++b) {
      write(b, static_cast<std::uint8_t>(1 + b), places[b / 3 % 3]);
    }
  }

  void commit_counted() {
    sent = 0;
    whole.clear();
    carried.clear();
    const Status status = commit(*file);
    ASSERT_TRUE(status.is_ok()) << status.message();
  }
  std::size_t count(const std::map<NodeIndex, std::set<std::uint64_t>>& blocks) const {
    std::size_t sum = 0;
    for (const auto& [node, numbers] : blocks) sum += numbers.size();
    return sum;
  }
  // All nodes' copies of it.
  void expect_recipe() {
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, fingerprint] : expected) numbers.push_back(number);
    const auto view = file->view();
    const auto& shards = view->committed->record.shards;
    for (std::uint32_t s = 0; s < shards.size(); ++s) {
      for (const NodeIndex node : shards[s].stores) {
        for (const auto& [number, fingerprint] : expected) {
          if (number % shards.size() != s) continue;
          const service::ReadShard read{
              file->identity(), view->committed->record.attempt, s, shards[s].digest, {number}};
          const auto reply = file->client().call(node, read);
          ASSERT_TRUE(reply.is_ok()) << reply.status().message();
          const auto block = store::decode_block(reply->blocks.front().bytes);
          ASSERT_TRUE(block.is_ok());
          ASSERT_EQ(block->pieces.size(), kPieces);
          EXPECT_EQ(block->pieces.front().fingerprint, fingerprint);
        }
      }
    }
  }
  // Bytes in the shards' files that are the generation's own, on all nodes.
  std::uint64_t written() const {
    std::uint64_t sum = 0;
    for (const NodeIndex node : job->nodes()) {
      const auto tree = cluster.memory().tree(Cluster::disk(node) + "/s");
      for (std::uint32_t s = 0; s < file->nodes(); ++s) {
        const auto own = tree.find("files/" + file->identity().hex() + "/generations/" +
                                   file->view()->base().hex() + "/shard-" + std::to_string(s));
        if (own != tree.end()) sum += own->second;
      }
    }
    return sum;
  }
  // Bytes that a store has of recipes, donors once.
  std::uint64_t stored(NodeIndex disk) const {
    std::map<std::string, std::uint64_t> donors;
    std::uint64_t sum = 0;
    for (const auto& [name, size] : cluster.memory().tree(Cluster::disk(disk) + "/s")) {
      const std::size_t at = name.find("/shard-");
      if (at == std::string::npos) continue;
      const bool is_donor = name.find('-', at + 7) != std::string::npos;
      if (is_donor) {
        donors[name.substr(at)] = size;
      } else {
        sum += size;
      }
    }
    for (const auto& [name, size] : donors) sum += size;
    return sum;
  }

  static constexpr std::uint64_t kEncoded = kPieces * 33;  // a block, about
  static constexpr std::uint64_t kTables = 6 * 1000;       // requests, beside their blocks

  Cluster cluster{Breakage::kNone};
  std::unique_ptr<Job> job;
  std::unique_ptr<engine::JobFile> file;
  std::map<std::uint64_t, Fingerprint> expected;
  std::uint64_t sent = 0;
  std::map<NodeIndex, std::set<std::uint64_t>> whole, carried;
};

TEST_F(Carried, IsAllButTheBlocksThatChanged) {
  write_all();
  commit_counted();
  EXPECT_GT(sent, 2 * kBlockCount * kEncoded);
  EXPECT_EQ(count(whole), 2 * kBlockCount);
  EXPECT_EQ(count(carried), 0u);
  const std::uint64_t first = stored(0) + stored(1) + stored(2);

  write(5, 100, {1, 2});
  commit_counted();
  EXPECT_EQ(count(whole), 2u);
  EXPECT_EQ(count(carried), 2 * (kBlockCount - 1));
  EXPECT_LT(sent, 2 * kEncoded + kTables);
  expect_recipe();
  const std::uint64_t second = stored(0) + stored(1) + stored(2);
  EXPECT_LT(second - first, 2 * kEncoded + kTables);

  write(kBlockCount - 1, 101, {0, 2});
  commit_counted();
  EXPECT_EQ(count(whole), 2u);
  expect_recipe();
}

TEST_F(Carried, IsEverythingIfNothingChanged) {
  write_all();
  commit_counted();
  end();
  start(2, {0, 1, 2});
  commit_counted();
  EXPECT_EQ(count(whole), 0u);
  EXPECT_EQ(count(carried), 2 * kBlockCount);
  EXPECT_LT(sent, kTables);
  expect_recipe();
}

// The blocks of a file of the same series, which the new one shares.
TEST_F(Carried, IsWhatADonorHas) {
  write_all();
  commit_counted();
  const Id128 donor = file->identity();
  end();
  start(2, {0, 1, 2}, 1);
  ASSERT_TRUE(file->view()->donor);
  EXPECT_EQ(file->view()->donor->record.identity, donor);
  write_all();
  write(5, 100, {1, 2}, 10);
  commit_counted();
  EXPECT_EQ(count(whole), 2u);
  EXPECT_EQ(count(carried), 2 * (kBlockCount - 1));
  EXPECT_LT(sent, 2 * kEncoded + kTables);
  // Little of the block changed: a short difference to what the donor has.
  EXPECT_GT(written(), 0u);
  EXPECT_LT(written(), kEncoded);
  expect_recipe();
  end();
  for (const NodeIndex node : {0, 1, 2}) {
    const auto store = store::Store::open(Cluster::disk(node) + "/s", false);
    ASSERT_TRUE(store.is_ok() && (*store)->drop_file(donor).is_ok());
  }
  // Who shares with it in turn.
  start(3, {0, 1, 2}, 2);
  write_all();
  write(5, 100, {1, 2}, 10);
  commit_counted();
  EXPECT_EQ(count(whole), 0u);
  EXPECT_EQ(count(carried), 2 * kBlockCount);
  expect_recipe();
}

TEST_F(Carried, IsNothingOfADonorThatTheFileDoesNotHave) {
  write_all();
  commit_counted();
  end();
  start(2, {0, 1, 2}, 1);
  expected.clear();
  write(2, 3, {0, 1});
  write(7, 101, {0, 2});
  commit_counted();
  EXPECT_EQ(count(whole), 2u);
  EXPECT_EQ(count(carried), 2u);
  expect_recipe();
  for (const NodeIndex node : {0, 1, 2}) {
    const auto store = store::Store::open(Cluster::disk(node) + "/s", false);
    ASSERT_TRUE(store.is_ok());
    const auto index = (*store)->index(file->identity(), file->view()->base());
    ASSERT_TRUE(index.is_ok());
    EXPECT_EQ((*index)->size(), (node == 0 ? 2u : 1u) * kPieces);
  }
}

TEST_F(Carried, IsNothingWithAnotherNumberOfNodes) {
  write_all();
  commit_counted();
  end();
  start(2, {0, 1, 2, 3});
  commit_counted();
  EXPECT_EQ(count(whole), 2 * kBlockCount);
  EXPECT_EQ(count(carried), 0u);
  expect_recipe();
}

TEST_F(Carried, IsWhatAReplacedNodeLeavesAsItWas) {
  write_all();
  commit_counted();
  end();
  start(2, {0, 1, 3});
  commit_counted();
  // The other nodes get only blocks of chunks that the lost one had.
  for (const NodeIndex node : {0, 1}) {
    for (const std::uint64_t number : whole[node]) EXPECT_NE(number / 3 % 3, 0u) << number;
    EXPECT_FALSE(carried[node].empty());
  }
  // It has no base: it is asked once, and told the rest whole. It keeps two shards of three.
  EXPECT_EQ(whole[2].size(), kBlockCount * 2 / 3);
  expect_recipe();
  commit_counted();
  EXPECT_EQ(count(whole), 0u);
  expect_recipe();
}

TEST_F(Carried, IsNothingThatIsDamaged) {
  write_all();
  commit_counted();
  const auto shards = [&] {
    std::vector<std::string> found;
    for (const auto& [name, size] : cluster.memory().tree("/n1/s")) {
      if (name.find("/shard-") != std::string::npos) found.push_back("/n1/s/" + name);
    }
    return found;
  };
  // A block's byte in each; no reader has them open.
  const auto damage = [&](const std::string& path) {
    Bytes bytes = cluster.memory().content(path);
    bytes[70] ^= std::byte{1};
    cluster.memory().put_content(path, bytes);
  };
  end();
  for (const std::string& path : shards()) damage(path);
  start(2, {0, 1, 2});
  commit_counted();
  EXPECT_EQ(count(whole), 2u);  // one in each of the node's two shards
  EXPECT_EQ(whole[1].size(), 2u);
  expect_recipe();
  // The donor is damaged still, where nobody reads it.
  end();
  start(3, {0, 1, 2});
  commit_counted();
  EXPECT_EQ(count(whole), 0u);
  expect_recipe();
}

TEST_F(Carried, IsReadAfterManyGenerations) {
  write_all();
  commit_counted();
  const std::uint64_t first = stored(0);
  for (std::uint8_t i = 0; i < 60; ++i) {
    write(i * 7 % kBlockCount, static_cast<std::uint8_t>(100 + i), {0, 1});
    commit_counted();
    EXPECT_EQ(count(whole), 2u);
    expect_recipe();
    EXPECT_LT(stored(0), 3 * first + kTables);
  }
}

}  // namespace
}  // namespace dedup::simulation
