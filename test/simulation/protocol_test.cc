// Steps of the protocol that go wrong in one way, each by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fields.h"
#include "engine/protocol/find_and_attach.h"
#include "engine/protocol/generation_commit.h"
#include "engine/protocol/leave.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"
#include "service/messages/homes.h"
#include "service/messages/store_node.h"
#include "store/format.h"
#include "test/simulation/cluster.h"

namespace dedup::simulation {
namespace {

using service::Opcode;

class Protocol : public testing::Test {
 protected:
  Protocol() : job(cluster, 1, {0, 1}, 1) { seed_product(1); }

  std::unique_ptr<engine::JobFile> new_handle() { return new_handle(job); }
  static std::unique_ptr<engine::JobFile> new_handle(Job& job) {
    auto file = std::make_unique<engine::JobFile>(job.client(), job.ranks());
    file->path = Cluster::path(0);
    file->hints.store = "/%n/s";
    file->hints.replication = 2;
    file->home = service::file_home(file->path, file->nodes());
    file->writable = true;
    file->handle = Id128::random();
    return file;
  }

  static Status open(engine::JobFile& file) {
    bool created = false;
    const auto begin = [&]() -> Status {
      DEDUP_ASSIGN(file.local,
                   engine::LocalFile::get(file.client(), file.identity(), Cluster::disk(0) + "/s"));
      return Status::ok();
    };
    return engine::find_and_attach(file, {true, false}, begin, created);
  }

  static Bytes content() { return Bytes(16, std::byte{7}); }
  static Fingerprint fingerprint() {
    Fingerprint out;
    const store::Digest digest = store::format::sha256(content());
    std::copy(digest.begin(), digest.end(), out.bytes.begin());
    return out;
  }

  // 16 bytes on these nodes; not the file's first ones, which a commit reads.
  Status write(engine::JobFile& file, const NodeSet& nodes = {0, 1}) {
    return write(file, nodes, nodes);
  }
  // The same; said to be on some nodes, stored on others.
  static Status write(engine::JobFile& file, const NodeSet& said, const NodeSet& stored) {
    const service::PutChunks put{file.identity(),
                                 {plan::Placement::copies_on(stored)},
                                 {service::PutChunk::sealed(fingerprint(), 0, content())}};
    for (const NodeIndex node : stored) DEDUP_TRY(file.client().call(node, put).status());
    const auto placement = plan::Placement::copies_on(said);
    const Block block{{{64, 16, 0, 16, 0, fingerprint()}}, {placement}};
    const NodeIndex home = file.block_home(0);
    const service::WriteChunks chunks{file.identity(), {{0, block}}, false};
    DEDUP_TRY(file.client().call(home, chunks).status());
    return file.client().call(file.home, service::ExtendSize{file.identity(), 80}).status();
  }

  static bool has_chunk(engine::JobFile& file, NodeIndex node) {
    const service::Look look{file.identity(), {}, {}, {fingerprint()}, {1}};
    const auto reply = file.client().call(node, look);
    EXPECT_TRUE(reply.is_ok()) << reply.status().message();
    return reply.is_ok() && reply->held.front() != service::Held::kNot;
  }

  static Status commit(engine::JobFile& file, engine::RecipeFacts* facts = nullptr) {
    DEDUP_TRY(file.refresh_view());
    engine::GenerationCommit generation(file);
    const Status status = generation.run([] { return Status::ok(); });
    if (facts != nullptr) *facts = generation.facts();
    return status;
  }

