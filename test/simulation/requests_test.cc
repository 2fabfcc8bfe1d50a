// How many requests of each kind the protocol makes: doc/service.md, "Requests of a call". What the
// dump asks is counted by test/integration/test_requests.py.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "engine/protocol/find_and_attach.h"
#include "engine/protocol/generation_commit.h"
#include "engine/protocol/leases.h"
#include "engine/protocol/reader.h"
#include "service/messages/block_home.h"
#include "service/messages/homes.h"
#include "service/messages/store_node.h"
#include "store/format.h"
#include "test/simulation/cluster.h"

namespace dedup::simulation {
namespace {

using service::LockKind;
using service::Opcode;
using Counts = std::map<Opcode, int>;

// One of several ranks. Rank 0 plays a collective step first, and what it tells is then told to the
// others, who play it one after the other: they may wait for rank 0, and it does not for them.
class RankOfMany final : public Ranks {
 public:
  RankOfMany(int rank, std::vector<Bytes>& told) : rank_(rank), told_(told) {}

  int rank() const override { return rank_; }
  int size() const override { return 4; }
  bool speaks_for(NodeIndex node) const override { return node == rank_; }
  // Nobody else is there, and no step here fails.
  Status combine(Combining, std::span<std::uint64_t>, Waiting) const override {
    return Status::ok();
  }
  void broadcast(Bytes& bytes, int root) const override {
    EXPECT_EQ(root, 0);
    if (rank_ == 0) {
      told_.push_back(bytes);
    } else {
      bytes = told_.at(heard_++);
    }
  }
  void broadcast(Id128&) const override { ADD_FAILURE() << "no step here needs it"; }
  std::vector<Bytes> gather(const Bytes& mine) const override { return {mine}; }
  std::vector<Bytes> exchange(const std::vector<Bytes>& to) const override { return to; }

  // Whether it was told all that rank 0 told.
  bool heard_all() const { return rank_ == 0 || heard_ == told_.size(); }

 private:
  int rank_;
  std::vector<Bytes>& told_;
  mutable std::size_t heard_ = 0;
};

class Requests : public testing::Test {
 protected:
  static constexpr int kRanks = 4;
  static constexpr std::uint64_t kSize = 64;

  Requests() : job(cluster, 1, {0, 1}, 1) {
    seed_product(1);
    job.intercept = [this](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
      ++counts[opcode];
      return std::nullopt;
    };
  }

  std::unique_ptr<engine::JobFile> handle_of(const Ranks& ranks) {
    auto file = std::make_unique<engine::JobFile>(job.client(), ranks);
    file->path = Cluster::path(0);
    file->hints.store = "/%n/s";
    file->hints.replication = 2;
    file->home = service::file_home(file->path, file->nodes());
    file->writable = true;
    file->handle = Id128::random();
    return file;
  }

  std::unique_ptr<engine::JobFile> open() {
    auto file = handle_of(job.ranks());
    bool created = false;
    EXPECT_TRUE(engine::find_and_attach(*file, {true, false}, created).is_ok());
    auto local = engine::LocalFile::get(file->client(), file->identity(), Cluster::disk(0) + "/s");
    EXPECT_TRUE(local.is_ok());
    file->local = *local;
    return file;
  }

  // kSize bytes at the file's begin, on both nodes.
  static Status write(engine::JobFile& file) {
    const Bytes bytes(kSize, std::byte{7});
    Fingerprint fingerprint;
    const store::Digest digest = store::format::sha256(bytes);
    std::copy(digest.begin(), digest.end(), fingerprint.bytes.begin());
    const auto placement = plan::Placement::copies_on({0, 1});
    const service::PutChunks put{
        file.identity(), {placement}, {service::PutChunk::sealed(fingerprint, 0, bytes)}};
    for (const NodeIndex node : {0, 1}) DEDUP_TRY(file.client().call(node, put).status());
    const Block block{{{0, kSize, 0, kSize, 0, fingerprint}}, {placement}};
    const NodeIndex home = service::block_home(file.identity(), 0, file.nodes());
    const service::WriteChunks chunks{file.identity(), {{0, block}}, false};
    DEDUP_TRY(file.client().call(home, chunks).status());
    return extend(file, kSize);
  }

  static Status commit(engine::JobFile& file) {
    DEDUP_ASSIGN(const auto lock, engine::JobLock::take_with_view(file, LockKind::kCommit));
    return engine::GenerationCommit(file).run([] { return Status::ok(); });
  }

  // What all ranks of a handle together ask for when each does `step`.
  template <typename Step>
  Counts of_all_ranks(const engine::JobFile& like, Step step) {
    counts.clear();
    std::vector<Bytes> told;
    for (int r = 0; r < kRanks; ++r) {
      const RankOfMany rank(r, told);
      const auto file = handle_of(rank);
      file->set_view(engine::FileView(*like.view()));
      file->local = like.local;
      step(*file);
      EXPECT_TRUE(rank.heard_all());
    }
    return counts;
  }

