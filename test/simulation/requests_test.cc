// How many requests of each kind the protocol makes, and a rank's part in a dump: doc/service.md,
// "Requests of a call". Those of whole jobs are counted by test/integration/test_requests.py.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>

#include "engine/chunks/chunk_writer.h"
#include "engine/chunks/cut_chunks.h"
#include "engine/chunks/name_chunks.h"
#include "engine/chunks/stored_chunks.h"
#include "engine/protocol/leases.h"
#include "engine/protocol/reader.h"
#include "service/messages/block_home.h"
#include "service/messages/store_node.h"
#include "store/format.h"
#include "test/hooks/names.h"
#include "test/simulation/handles.h"

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
  int speaker_for(NodeIndex node) const override { return node; }
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
  void exchange_letters(std::span<const int>, std::span<const Letter>, std::vector<Letter>&,
                        const std::function<void()>&) const override {
    ADD_FAILURE() << "nothing here needs it";
  }

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

  std::unique_ptr<engine::JobFile> open() { return open_file(job); }

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
    const NodeIndex home = file.block_home(0);
    const service::WriteChunks chunks{file.identity(), {{0, block}}, false};
    DEDUP_TRY(file.client().call(home, chunks).status());
    return extend(file, kSize);
  }

  // What all ranks of a handle together ask for when each does `step`.
  template <typename Step>
  Counts of_all_ranks(const engine::JobFile& like, Step step) {
    counts.clear();
    std::vector<Bytes> told;
    for (int r = 0; r < kRanks; ++r) {
      const RankOfMany rank(r, told);
      const auto file = handle_of(job, rank);
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

// A rank's part in the dumps of a file on one node, one chunk at a time.
class DumpRequests : public Requests {
 protected:
  // What a chunk is called in the end, and what was asked for its sake.
  struct Dumped {
    Fingerprint name;
    Counts counts;
    // Whatever its kind, a request that is made for a chunk names it; a segment's is not.
    int namings() const {
      return std::accumulate(counts.begin(), counts.end(), 0, [](int sum, const auto& kind) {
        return kind.first == Opcode::kOpenSegment ? sum : sum + kind.second;
      });
    }
  };

  // `twin`: whether another rank may have the same.
  Dumped dump(const Bytes& bytes, bool twin) {
    counts.clear();
    const engine::DumpRun run{at_, bytes.data(), bytes.size()};
    engine::RunCursor cursor(std::span(&run, 1), static_cast<std::uint32_t>(kSize));
    std::vector<engine::DumpedPiece> pieces;
    pieces.reserve(1);
    engine::FirstError error;
    engine::NamedChunks chunks(engine::cut_distinct(cursor, 2, test::keyed_namer(), pieces, error),
                               engine::NamedChunks::Kind::kOpen);
    EXPECT_EQ(chunks.size(), 1u);
    engine::StoredChunks stored(job.client(), store_, file_->identity());
    stored.find_committed(chunks);
    engine::share_twins(chunks, {static_cast<std::uint8_t>(twin ? 1 : 0)});
    EXPECT_TRUE(stored.look(chunks, {file_->handle, ++round_}).is_ok());
    engine::name_the_rest(chunks, singles_);
    engine::ChunkWriter writer(job.client(), store_, file_->identity(), false);
    if (!chunks.is_held(0)) {
      const std::uint32_t here = writer.placements().number(here_);
      EXPECT_TRUE(
          writer
              .keep(std::array{engine::StoredChunk{chunks.name(0), chunks.data(0), here,
                                                   chunks.is_single(0), false, chunks.checksum(0)}})
              .is_ok());
      EXPECT_TRUE(writer.write_out().is_ok());
    }
    EXPECT_TRUE(writer.settle(true).is_ok());
    EXPECT_TRUE(error.none());
    const Dumped dumped{chunks.name(0), counts};
    const Block block{{{0, kSize, 0, kSize, 0, dumped.name}}, {here_}};
    const std::uint64_t number = at_ / kBlockSpan;
    const NodeIndex home = file_->block_home(number);
    const service::WriteChunks publish{file_->identity(), {{number, block}}, false};
    EXPECT_TRUE(job.client().call(home, publish).is_ok());
    at_ += kBlockSpan;
    EXPECT_TRUE(engine::extend(*file_, at_).is_ok());
    return dumped;
  }
  void commit() {
    ASSERT_TRUE(simulation::commit(*file_).is_ok());
    file_->local->forget_segments();
  }
  static Bytes bytes_of(int content) { return Bytes(kSize, static_cast<std::byte>(content)); }

  std::unique_ptr<engine::JobFile> file_ = open();
  engine::OwnStore store_{
      [this](std::uint64_t number, store::SegmentUse use) {
        return file_->local->create_segment(number, use);
      },
      false, [this](std::uint64_t number) { return file_->local->segment_size(number); },
      [this]() -> Result<engine::OwnIndex> {
        const auto view = file_->view();
        DEDUP_ASSIGN(auto reader, file_->local->index(view->base()));
        return engine::OwnIndex{std::move(reader), view->nodes_of(view->base())};
      }};
  plan::Placement here_ = plan::Placement::copies_on({job.client().self()});
  SingleNumbers singles_;
  std::uint64_t round_ = 0;
  std::uint64_t at_ = 0;
};

TEST_F(DumpRequests, NameAChunkTwiceAtMost) {
  // In a first generation, and in one after another that has chunks of both kinds.
  for (int generation = 0; generation < 3; ++generation) {
    SCOPED_TRACE(generation);
    const int content = 1 + 10 * generation;
    for (const bool twin : {false, true}) {
      const Bytes bytes = bytes_of(content + (twin ? 1 : 0));
      const Dumped first = dump(bytes, twin);
      EXPECT_EQ(first.namings(), 2);
      EXPECT_TRUE(first.counts.contains(Opcode::kLook));
      EXPECT_TRUE(first.counts.contains(Opcode::kRegister));
      EXPECT_EQ(kind_of(first.name), twin ? NameKind::kKeyed : NameKind::kKeyedSingle);
      // It is there now: found under the name that it has.
      for (const bool has_twin_now : {twin, true}) {
        const Dumped again = dump(bytes, has_twin_now);
        EXPECT_EQ(again.name, first.name);
        EXPECT_EQ(again.namings(), 1);
        EXPECT_EQ(again.counts, (Counts{{Opcode::kLook, 1}}));
      }
    }
    commit();
    ASSERT_FALSE(HasFatalFailure());
    // Of the generation that is committed now nobody has to be asked.
    for (const bool was_twin : {false, true}) {
      for (const bool twin : {false, true}) {
        const Dumped again = dump(bytes_of(content + (was_twin ? 1 : 0)), twin);
        EXPECT_EQ(again.counts, Counts{});
        EXPECT_EQ(kind_of(again.name), was_twin ? NameKind::kKeyed : NameKind::kKeyedSingle);
      }
    }
  }
}

TEST_F(DumpRequests, OfWhatFailsGiveNothingBackThatWasNotClaimed) {
  const Bytes bytes = bytes_of(1);
  const Fingerprint shared = test::content_name(bytes);
  // Somebody else's copy of the same chunk is on its way.
  const service::Claim claim{file_->identity(), {shared}};
  ASSERT_EQ(job.client().call(job.client().self(), claim)->granted[0], 1);
  engine::ChunkWriter writer(job.client(), store_, file_->identity(), false);
  const std::uint32_t here = writer.placements().number(here_);
  const std::array own{
      engine::StoredChunk{shared, bytes, here, false, false, fast_hash(bytes).low}};
  ASSERT_TRUE(writer.keep(own).is_ok());
  counts.clear();
  ASSERT_TRUE(writer.settle(false).is_ok());
  EXPECT_EQ(counts, Counts{});
  EXPECT_EQ(job.client().call(job.client().self(), claim)->granted[0], 0);
  // Copies are claimed, and given back.
  const Bytes other = bytes_of(2);
  const Fingerprint copy = test::content_name(other);
  const std::array copies{engine::StoredChunk{copy, other, writer.placements().number(here_), false,
                                              true, fast_hash(other).low}};
  ASSERT_TRUE(writer.store_copies(copies, {file_->handle, 1}).is_ok());
  ASSERT_TRUE(writer.settle(false).is_ok());
  const service::Claim again{file_->identity(), {copy}};
  EXPECT_EQ(job.client().call(job.client().self(), again)->granted[0], 1);
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
