// Writing back in the background, step by step: what else happens to the file meanwhile happens
// after each number of steps. Jobs, stores and the shared file system are in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/protocol/delete_file.h"
#include "engine/protocol/flusher.h"
#include "engine/protocol/leave.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"
#include "store/format.h"
#include "store/real_path.h"
#include "test/simulation/cluster.h"
#include "test/simulation/handles.h"

namespace dedup::simulation {
namespace {

constexpr std::uint64_t kSize = (std::uint64_t{9} << 20) + 5;  // parts for three writers
constexpr std::uint64_t kAt = std::uint64_t{5} << 20;          // of 16 bytes; all else is a hole

// A job with one flusher, of which all ranks are one.
struct World {
  explicit World(Cluster& the_cluster, int number = 1, std::vector<NodeIndex> nodes = {0, 1, 2})
      : cluster(the_cluster), job(std::in_place, the_cluster, number, std::move(nodes), 1) {}

  std::unique_ptr<engine::JobFile> opened(bool writes, hints::Flush flush) {
    auto file = handle_of(*job, job->ranks());
    file->writable = writes;
    file->hints.flush = flush;
    file->hints.flushed = flushed;
    file->flusher = &*flusher;
    const Status status = open(*job, *file);
    EXPECT_TRUE(status.is_ok()) << status.message();
    flusher->drop_unwanted(file->identity());
    return file;
  }
  // 16 bytes of this value, and the file's size; committed.
  Status write(engine::JobFile& file, std::byte value) {
    const Bytes data(16, value);
    Fingerprint name;
    const store::Digest digest = store::format::sha256(data);
    std::copy(digest.begin(), digest.end(), name.bytes.begin());
    const auto placement = plan::Placement::copies_on({0, 1});
    const service::PutChunks put{
        file.identity(), {placement}, {service::PutChunk::sealed(name, 0, data)}};
    for (const NodeIndex node : {0, 1}) DEDUP_TRY(file.client().call(node, put).status());
    const auto begin = static_cast<std::uint32_t>(kAt % kBlockSpan);
    const Block block{{{begin, 16, 0, 16, 0, name}}, {placement}};
    const std::uint64_t number = kAt / kBlockSpan;
    DEDUP_TRY(file.client()
                  .call(file.block_home(number),
                        service::WriteChunks{file.identity(), {{number, block}}, false})
                  .status());
    DEDUP_TRY(file.client().call(file.home, service::ExtendSize{file.identity(), kSize}).status());
    DEDUP_TRY(file.refresh_view());
    return commit(file);
  }
  // Writes the file, and begins to write it back.
  void begin(std::byte value) {
    const auto file = opened(true, hints::Flush::kBackground);
    ASSERT_TRUE(write(*file, value).is_ok());
    const Status left = engine::leave(*file);
    ASSERT_TRUE(left.is_ok()) << left.message();
  }
  // At most so many steps.
  bool steps(int most) {
    while (most-- > 0) {
      if (!flusher->run_one()) return false;
    }
    return true;
  }
  // All that is to be written, and once more what had an error.
  void finish() {
    for (int i = 0; i < 2; ++i) {
      while (flusher->run_one()) {
      }
      flusher->retry();
    }
    while (flusher->run_one()) {
    }
  }

  void kill() {
    flusher.reset();
    job.reset();
  }

  Cluster& cluster;
  hints::Flushed flushed = hints::Flushed::kDrop;
  std::optional<Job> job;
  std::optional<engine::Flusher> flusher{
      service::Executor::Options{service::Executor::Run::kByHand, nullptr}};
};

// In a node's store.
void expect_no_file(const Cluster& cluster, NodeIndex node) {
  for (const auto& [name, size] : cluster.memory().tree(Cluster::disk(node))) {
    const std::size_t at = name.find("/files/");
    EXPECT_TRUE(at == std::string::npos || name.ends_with("/files/")) << name;
  }
}

class SimulatedWriteBack : public testing::Test {
 protected:
  SimulatedWriteBack() { seed_product(1); }

  static std::string path() { return Cluster::path(0); }
  std::vector<std::string> beside() const {
    std::vector<std::string> names;
    for (const auto& [name, size] : cluster.memory().tree("/shared")) names.push_back(name);
    return names;
  }
  bool is_placeholder() const { return store::is_placeholder_at(path()); }
  // The whole file as a plain one, and nothing else beside it or in the stores.
  void expect_plain(std::byte value, bool nothing_else = true) const {
    ASSERT_FALSE(is_placeholder());
    const Bytes content = cluster.memory().content(path());
    ASSERT_EQ(content.size(), kSize);
    for (std::uint64_t at = 0; at < kSize; ++at) {
      const bool is_written = at >= kAt && at < kAt + 16;
      ASSERT_EQ(content[at], is_written ? value : std::byte{0}) << at;
    }
    if (!nothing_else) return;
    EXPECT_EQ(beside().size(), 1u);
    for (const NodeIndex node : {0, 1, 2}) expect_no_file(cluster, node);
  }

