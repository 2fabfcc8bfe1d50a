// What stands at a real path; files that no name leads to.
#include "store/real_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/fields.h"
#include "store/store.h"
#include "store/unnamed.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::put_placeholder;
using test::put_text;
using test::TempDir;

TEST(RealPath, TellsWhatIsThere) {
  using Kind = PathState::Kind;
  TempDir dir;
  EXPECT_EQ(look_at(dir / "f")->kind, Kind::kNothing);
  EXPECT_EQ(look_at(dir / "no/f")->kind, Kind::kNoDirectory);
  put_text(dir / "f", "");
  EXPECT_EQ(look_at(dir / "f")->kind, Kind::kPlain);
  put_text(dir / "f", "text");
  EXPECT_EQ(look_at(dir / "f")->kind, Kind::kPlain);
  EXPECT_EQ(look_at(dir / "f")->stamp.size, 4u);
  EXPECT_EQ(look_at(dir / "f/below")->kind, Kind::kNoDirectory);
  put_placeholder(dir / "f", 1);
  EXPECT_EQ(look_at(dir / "f")->kind, Kind::kPlaceholder);
  EXPECT_FALSE(look_at(dir / "f")->is_copy());
  std::filesystem::copy_file(dir / "f", dir / "copy");
  EXPECT_TRUE(look_at(dir / "copy")->is_copy());
  std::filesystem::rename(dir / "f", dir / "g");
  EXPECT_FALSE(look_at(dir / "g")->is_copy());
  std::filesystem::resize_file(dir / "g", 2000);
  EXPECT_EQ(look_at(dir / "g").status().code(), Code::kCorrupt);
  EXPECT_EQ(look_at(dir.path()).status().code(), Code::kBadFile);
}

TEST(RealPath, CreatesAnEmptyFileOnce) {
  TempDir dir;
  const auto made = create_empty(dir / "f");
  ASSERT_TRUE(made.is_ok());
  EXPECT_EQ(made->stamp, look_at(dir / "f")->stamp);
  EXPECT_EQ(create_empty(dir / "f").status().code(), Code::kFileExists);
  EXPECT_EQ(create_empty(dir / "no/f").status().code(), Code::kNoSuchFile);
}

TEST(SeenDirectory, IsSharedOnOneSystemOrOnANetworkFileSystem) {
  Seen a;
  a.kernel.bytes[0] = 1;
  a.directory = {0x6969, 0, 5};
  a.device = 7;
  Seen b = a;
  EXPECT_TRUE(is_shared(a, b));
  b.device = 8;
  EXPECT_FALSE(is_shared(a, b));
  b.kernel.bytes[0] = 2;
  EXPECT_TRUE(is_shared(a, b));  // NFS: each system has its own device numbers
  b.directory.inode = 6;
  EXPECT_FALSE(is_shared(a, b));
  b = a;
  a.directory.type = b.directory.type = 0xef53;  // ext4
  EXPECT_TRUE(is_shared(a, b));
  b.kernel.bytes[0] = 2;
  EXPECT_FALSE(is_shared(a, b));
  a.directory = b.directory = {};  // it is nowhere
  EXPECT_TRUE(is_shared(a, b));
}

TEST(SeenDirectory, IsNowhereOnlyIfNothingIsThere) {
  EXPECT_EQ(see_directory("/no/such/directory/f")->directory, DirectoryId{});
  EXPECT_EQ(see_directory("/dev/null/d/f")->directory, DirectoryId{});
  EXPECT_FALSE(see_directory("/" + std::string(300, 'x') + "/f").is_ok());
}

TEST(SeenDirectory, SurvivesEncoding) {
  const Seen seen = *see_directory("/tmp/f");
  const auto back = decoded<Seen>(encoded(seen));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kernel, seen.kernel);
  EXPECT_EQ(back->directory, seen.directory);
  EXPECT_EQ(back->device, seen.device);
  EXPECT_NE(seen.directory.inode, 0u);
}

// ---- Files that no name leads to --------------------------------------------------------------

class UnnamedTest : public testing::Test {
 protected:
  void SetUp() override {
    auto store = Store::open(dir_ / "store", true);
    ASSERT_TRUE(store.is_ok());
    store_ = std::move(*store);
    std::filesystem::create_directory(dir_ / "data");
  }
  // A committed file of that path; its placeholder stands there too if asked.
  void commit(std::uint8_t identity, const std::string& path, bool named) {
    CommitRecord record;
    record.identity.bytes[0] = identity;
    record.attempt.bytes[0] = identity;
    record.number = 1;
    record.path = path;
    record.directory = *directory_id(path);
    ASSERT_TRUE(store_->adopt(record).is_ok());
    if (named) put_placeholder(path, identity);
  }
  bool is_there(std::uint8_t identity) {
    Id128 id;
    id.bytes[0] = identity;
    return store_->newest(id).is_ok();
  }