  Cluster cluster{Breakage::kNone};
  Job job;
};

TEST_F(Protocol, AnOpenThatCannotSetTheFileAsideGivesTheTurnBack) {
  const auto first = new_handle();
  ASSERT_TRUE(open(*first).is_ok());
  // The name leads to another file by now.
  ASSERT_EQ(cluster.memory().unlink(Cluster::path(0).c_str()), 0);
  job.intercept = [](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode != Opcode::kSetAside) return std::nullopt;
    return Status(Code::kIo, "the home does not answer");
  };
  const auto second = new_handle();
  EXPECT_EQ(open(*second).code(), Code::kIo);
  job.intercept = nullptr;
  const Status again = open(*second);
  EXPECT_TRUE(again.is_ok()) << again.message();
}

TEST_F(Protocol, NodesThatHaveOneStoreAreToldToHaveTheirOwn) {
  const auto file = new_handle();
  file->hints.store = "/n0/s";
  const Status status = open(*file);
  EXPECT_EQ(status.code(), Code::kInfoValue);
  for (const char* const text : {"nodes n0 and n1", "/n0/s", "DEDUP_STORE", "%n"}) {
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
  }
  const auto another = new_handle();
  EXPECT_TRUE(open(*another).is_ok());
}

TEST_F(Protocol, ACommitDoesNotCountCopiesThatANodeDoesNotHave) {
  const auto file = new_handle();
  ASSERT_TRUE(open(*file).is_ok());
  ASSERT_TRUE(write(*file).is_ok());
  // Node 1 has nothing, even of what it was sent a moment ago.
  int asked = 0;
  job.intercept = [&](NodeIndex node, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (node != 1 || opcode != Opcode::kReferences) return std::nullopt;
    ++asked;
    return encoded(service::ReferencesReply{{1}});
  };
  const Status lacking = commit(*file);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(lacking.code(), Code::kIo) << lacking.message();
  job.intercept = nullptr;
  EXPECT_TRUE(commit(*file).is_ok());
}

TEST_F(Protocol, ACommitHasTheNodeThatLacksAChunkRestoreIt) {
  const auto file = new_handle();
  ASSERT_TRUE(open(*file).is_ok());
  ASSERT_TRUE(write(*file, {0}).is_ok());
  std::vector<NodeIndex> restored;
  job.intercept = [&](NodeIndex node, Opcode opcode) -> std::optional<Result<Bytes>> {
    EXPECT_NE(opcode, Opcode::kPutChunks);
    if (opcode == Opcode::kRestore) restored.push_back(node);
    return std::nullopt;
  };
  const Status committed = commit(*file);
  EXPECT_TRUE(committed.is_ok()) << committed.message();
  EXPECT_EQ(restored, std::vector<NodeIndex>{1});
  EXPECT_TRUE(has_chunk(*file, 1));
}

// Both nodes that should have a chunk lack it, and the third one has it. One of the two cannot get
// it at first: the chunk is not lost, and it gets it from the other.
TEST_F(Protocol, AChunkThatOneOfTwoNodesCouldNotGetIsNotLost) {
  Job wider(cluster, 2, {0, 1, 2}, 1);
  const auto file = new_handle(wider);
  ASSERT_TRUE(open(*file).is_ok());
  ASSERT_TRUE(write(*file, {0, 1}, {2}).is_ok());
  std::vector<NodeIndex> asked;
  wider.intercept = [&](NodeIndex node, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode != Opcode::kRestore) return std::nullopt;
    asked.push_back(node);
    if (node != 1 || std::count(asked.begin(), asked.end(), 1) > 1) return std::nullopt;
    return encoded(service::RestoreReply{0, {1}});
  };
  engine::RecipeFacts facts;
  const Status committed = commit(*file, &facts);
  EXPECT_TRUE(committed.is_ok()) << committed.message();
  EXPECT_EQ(facts.lost_chunks, 0u);
  EXPECT_EQ(std::count(asked.begin(), asked.end(), 1), 2);
  for (const NodeIndex node : {0, 1}) {
    EXPECT_TRUE(has_chunk(*file, node)) << node;
  }
}

TEST_F(Protocol, AChunkThatNobodyCouldGetIsLostOnce) {
  const auto file = new_handle();
  ASSERT_TRUE(open(*file).is_ok());
  ASSERT_TRUE(write(*file, {0, 1}, {}).is_ok());
  engine::RecipeFacts facts;
  const Status committed = commit(*file, &facts);
  EXPECT_TRUE(committed.is_ok()) << committed.message();
  EXPECT_EQ(facts.lost_chunks, 1u);
}

// What an earlier generation says is lost is not looked for at each commit, but when it is healed.
TEST_F(Protocol, OnlyHealingAsksAgainForWhatWasLostBefore) {
  const auto file = new_handle();
  ASSERT_TRUE(open(*file).is_ok());
  ASSERT_TRUE(write(*file, {}, {}).is_ok());
  int asked = 0;
  job.intercept = [&](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode == Opcode::kRestore) ++asked;
    return std::nullopt;
  };
  // What was written since is not given up without being asked.
  EXPECT_EQ(commit(*file).code(), Code::kIo);
  file->on_loss = engine::OnLoss::kGiveUp;
  EXPECT_TRUE(commit(*file).is_ok());
  asked = 0;
  file->on_loss = engine::OnLoss::kGoOn;
  for (int generation = 0; generation < 2; ++generation) {
    engine::RecipeFacts facts;
    const Status committed = commit(*file, &facts);
    EXPECT_TRUE(committed.is_ok()) << committed.message();
    EXPECT_EQ(facts.lost_chunks, 1u);
    EXPECT_EQ(asked, 0);
  }
  file->on_loss = engine::OnLoss::kRefuse;
  EXPECT_EQ(commit(*file).code(), Code::kIo);
  EXPECT_EQ(asked, 2);
}