  Cluster cluster{Breakage::kNone};
  static constexpr std::byte kFirst{7};
  static constexpr std::byte kSecond{9};
};

// Calls `what` in worlds in which a write-back has taken 0, 1, 2 … steps, until it is through.
void after_each_step(const std::function<void(Cluster& cluster, World& world)>& what) {
  bool is_through = false;
  for (int steps = 0; !is_through; ++steps) {
    SCOPED_TRACE(steps);
    ASSERT_LT(steps, 100) << "it never ends";
    seed_product(1);
    Cluster cluster{Breakage::kNone};
    World world(cluster);
    world.begin(std::byte{7});
    is_through = !world.steps(steps);
    what(cluster, world);
  }
}

TEST_F(SimulatedWriteBack, LeavesThePlainFileAndNothingElse) {
  World world(cluster);
  world.begin(kFirst);
  EXPECT_TRUE(is_placeholder());
  EXPECT_EQ(beside().size(), 2u) << "the copy";
  world.finish();
  expect_plain(kFirst);
}

TEST_F(SimulatedWriteBack, GivesWayToAWriterAtAnyStep) {
  for (const bool commits : {false, true}) {
    after_each_step([&](Cluster& here, World& world) {
      const auto file = world.opened(true, hints::Flush::kBackground);
      EXPECT_FALSE(world.flusher->run_one()) << "its parts are not wanted any more";
      if (commits) {
        ASSERT_TRUE(world.write(*file, kSecond).is_ok());
      }
      world.steps(2);
      ASSERT_TRUE(engine::leave(*file).is_ok());
      world.finish();
      const Bytes content = here.memory().content(path());
      ASSERT_EQ(content.size(), kSize);
      EXPECT_EQ(content[kAt], commits ? kSecond : kFirst);
      EXPECT_EQ(here.memory().tree("/shared").size(), 1u);
    });
  }
}

TEST_F(SimulatedWriteBack, EndsWhenTheLastReaderLeaves) {
  after_each_step([&](Cluster& here, World& world) {
    const bool is_done = !store::is_placeholder_at(path());
    const auto file = world.opened(false, hints::Flush::kNone);
    world.finish();
    EXPECT_EQ(store::is_placeholder_at(path()), !is_done);
    ASSERT_TRUE(engine::leave(*file).is_ok());
    world.finish();
    EXPECT_EQ(here.memory().content(path()).size(), kSize);
    EXPECT_EQ(here.memory().tree("/shared").size(), 1u);
  });
}

TEST_F(SimulatedWriteBack, OfADeletedFileLeavesNothing) {
  after_each_step([&](Cluster& here, World& world) {
    hints::Hints hints;
    hints.store = "/%n/s";
    ASSERT_TRUE(engine::delete_file(world.job->client(), path(), hints).is_ok());
    world.finish();
    EXPECT_TRUE(here.memory().tree("/shared").empty());
    for (const NodeIndex node : {0, 1, 2}) expect_no_file(here, node);
  });
}

TEST_F(SimulatedWriteBack, IsGoneOnWithByTheNextJob) {
  after_each_step([&](Cluster& here, World& world) {
    world.kill();
    World next(here, 2);
    const auto file = next.opened(true, hints::Flush::kClose);
    const Status left = engine::leave(*file);
    ASSERT_TRUE(left.is_ok()) << left.message();
    EXPECT_EQ(here.memory().content(path()).size(), kSize);
    EXPECT_EQ(here.memory().content(path())[kAt], kFirst);
    EXPECT_EQ(here.memory().tree("/shared").size(), 1u);
  });
}

// The plain file, once the next job has finished what was left of writing it back.
Bytes finished_by_the_next_job(Cluster& cluster) {
  const std::string path = Cluster::path(0);
  if (store::is_placeholder_at(path)) {
    World next(cluster, 2);
    const auto file = next.opened(true, hints::Flush::kClose);
    const Status left = engine::leave(*file);
    EXPECT_TRUE(left.is_ok()) << left.message();
  }
  return cluster.memory().content(path);
}

// Whatever call fails: the placeholder stands with everything in the stores, or the plain file; and
// what is left, somebody finishes.
TEST_F(SimulatedWriteBack, SurvivesAFaultAtEveryCall) {
  for (const store::Fault fault :
       {store::Fault::kIo, store::Fault::kLate, store::Fault::kNoSpace}) {
    for (const bool at_shared : {false, true}) {
      std::uint64_t points = 0;
      for (std::uint64_t n = 1; n < 2000; ++n) {
        SCOPED_TRACE(n);
        seed_product(1);
        Cluster here{Breakage::kNone};
        bool struck = false;
        {
          World world(here);
          world.begin(kFirst);
          here.plan_fault(fault, n, at_shared);
          world.finish();
          struck = here.struck();
          here.end_fault();
        }
        const Bytes content = finished_by_the_next_job(here);
        ASSERT_EQ(content.size(), kSize);
        ASSERT_EQ(content[kAt], kFirst);
        if (!struck) break;
        ++points;
      }
      EXPECT_GT(points, 3u);
    }
  }
}

// ---- Cached (dedup_flushed=keep) ----------------------------------------------------------------

// What a reader of the next job is told, all of it read.
std::byte value_read(Cluster& cluster, int job) {
  World next(cluster, job);
  const auto file = next.opened(false, hints::Flush::kNone);
  EXPECT_EQ(file->view()->info.size, kSize);
  const bool is_in_stores = file->view()->committed.has_value();
  EXPECT_TRUE(engine::leave(*file).is_ok());
  const Bytes plain = cluster.memory().content(Cluster::path(0));
  return is_in_stores || plain.size() != kSize ? std::byte{0} : plain[kAt];
}

TEST_F(SimulatedWriteBack, IsCachedIfThatIsWanted) {
  World world(cluster);
  world.flushed = hints::Flushed::kKeep;
  world.begin(kFirst);
  world.finish();
  expect_plain(kFirst, false);
  EXPECT_EQ(beside().size(), 1u);
  const auto file = world.opened(false, hints::Flush::kNone);
  ASSERT_TRUE(file->view()->committed) << "the stores have it";
  EXPECT_EQ(file->view()->info.real_path, service::FileInfo::RealPath::kPlain);
  ASSERT_TRUE(engine::leave(*file).is_ok());
  // Not once it has changed.
  const Bytes content = cluster.memory().content(path());
  cluster.memory().put_content(path(), content);
  const auto again = world.opened(false, hints::Flush::kNone);
  EXPECT_FALSE(again->view()->committed);
  ASSERT_TRUE(engine::leave(*again).is_ok());
}

TEST_F(SimulatedWriteBack, OnlyWhatHasChangedIsWrittenToACachedFile) {
  World world(cluster);
  world.flushed = hints::Flushed::kKeep;
  world.begin(kFirst);
  world.finish();
  world.begin(kSecond);
  int steps = 0;
  while (world.flusher->run_one()) ++steps;
  EXPECT_EQ(steps, 1) << "one block, by one writer";
  expect_plain(kSecond, false);
  EXPECT_EQ(beside().size(), 1u);
}

// Whatever call fails or is the last, while a cached file is written to and written back: the old
// file or the new one; the new one if the commit was said to have succeeded; and whoever comes next
// finishes it.
TEST_F(SimulatedWriteBack, ACachedFileSurvivesAFaultAtEveryCall) {
  for (const store::Fault fault :
       {store::Fault::kIo, store::Fault::kLate, store::Fault::kNoSpace}) {
    for (const bool at_shared : {false, true}) {
      std::uint64_t points = 0;
      for (std::uint64_t n = 1; n < 2000; n += at_shared ? 1 : 7) {
        SCOPED_TRACE(n);
        seed_product(1);
        Cluster here{Breakage::kNone};
        bool struck = false;
        bool is_committed = false;
        {
          World world(here);
          world.flushed = hints::Flushed::kKeep;
          world.begin(kFirst);
          world.finish();
          here.plan_fault(fault, n, at_shared);
          auto file = handle_of(*world.job, world.job->ranks());
          file->writable = true;
          file->hints.flush = hints::Flush::kBackground;
          file->hints.flushed = hints::Flushed::kKeep;
          file->flusher = &*world.flusher;
          if (open(*world.job, *file).is_ok()) {
            is_committed = world.write(*file, kSecond).is_ok();
            (void)engine::leave(*file);
          }
          world.finish();
          struck = here.struck();
          here.end_fault();
        }
        const Bytes content = finished_by_the_next_job(here);
        ASSERT_EQ(content.size(), kSize);
        ASSERT_TRUE(content[kAt] == kSecond || (!is_committed && content[kAt] == kFirst));
        // What the stores may still have is not taken for it unless it is it.
        const std::byte value = value_read(here, 3);
        ASSERT_TRUE(value == std::byte{0} || value == content[kAt]);
        if (!struck) break;
        ++points;
      }
      EXPECT_GT(points, 3u);
    }
  }
}

}  // namespace
}  // namespace dedup::simulation