  TempDir dir_;
  std::unique_ptr<Store> store_;
};

TEST_F(UnnamedTest, GoesIfItsDirectoryHasNoPlaceholderOfIt) {
  commit(1, dir_ / "data/a", true);
  commit(2, dir_ / "data/b", true);
  commit(3, dir_ / "data/c", false);
  commit(4, dir_ / "data/d", false);
  std::filesystem::rename(dir_ / "data/a", dir_ / "data/renamed");
  put_text(dir_ / "data/c", "plain");
  Id128 own;
  own.bytes[0] = 4;
  const auto dropped = drop_unnamed(*store_, {own});
  ASSERT_TRUE(dropped.is_ok());
  EXPECT_EQ(*dropped, 1u);
  EXPECT_TRUE(is_there(1) && is_there(2) && !is_there(3) && is_there(4));
  EXPECT_EQ(*drop_unnamed(*store_, {}), 1u);
  EXPECT_FALSE(is_there(4));
}

TEST_F(UnnamedTest, StaysIfItsPlaceholderWasMovedToADirectoryThatTheStoreKnows) {
  std::filesystem::create_directories(dir_ / "other/known");
  std::filesystem::create_directories(dir_ / "data/old");
  std::filesystem::create_directories(dir_ / "far/away");
  commit(1, dir_ / "data/a", true);
  commit(2, dir_ / "data/b", true);
  commit(3, dir_ / "data/c", true);
  commit(4, dir_ / "data/d", true);
  commit(5, dir_ / "other/known/e", true);
  std::filesystem::rename(dir_ / "data/a", dir_ / "other/known/a");
  std::filesystem::rename(dir_ / "data/b", dir_ / "data/old/b");
  std::filesystem::rename(dir_ / "data/c", dir_ / "c");
  std::filesystem::rename(dir_ / "data/d", dir_ / "far/away/d");
  Id128 id;
  id.bytes[0] = 4;
  // It was opened there.
  ASSERT_TRUE(store_->add_path(id, dir_ / "far/away/d").is_ok());
  EXPECT_EQ(*drop_unnamed(*store_, {}), 0u);
  std::filesystem::remove(dir_ / "far/away/d");
  std::filesystem::remove(dir_ / "c");
  EXPECT_EQ(*drop_unnamed(*store_, {}), 2u);
  EXPECT_TRUE(is_there(1) && is_there(2) && !is_there(3) && !is_there(4) && is_there(5));
}

TEST_F(UnnamedTest, StaysIfItsDirectoryIsNotTheSame) {
  commit(1, dir_ / "data/a", false);
  std::filesystem::rename(dir_ / "data", dir_ / "away");
  EXPECT_EQ(*drop_unnamed(*store_, {}), 0u);
  std::filesystem::create_directory(dir_ / "data");
  EXPECT_EQ(*drop_unnamed(*store_, {}), 0u);
  EXPECT_TRUE(is_there(1));
}

TEST_F(UnnamedTest, StaysIfSomePlaceholderBesideItCannotBeRead) {
  commit(1, dir_ / "data/a", false);
  commit(2, dir_ / "data/b", true);
  Bytes damaged = test::get_file(dir_ / "data/b");
  damaged[2000] ^= std::byte{1};
  test::put_file(dir_ / "data/b", damaged);
  EXPECT_EQ(*drop_unnamed(*store_, {}), 0u);
}

TEST_F(UnnamedTest, StaysIfItsPlaceholderIsAboutToBePut) {
  commit(1, dir_ / "data/a", false);
  put_text(dir_ / "data/a", "");
  Placeholder placeholder;
  placeholder.identity.bytes[0] = 1;
  {
    const auto next = test::begin_placeholder(dir_ / "data/a", placeholder);
    EXPECT_EQ(*drop_unnamed(*store_, {}), 0u);
  }
  EXPECT_EQ(*drop_unnamed(*store_, {}), 1u);
}

TEST_F(UnnamedTest, StaysIfAJobHasIt) {
  commit(1, dir_ / "data/a", false);
  Id128 id;
  id.bytes[0] = 1;
  {
    const auto lock = store_->lock_for_writing(id);
    ASSERT_TRUE(lock.is_ok());
    EXPECT_EQ(*drop_unnamed(*store_, {}), 0u);
  }
  EXPECT_EQ(*drop_unnamed(*store_, {}), 1u);
}

TEST_F(UnnamedTest, StaysIfTheNodesShareNoFileSystem) {
  CommitRecord record;
  record.identity.bytes[0] = record.attempt.bytes[0] = 1;
  record.number = 1;
  record.path = dir_ / "data/a";
  ASSERT_TRUE(store_->adopt(record).is_ok());
  EXPECT_EQ(*drop_unnamed(*store_, {}), 0u);
}

}  // namespace
}  // namespace dedup::store