TEST_F(Protocol, ARestoreThatFailsFailsTheCommitAndTheNextOneMakesUpForIt) {
  const auto file = new_handle();
  ASSERT_TRUE(open(*file).is_ok());
  ASSERT_TRUE(write(*file, {0}).is_ok());
  job.intercept = [](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode != Opcode::kRestore) return std::nullopt;
    return Status(Code::kNoMemory, "out of memory");
  };
  EXPECT_EQ(commit(*file).code(), Code::kNoMemory);
  job.intercept = nullptr;
  const Status again = commit(*file);
  EXPECT_TRUE(again.is_ok()) << again.message();
}

TEST_F(Protocol, WhatWasClaimedAndNotStoredMayBeStoredByTheNextCommit) {
  const auto file = new_handle();
  ASSERT_TRUE(open(*file).is_ok());
  ASSERT_TRUE(write(*file).is_ok());
  Fingerprint given_up;
  given_up.bytes[0] = 1;
  const service::Claim claim{file->identity(), {given_up}};
  EXPECT_EQ(file->client().call(1, claim)->granted, std::vector<std::uint8_t>{1});
  job.intercept = [](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode != Opcode::kPrepare) return std::nullopt;
    return Status(Code::kIo, "the disk is full");
  };
  EXPECT_EQ(commit(*file).code(), Code::kIo);
  EXPECT_EQ(file->client().call(1, claim)->granted, std::vector<std::uint8_t>{1});
}

// A file of many chunks in two blocks, committed.
class Changes : public Protocol {
 protected:
  static constexpr std::uint32_t kLength = 16;
  static constexpr std::uint32_t kChunks = 100;  // in each block

  static Bytes content_of(std::uint64_t name) {
    Bytes data(kLength);
    std::memcpy(data.data(), &name, sizeof name);
    return data;
  }
  static Fingerprint name_of(std::uint64_t name) {
    Fingerprint out;
    const store::Digest digest = store::format::sha256(content_of(name));
    std::copy(digest.begin(), digest.end(), out.bytes.begin());
    return out;
  }
  // One chunk at the place of the i-th of a block, on both nodes.
  static Status write(engine::JobFile& file, std::uint64_t block, std::uint32_t i,
                      std::uint64_t name) {
    const auto placement = plan::Placement::copies_on({0, 1});
    const service::PutChunks put{file.identity(),
                                 {placement},
                                 {service::PutChunk::sealed(name_of(name), 0, content_of(name))}};
    for (const NodeIndex node : {0, 1}) DEDUP_TRY(file.client().call(node, put).status());
    const Block content{{{64 + i * kLength, kLength, 0, kLength, 0, name_of(name)}}, {placement}};
    const NodeIndex home = file.block_home(block);
    const service::WriteChunks chunks{file.identity(), {{block, content}}, false};
    DEDUP_TRY(file.client().call(home, chunks).status());
    const std::uint64_t end = block * kBlockSpan + 64 + (i + 1) * kLength;
    return file.client().call(file.home, service::ExtendSize{file.identity(), end}).status();
  }

  std::unique_ptr<engine::JobFile> first() {
    auto file = new_handle();
    EXPECT_TRUE(open(*file).is_ok());
    for (std::uint64_t block = 0; block < 2; ++block) {
      for (std::uint32_t i = 0; i < kChunks; ++i) {
        EXPECT_TRUE(write(*file, block, i, block * kChunks + i).is_ok());
      }
    }
    const Status committed = commit(*file);
    EXPECT_TRUE(committed.is_ok()) << committed.message();
    job.listen = [this](NodeIndex, Opcode opcode, std::span<const std::byte> body) {
      if (opcode == Opcode::kWriteIndex) ++indexes;
      if (opcode != Opcode::kReferences) return;
      const auto request = decoded<service::References>(body);
      ASSERT_TRUE(request.has_value());
      referred += request->chunks.size();
    };
    return file;
  }

  static std::unique_ptr<store::Store> store_of(NodeIndex node) {
    auto store = store::Store::open(Cluster::disk(node) + "/s", false);
    EXPECT_TRUE(store.is_ok());
    return *std::move(store);
  }
  static std::size_t runs_on(const engine::JobFile& file, NodeIndex node) {
    const auto index = store_of(node)->index(file.identity(), file.view()->base());
    EXPECT_TRUE(index.is_ok()) << index.status().message();
    return (*index)->runs().size();
  }

  std::size_t indexes = 0;
  std::size_t referred = 0;
};

TEST_F(Changes, AreWhatACommitRefersTo) {
  const auto file = first();
  ASSERT_TRUE(commit(*file).is_ok());
  EXPECT_EQ(referred, 0u);
  EXPECT_EQ(indexes, 2u);
  // One chunk, on two nodes.
  ASSERT_TRUE(write(*file, 1, 7, 1000).is_ok());
  ASSERT_TRUE(commit(*file).is_ok());
  EXPECT_EQ(referred, 2u);
  EXPECT_EQ(indexes, 4u);
  for (const NodeIndex node : {0, 1}) EXPECT_EQ(runs_on(*file, node), 2u);
}

