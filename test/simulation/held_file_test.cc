// A committed generation read by who has no file open in the job (engine/protocol/held_file.h).
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "engine/protocol/held_file.h"
#include "engine/protocol/leave.h"
#include "test/simulation/chunks.h"
#include "test/simulation/handles.h"

namespace dedup::simulation {
namespace {

using service::Opcode;

constexpr std::size_t kSize = 300;
constexpr std::uint64_t kBlocks = 5;

class HeldFileTest : public testing::Test {
 protected:
  HeldFileTest() : job(cluster, 1, {0, 1, 2}, 1) {
    seed_product(1);
    job.intercept = [this](NodeIndex node, Opcode opcode) -> std::optional<Result<Bytes>> {
      if (opcode == Opcode::kHoldGeneration) ++holds;
      if (lost.contains(node)) return Result<Bytes>(Status(Code::kUnreachable, "it is lost"));
      return std::nullopt;
    };
  }

  static Bytes content(std::uint64_t block, int value) {
    return Bytes(kSize, static_cast<std::byte>(value + static_cast<int>(block)));
  }
  // A chunk of each block, on two nodes of the three.
  void write(const engine::JobFile& file, int value) {
    for (std::uint64_t b = 0; b < kBlocks; ++b) {
      const auto first = static_cast<NodeIndex>(b % 3);
      const auto second = static_cast<NodeIndex>((b + 1) % 3);
      const NodeSet nodes{std::min(first, second), std::max(first, second)};
      ASSERT_TRUE(write_chunk(file, b * kBlockSpan, content(b, value), nodes).is_ok());
    }
  }
  std::unique_ptr<engine::HeldFile> hold(const store::CommitRecord& record) {
    const std::shared_ptr<service::Client> client(std::shared_ptr<void>(), &job.client());
    return std::make_unique<engine::HeldFile>(client, record, std::vector<std::string>{"/%n/s"});
  }
  void expect_read(engine::HeldFile& held, int value) {
    for (std::uint64_t b = 0; b < kBlocks; ++b) {
      const auto block = held.block(b);
      ASSERT_TRUE(block.is_ok()) << block.status().message();
      ASSERT_EQ(block->pieces.size(), 1u);
      const Piece& piece = block->pieces.front();
      const engine::HeldFile::Wanted wanted{{piece.fingerprint, piece.chunk_length},
                                            &block->placements[piece.placement]};
      const auto chunks = held.read({&wanted, 1});
      EXPECT_EQ(chunks.front(), content(b, value)) << "block " << b;
    }
  }

  Cluster cluster{Breakage::kNone};
  std::set<NodeIndex> lost;
  int holds = 0;
  Job job;
};

TEST_F(HeldFileTest, ReadsWhatIsCommittedWhetherOrNotTheJobHasItOpen) {
  auto file = open_file(job);
  write(*file, 1);
  ASSERT_TRUE(commit(*file).is_ok());
  const store::CommitRecord record = file->view()->committed->record;
  const auto held = hold(record);
  EXPECT_EQ(holds, 0) << "nobody is asked before something is";
  expect_read(*held, 1);
  EXPECT_EQ(holds, 3) << "each node once";
  ASSERT_TRUE(engine::leave(*file).is_ok());
  expect_read(*held, 1);
  expect_read(*hold(record), 1);
}

TEST_F(HeldFileTest, ReadsItsGenerationWhateverComesAfterIt) {
  auto file = open_file(job);
  write(*file, 1);
  ASSERT_TRUE(commit(*file).is_ok());
  const store::CommitRecord record = file->view()->committed->record;
  auto held = hold(record);
  expect_read(*held, 1);
  write(*file, 100);
  expect_read(*held, 1);
  ASSERT_TRUE(commit(*file).is_ok());
  write(*file, 200);
  ASSERT_TRUE(commit(*file).is_ok());
  expect_read(*held, 1);
  expect_read(*hold(file->view()->committed->record), 200);
  // It was the last one that kept it.
  held.reset();
  write(*file, 50);
  ASSERT_TRUE(commit(*file).is_ok());
  held = hold(record);
  EXPECT_FALSE(held->block(0).is_ok());
  ASSERT_TRUE(engine::leave(*file).is_ok());
}

TEST_F(HeldFileTest, ReadsWithoutANodeAndSaysWhatItCannotReadWithoutTwo) {
  auto file = open_file(job);
  write(*file, 1);
  ASSERT_TRUE(commit(*file).is_ok());
  const store::CommitRecord record = file->view()->committed->record;
  for (NodeIndex node = 0; node < 3; ++node) {
    lost = {node};
    expect_read(*hold(record), 1);
  }
  lost = {};
  const auto held = hold(record);
  expect_read(*held, 1);
  lost = {0, 1};
  // Chunk 0 is on these two, and so are both copies of some block of the recipe.
  const Fingerprint name = name_of(content(0, 1));
  const auto placement = plan::Placement::copies_on({0, 1});
  const engine::HeldFile::Wanted wanted{{name, kSize}, &placement};
  EXPECT_TRUE(held->read({&wanted, 1}).front().empty());
  bool is_told = false;
  for (std::uint64_t b = 0; b < kBlocks; ++b) {
    const auto block = hold(record)->block(b);
    if (block.is_ok()) continue;
    is_told = true;
    EXPECT_NE(block.status().message().find("recipe of these bytes"), std::string::npos);
  }
  EXPECT_TRUE(is_told);
  lost = {};
  expect_read(*held, 1);
  ASSERT_TRUE(engine::leave(*file).is_ok());
}

// As where a recipe was damaged in a way that nothing shows.
TEST_F(HeldFileTest, AsksForAChunkThatIsSaidToBeNowhere) {
  auto file = open_file(job);
  write(*file, 1);
  ASSERT_TRUE(commit(*file).is_ok());
  const auto held = hold(file->view()->committed->record);
  expect_read(*held, 1);
  for (const auto& placement :
       {plan::Placement::copies_on({2}), plan::Placement::copies_on({9}), plan::Placement()}) {
    const engine::HeldFile::Wanted wanted{{name_of(content(0, 1)), kSize}, &placement};
    EXPECT_EQ(held->read({&wanted, 1}).front(), content(0, 1));
  }
  ASSERT_TRUE(engine::leave(*file).is_ok());
}

}  // namespace
}  // namespace dedup::simulation
