// Reading what nobody can write to (engine/protocol/settled.h): nobody is asked, and whoever begins
// to write is noticed by the next read.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/protocol/leave.h"
#include "engine/protocol/reader.h"
#include "service/messages/block_home.h"
#include "service/messages/store_node.h"
#include "store/format.h"
#include "test/hooks/names.h"
#include "test/simulation/handles.h"

namespace dedup::simulation {
namespace {

using service::Opcode;

constexpr std::uint64_t kSize = 64;
constexpr std::uint64_t kBlocks = 3;

// Requests that are under way at once are carried out in an order that the seed says.
class Settled : public testing::TestWithParam<std::uint64_t> {
 protected:
  Settled() : job(cluster, 1, {0, 1}, GetParam()) {
    seed_product(GetParam());
    job.intercept = [this](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
      ++counts[opcode];
      if (opcode == deaf_to) return Result<Bytes>(Status(Code::kUnreachable, "not to be had"));
      return std::nullopt;
    };
  }

  std::unique_ptr<engine::JobFile> open_to(bool write, std::size_t name = 0) {
    auto file = handle_of(job, job.ranks(), name);
    file->writable = write;
    const Status opened = open(job, *file);
    EXPECT_TRUE(opened.is_ok()) << opened.message();
    return file;
  }

  // A chunk of this byte at the begin of each block.
  static void write(engine::JobFile& file, int value) {
    for (std::uint64_t b = 0; b < kBlocks; ++b) {
      const Bytes bytes(kSize, static_cast<std::byte>(value + static_cast<int>(b)));
      const Fingerprint name = test::content_name(bytes);
      const auto placement = plan::Placement::copies_on({0, 1});
      const service::PutChunks put{
          file.identity(), {placement}, {service::PutChunk::sealed(name, 0, bytes)}};
      for (const NodeIndex node : {0, 1}) ASSERT_TRUE(file.client().call(node, put).is_ok());
      const Block block{{{0, kSize, 0, kSize, 0, name}}, {placement}};
      const service::WriteChunks chunks{file.identity(), {{b, block}}, false};
      ASSERT_TRUE(file.client().call(file.block_home(b), chunks).is_ok());
    }
    ASSERT_TRUE(engine::extend(file, (kBlocks - 1) * kBlockSpan + kSize).is_ok());
  }
  void write_and_close(int value, std::size_t name = 0) {
    const auto file = open_to(true, name);
    write(*file, value);
    ASSERT_TRUE(commit(*file).is_ok());
    ASSERT_TRUE(engine::leave(*file).is_ok());
  }

  // What is read first, and what that took.
  void read(engine::JobFile& file, int value) {
    counts.clear();
    for (std::uint64_t b = 0; b < kBlocks; ++b) {
      Bytes out(kSize);
      const std::int64_t zero = 0;
      const auto length = static_cast<std::int64_t>(out.size());
      const plan::FlatType whole{{&zero, 1}, {&length, 1}, length, length};
      const plan::Access access{
          static_cast<std::int64_t>(b * kBlockSpan), whole, 0, out.data(), whole, out.size()};
      const auto bytes = engine::read_access(file, access);
      ASSERT_TRUE(bytes.is_ok()) << bytes.status().message();
      ASSERT_EQ(*bytes, kSize);
      ASSERT_EQ(out, Bytes(kSize, static_cast<std::byte>(value + static_cast<int>(b))));
    }
  }
  // Its being awaited may be carried out after the look whether it is.
  void read_until_settled(engine::JobFile& file, int value) {
    for (int i = 0; i < 20; ++i) {
      read(file, value);
      if (counts.empty()) return;
    }
    FAIL() << "it is asked each time";
  }
  bool asks_homes() const {
    return counts.contains(Opcode::kGetSize) && counts.contains(Opcode::kResolve);
  }

  Cluster cluster{Breakage::kNone};
  std::map<Opcode, int> counts;
  std::optional<Opcode> deaf_to;
  Job job;
};

TEST_P(Settled, NobodyIsAskedUntilSomebodyCanWrite) {
  write_and_close(1);
  const auto reader = open_to(false);
  read_until_settled(*reader, 1);
  read(*reader, 1);
  EXPECT_TRUE(counts.empty());
  for (int value = 20; value < 80; value += 20) {
    const auto writer = open_to(true);
    read(*reader, value == 20 ? 1 : value - 20);
    EXPECT_TRUE(asks_homes());
    write(*writer, value);
    read(*reader, value);
    EXPECT_TRUE(asks_homes());
    ASSERT_TRUE(commit(*writer).is_ok());
    read(*reader, value);
    ASSERT_TRUE(engine::leave(*writer).is_ok());
    // It stays attached for writing until all have closed it: its own node is not asked again.
    read(*reader, value);
    EXPECT_TRUE(asks_homes());
    EXPECT_FALSE(counts.contains(Opcode::kAskWriters));
  }
  ASSERT_TRUE(engine::leave(*reader).is_ok());
}

TEST_P(Settled, ANewGenerationIsReadByWhoOpensItAfterwards) {
  for (int value = 1; value < 10; value += 3) {
    write_and_close(value);
    const auto reader = open_to(false);
    read_until_settled(*reader, value);
    ASSERT_TRUE(engine::leave(*reader).is_ok());
  }
}

TEST_P(Settled, AFileThatIsMadeAnewIsAnother) {
  write_and_close(1);
  const auto old = open_to(false);
  read_until_settled(*old, 1);
  ASSERT_TRUE(engine::leave(*old).is_ok());
  cluster.memory().unlink(Cluster::path(0).c_str());
  write_and_close(100);
  const auto reader = open_to(false);
  read_until_settled(*reader, 100);
  ASSERT_TRUE(engine::leave(*reader).is_ok());
}

// All files of a process are watched as one: what is known of the others stays.
TEST_P(Settled, AnotherFilesWriterCostsTwoRequests) {
  write_and_close(1, 0);
  write_and_close(50, 1);
  const auto first = open_to(false, 0);
  const auto second = open_to(false, 1);
  read_until_settled(*first, 1);
  read_until_settled(*second, 50);
  const auto writer = open_to(true, 1);
  write(*writer, 90);
  read(*second, 90);
  // The request that waits may come after the question whether it does: then homes are asked.
  for (int i = 0; i == 0 || (asks_homes() && i < 20); ++i) read(*first, 1);
  EXPECT_FALSE(counts.contains(Opcode::kReadShard) || counts.contains(Opcode::kLocate));
  read(*first, 1);
  EXPECT_TRUE(counts.empty());
  ASSERT_TRUE(engine::leave(*first).is_ok());
  read(*second, 90);
}

TEST_P(Settled, WhereNobodyTellsHomesAreAsked) {
  deaf_to = Opcode::kAwaitWriter;
  write_and_close(1);
  const auto reader = open_to(false);
  for (int i = 0; i < 3; ++i) {
    read(*reader, 1);
    EXPECT_TRUE(asks_homes());
  }
  const auto writer = open_to(true);
  write(*writer, 30);
  read(*reader, 30);
}

INSTANTIATE_TEST_SUITE_P(Orders, Settled, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace dedup::simulation