// One chunk after the other is replaced, each in a commit of its own.
TEST_F(Changes, AreCountedUntilTooMuchIsDead) {
  const auto file = first();
  std::size_t whole = 0;
  for (std::uint32_t i = 0; i < 60; ++i) {
    referred = 0;
    ASSERT_TRUE(write(*file, 0, i, 1000 + i).is_ok());
    const Status committed = commit(*file);
    ASSERT_TRUE(committed.is_ok()) << committed.message();
    if (referred > 2) ++whole;
    EXPECT_LE(store_of(0)->index(file->identity(), file->view()->base()).value()->size(),
              2 * kChunks * 8 / 7 + 1);
  }
  // An eighth of 200 chunks.
  EXPECT_EQ(whole, 2u);
}

TEST_F(Changes, AreNotAllIfANodeLostSomething) {
  const auto file = first();
  {
    const auto store = store_of(1);
    const auto segments = store->segments(file->identity());
    ASSERT_TRUE(segments.is_ok());
    for (const auto& one : *segments) {
      ASSERT_TRUE(store->remove_segment(file->identity(), one.segment).is_ok());
    }
  }
  const Status committed = commit(*file);
  ASSERT_TRUE(committed.is_ok()) << committed.message();
  EXPECT_GE(referred, 4 * kChunks);
  const service::Look look{file->identity(), {}, {}, {name_of(3)}, {1}};
  const auto reply = file->client().call(1, look);
  ASSERT_TRUE(reply.is_ok());
  EXPECT_NE(reply->held.front(), service::Held::kNot);
}

TEST_F(Changes, AreNotAllIfTheFileWasCut) {
  const auto file = first();
  for (const NodeIndex node : {0, 1}) {
    ASSERT_TRUE(file->client().call(node, service::Truncate{file->identity(), 64}).is_ok());
  }
  ASSERT_TRUE(file->client().call(file->home, service::SetSize{file->identity(), 64}).is_ok());
  const Status committed = commit(*file);
  ASSERT_TRUE(committed.is_ok()) << committed.message();
  EXPECT_EQ(store_of(0)->index(file->identity(), file->view()->base()).value()->size(), 0u);
}

TEST_F(Changes, AreNotAllIfItIsHealed) {
  const auto file = first();
  file->on_loss = engine::OnLoss::kRefuse;
  ASSERT_TRUE(commit(*file).is_ok());
  EXPECT_EQ(referred, 4 * kChunks);
  EXPECT_EQ(runs_on(*file, 0), 1u);
}

class Sessions : public Protocol {
 protected:
  // Opens, tries to commit and closes; the lineage of what is committed then.
  static std::vector<store::LineageEntry> write_once(Job& job, int commits = 1) {
    const auto file = new_handle(job);
    const Status opened = open(*file);
    EXPECT_TRUE(opened.is_ok()) << opened.message();
    EXPECT_TRUE(write(*file, {0, 1}, {0, 1}).is_ok());
    for (int i = 0; i < commits; ++i) (void)commit(*file);
    EXPECT_TRUE(file->refresh_view().is_ok());
    const auto lineage = file->view()->committed->record.lineage;
    const Status left = engine::leave(*file);
    EXPECT_TRUE(left.is_ok()) << left.message();
    return lineage;
  }
};

TEST_F(Sessions, GoOnWhenTheirJobOpensTheFileAgain) {
  ASSERT_EQ(write_once(job, 2).size(), 1u);
  const auto lineage = write_once(job);
  ASSERT_EQ(lineage.size(), 1u);
  EXPECT_EQ(lineage.front().last, 3u);
}

TEST_F(Sessions, EndWhenAnotherJobHasWritten) {
  write_once(job);
  Job other(cluster, 2, {0, 1}, 1);
  ASSERT_EQ(write_once(other).size(), 2u);
  const auto lineage = write_once(job);
  ASSERT_EQ(lineage.size(), 3u);
  EXPECT_NE(lineage[0].session, lineage[2].session);
}

// What is left of the attempt somewhere has the number that would be next.
TEST_F(Sessions, EndWithAnAttemptThatFailed) {
  write_once(job);
  job.intercept = [](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode != Opcode::kPrepare) return std::nullopt;
    return Status(Code::kIo, "the disk is full");
  };
  ASSERT_EQ(write_once(job).size(), 1u);
  job.intercept = nullptr;
  const auto lineage = write_once(job);
  ASSERT_EQ(lineage.size(), 2u);
  EXPECT_NE(lineage[0].session, lineage[1].session);
}

}  // namespace
}  // namespace dedup::simulation