  Cluster cluster{Breakage::kNone};
  Job job;
  Counts counts;
};

TEST_F(Requests, OfAnOpenAreTwoToEachNode) {
  const auto file = open();
  const Counts expected{
      {Opcode::kOpenBegin, 1}, {Opcode::kFind, 2}, {Opcode::kAttach, 2}, {Opcode::kOpenEnd, 1}};
  EXPECT_EQ(counts, expected);
}

TEST_F(Requests, OfACollectiveWriteAreTwoToTheFileHome) {
  const auto file = open();
  const Counts all = of_all_ranks(*file, [](engine::JobFile& one) {
    Id128 base = Id128::random();
    auto lock = engine::JobLock::take_together(one, LockKind::kDump, base);
    ASSERT_TRUE(lock.is_ok());
    EXPECT_EQ(lock->has_value(), one.rank() == 0);
    EXPECT_EQ(base, one.view()->base());
    EXPECT_TRUE(engine::JobLock::release_together(one, *lock, kSize).is_ok());
  });
  EXPECT_EQ(all, (Counts{{Opcode::kLock, 1}, {Opcode::kUnlock, 1}}));
  EXPECT_EQ(*engine::file_size(*file), kSize);
}

TEST_F(Requests, OfASmallCollectiveWriteIsOneToTheFileHome) {
  const auto file = open();
  const Counts all = of_all_ranks(*file, [](engine::JobFile& one) {
    EXPECT_TRUE(engine::extend_together(one, kSize).is_ok());
  });
  EXPECT_EQ(all, (Counts{{Opcode::kExtendSize, 1}}));
  EXPECT_EQ(*engine::file_size(*file), kSize);
}

TEST_F(Requests, OfACollectiveReadAskForTheSizeOnce) {
  const auto file = open();
  ASSERT_TRUE(write(*file).is_ok());
  const auto read = [](engine::JobFile& one, auto how) {
    std::array<std::byte, 2 * kSize> out{};
    const std::int64_t zero = 0;
    const std::int64_t length = out.size();
    const plan::FlatType whole{{&zero, 1}, {&length, 1}, length, length};
    const auto bytes = how(one, plan::Access{0, whole, 0, out.data(), whole, out.size()});
    ASSERT_TRUE(bytes.is_ok()) << bytes.status().message();
    EXPECT_EQ(*bytes, kSize);
    EXPECT_EQ(out[kSize - 1], std::byte{7});
  };
  Counts all = of_all_ranks(*file, [&](engine::JobFile& one) { read(one, engine::read_together); });
  EXPECT_EQ(all[Opcode::kGetSize], 1);
  EXPECT_EQ(all[Opcode::kResolve], kRanks);
  all = of_all_ranks(*file, [&](engine::JobFile& one) { read(one, engine::read_access); });
  EXPECT_EQ(all[Opcode::kGetSize], kRanks);
  // Where a lock orders reads and writes, each has its own, and asks while it has it.
  all = of_all_ranks(*file, [&](engine::JobFile& one) {
    one.atomic = true;
    read(one, engine::read_together);
  });
  EXPECT_EQ(all[Opcode::kGetSize], kRanks);
  EXPECT_EQ(all[Opcode::kLock], kRanks);
}

TEST_F(Requests, OfACommitAreFiveToTheFileHome) {
  const auto file = open();
  ASSERT_TRUE(write(*file).is_ok());
  counts.clear();
  ASSERT_TRUE(commit(*file).is_ok());
  for (const Opcode opcode : {Opcode::kLock, Opcode::kGetSize, Opcode::kNextGeneration,
                              Opcode::kCommitDone, Opcode::kUnlock}) {
    EXPECT_EQ(counts[opcode], 1) << static_cast<int>(opcode);
  }
  EXPECT_EQ(counts[Opcode::kGetFile], 0);
  for (const Opcode opcode : {Opcode::kWriteIndex, Opcode::kPrepare, Opcode::kCommit,
                              Opcode::kEndCommit, Opcode::kCollect}) {
    EXPECT_EQ(counts[opcode], 2) << static_cast<int>(opcode);
  }
  // Another handle learns of the new generation with its next lock, and asks for nothing else.
  const auto other = open();
  ASSERT_TRUE(write(*file).is_ok());
  ASSERT_TRUE(commit(*file).is_ok());
  ASSERT_NE(other->view()->base(), file->view()->base());
  counts.clear();
  ASSERT_TRUE(engine::JobLock::take(*other, LockKind::kDump).is_ok());
  EXPECT_EQ(other->view()->base(), file->view()->base());
  EXPECT_EQ(counts, (Counts{{Opcode::kLock, 1}, {Opcode::kUnlock, 1}}));
}

TEST_F(Requests, TheSizeIsToldAlsoWhereTheLockWasLost) {
  const auto file = open();
  auto lock = engine::JobLock::take(*file, LockKind::kDump);
  ASSERT_TRUE(lock.is_ok());
  job.intercept = [](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode != Opcode::kUnlock) return std::nullopt;
    return Status(Code::kUnreachable, "the connection broke");
  };
  EXPECT_TRUE(lock->release(kSize).is_ok());
  EXPECT_EQ(*engine::file_size(*file), kSize);
}

}  // namespace
}  // namespace dedup::simulation
