// store/flush.h: everything is flushed, at once where that makes sense, and errors are told.
#include "store/flush.h"

#include <gtest/gtest.h>
#include <linux/magic.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>

#include "store/fs.h"
#include "test/hooks/forwarding_system.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::TempDir;

// Counts what is flushed; holds each flush until `at_once` are under way; the n-th fails.
class CountingSystem : public ForwardingSystem {
 public:
  explicit CountingSystem(std::size_t at_once) : ForwardingSystem(kernel()), at_once_(at_once) {}

  bool takes_calls_at_once() const override { return takes_at_once; }
  int statfs(const char*, struct statfs* about) override {
    *about = {};
    about->f_type = type;
    return 0;
  }
  int fsync(int) override { return count(); }
  int fdatasync(int) override { return count(); }

  bool takes_at_once = true;
  decltype(::statfs::f_type) type = 0;
  std::size_t fails = 0;
  std::size_t flushed = 0;

 private:
  int count() {
    std::unique_lock lock(mutex_);
    const std::size_t mine = ++flushed;
    changed_.notify_all();
    changed_.wait(lock, [this] { return flushed >= at_once_; });
    if (mine != fails) return 0;
    errno = EIO;
    return -1;
  }

  std::size_t at_once_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

class Flush : public testing::Test {
 protected:
  // Two files and a directory, flushed by `other`.
  Status flush(CountingSystem& other) {
    for (const char* name : {"a", "b"}) EXPECT_TRUE(fs::create_new(dir_ / name).is_ok());
    System& before = use_system(other);
    Status status = flush_together({dir_ / "a", dir_ / "b"}, {dir_.path()});
    use_system(before);
    return status;
  }

  TempDir dir_;
};

TEST_F(Flush, IsAtOnce) {
  CountingSystem all(3);
  EXPECT_TRUE(flush(all).is_ok());
  EXPECT_EQ(all.flushed, 3U);
}

TEST_F(Flush, IsInTurnWhereCallsAreCountedAndInMemory) {
  CountingSystem counted(0);
  counted.takes_at_once = false;
  counted.fails = 2;
  EXPECT_EQ(flush(counted).code(), Code::kIo);
  EXPECT_EQ(counted.flushed, 2U);  // what follows a failure is not begun
}

TEST_F(Flush, IsInTurnInMemory) {
  CountingSystem memory(0);
  memory.type = TMPFS_MAGIC;
  memory.fails = 1;
  EXPECT_EQ(flush(memory).code(), Code::kIo);
  EXPECT_EQ(memory.flushed, 1U);
}

TEST_F(Flush, TellsWhatFailedAfterAllEnded) {
  for (std::size_t n = 1; n <= 3; ++n) {
    const TempDir another;
    CountingSystem one(3);
    one.fails = n;
    for (const char* name : {"a", "b"}) ASSERT_TRUE(fs::create_new(another / name).is_ok());
    System& before = use_system(one);
    const Status status = flush_together({another / "a", another / "b"}, {another.path()});
    use_system(before);
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_EQ(one.flushed, 3U);
  }
}

TEST_F(Flush, NamesWhatIsNotThere) {
  EXPECT_TRUE(flush_together({}, {}).is_ok());
  const Status status = flush_together({dir_ / "none"}, {dir_.path()});
  EXPECT_EQ(status.code(), Code::kNoSuchFile);
  EXPECT_NE(status.message().find("none"), std::string::npos);
}

}  // namespace
}  // namespace dedup::store
