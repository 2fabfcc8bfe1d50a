// What stands at a real path, and replacing it; files that no name leads to.
#include "store/real_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "store/store.h"
#include "store/unnamed.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::TempDir;

Placeholder placeholder_of(std::uint8_t identity) {
  Placeholder p;
  p.identity.bytes[0] = identity;
  p.number = 1;
  return p;
}

void put_text(const std::string& path, const std::string& text) {
  test::put_file(path, std::as_bytes(std::span(text)));
}

// A placeholder that knows its own inode, as a commit makes it.
void put_placeholder(const std::string& path, std::uint8_t identity) {
  auto replacement = Replacement::begin(path);
  ASSERT_TRUE(replacement.is_ok()) << replacement.status().message();
  Placeholder p = placeholder_of(identity);
  p.inode = *(*replacement)->inode();
  ASSERT_TRUE((*replacement)->write(0, encode_placeholder(p)).is_ok());
  ASSERT_TRUE((*replacement)->flush().is_ok());
  ASSERT_TRUE((*replacement)->put().is_ok());
}

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

TEST(Replacement, IsOneAtATimeAndLeavesNothing) {
  TempDir dir;
  put_text(dir / "f", "old");
  {
    const auto first = Replacement::begin(dir / "f");
    ASSERT_TRUE(first.is_ok());
    EXPECT_EQ(Replacement::begin(dir / "f").status().code(), Code::kFileInUse);
    ASSERT_TRUE((*first)->write(0, Bytes(100)).is_ok());
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
  EXPECT_EQ(test::get_file(dir / "f").size(), 3u);
}

TEST(Replacement, TakesOverWhatAKilledProcessLeft) {
  TempDir dir;
  put_text(dir / "f", "old");
  const int code = test::in_child([&] {
    auto begun = Replacement::begin(dir / "f");
    if (!begun.is_ok() || !(*begun)->write(0, Bytes(100)).is_ok()) return 1;
    ::_exit(0);  // without destructors
  });
  ASSERT_EQ(code, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 2);
  auto again = Replacement::begin(dir / "f");
  ASSERT_TRUE(again.is_ok());
  remove_leftover(dir / "f");  // it is in use
  ASSERT_TRUE((*again)->write(0, Bytes(3)).is_ok());
  ASSERT_TRUE((*again)->put().is_ok());
  EXPECT_EQ(test::get_file(dir / "f"), Bytes(3));

  ASSERT_EQ(test::in_child([&] {
              auto begun = Replacement::begin(dir / "f");
              ::_exit(begun.is_ok() ? 0 : 1);
              return 0;
            }),
            0);
  remove_leftover(dir / "f");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(Replacement, KeepsPermissionsAndLinks) {
  TempDir dir;
  put_text(dir / "target", "old");
  ASSERT_EQ(::chmod((dir / "target").c_str(), 0641), 0);
  std::filesystem::create_symlink("target", dir / "f");
  auto replacement = Replacement::begin(dir / "f");
  ASSERT_TRUE(replacement.is_ok());
  ASSERT_TRUE((*replacement)->resize(9).is_ok());
  ASSERT_TRUE((*replacement)->put().is_ok());
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "f"));
  EXPECT_EQ(test::get_file(dir / "target").size(), 9u);
  struct stat s {};
  ASSERT_EQ(::stat((dir / "f").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777u, 0641u);
}

TEST(Replacement, OfANewFileNeverReplaces) {
  const TempDir dir;
  const mode_t mask = ::umask(027);
  {
    const auto replacement = Replacement::begin(dir / "new", 0666);
    ASSERT_TRUE(replacement.is_ok());
    ASSERT_TRUE((*replacement)->put_new().is_ok());
  }
  ::umask(mask);
  struct stat s {};
  ASSERT_EQ(::stat((dir / "new").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0640u);
  EXPECT_EQ(s.st_nlink, 1u);
  put_text(dir / "there", "something");
  {
    const auto replacement = Replacement::begin(dir / "there");
    ASSERT_TRUE(replacement.is_ok());
    EXPECT_EQ((*replacement)->put_new().code(), Code::kFileExists);
  }
  EXPECT_EQ(std::filesystem::file_size(dir / "there"), 9u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 2);
}

TEST(Replacement, LeavesHolesWhereThereAreZeros) {
  const TempDir dir;
  test::Random random(5);
  Bytes content(1000 * 1000);
  const Bytes some = test::random_bytes(random, 3000);
  std::copy(some.begin(), some.end(), content.begin() + 400'000);
  content.back() = std::byte{1};
  auto replacement = Replacement::begin(dir / "file");
  ASSERT_TRUE(replacement.is_ok());
  ASSERT_TRUE((*replacement)->write_sparse(0, content).is_ok());
  ASSERT_TRUE((*replacement)->put().is_ok());
  EXPECT_EQ(test::get_file(dir / "file"), content);
  struct stat s {};
  ASSERT_EQ(::stat((dir / "file").c_str(), &s), 0);
  EXPECT_LT(s.st_blocks * 512, 300'000);
}

TEST(Replacement, OfTheLongestName) {
  TempDir dir;
  const std::string path = dir / std::string(255, 'x');
  put_placeholder(path, 1);
  EXPECT_EQ(look_at(path)->kind, PathState::Kind::kPlaceholder);
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
  Encoder encoder;
  seen.encode(encoder);
  Decoder decoder(encoder.bytes());
  const Seen decoded = Seen::decode(decoder);
  EXPECT_TRUE(decoder.at_end());
  EXPECT_EQ(decoded.kernel, seen.kernel);
  EXPECT_EQ(decoded.directory, seen.directory);
  EXPECT_EQ(decoded.device, seen.device);
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
