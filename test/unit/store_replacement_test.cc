// Replacing what stands at a real path. All interleavings: test/simulation/replacement_test.cc.
#include "store/replacement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "test/hooks/forwarding_system.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::begin_placeholder;
using test::put_placeholder;
using test::put_text;
using test::TempDir;
using Kind = PathState::Kind;

Id128 id_of(std::uint8_t number) {
  Id128 id;
  id.bytes[0] = number;
  return id;
}

Placeholder of_attempt(std::uint8_t attempt) {
  Placeholder p;
  p.identity = id_of(1);
  p.attempt = id_of(attempt);
  p.number = attempt;
  return p;
}

std::string text_at(const std::string& path) {
  const Bytes bytes = test::get_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::size_t count_entries(const TempDir& dir) {
  const std::filesystem::directory_iterator entries(dir.path());
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

TEST(Replacement, OfWhichNothingIsPutLeavesNothing) {
  TempDir dir;
  put_text(dir / "f", "old");
  {
    const auto first = Replacement::begin(dir / "f", id_of(1));
    ASSERT_TRUE(first.is_ok());
    const auto second = Replacement::begin(dir / "f", id_of(2));
    ASSERT_TRUE(second.is_ok());
    EXPECT_EQ(Replacement::begin(dir / "f", id_of(2)).status().code(), Code::kFileExists);
    ASSERT_TRUE((*first)->write(0, Bytes(100)).is_ok());
  }
  EXPECT_EQ(count_entries(dir), 1u);
  EXPECT_EQ(test::get_file(dir / "f").size(), 3u);
}

TEST(Replacement, FollowsOnWhatItWasMadeForOnce) {
  TempDir dir;
  const std::string path = dir / "f";
  put_text(path, "old");
  const PathState plain = *look_at(path);
  const auto winner = begin_placeholder(path, of_attempt(1));
  const auto loser = begin_placeholder(path, of_attempt(2));
  ASSERT_TRUE(winner->put_after(plain).is_ok());
  EXPECT_EQ(loser->put_after(plain).code(), Code::kConflict);
  const PathState now = *settle_path(path);
  EXPECT_EQ(now.placeholder.attempt, id_of(1));
  EXPECT_FALSE(now.is_copy());
  EXPECT_TRUE(begin_placeholder(path, of_attempt(3))->put_after(now).is_ok());
  EXPECT_EQ(begin_placeholder(path, of_attempt(4))->put_after(now).code(), Code::kConflict);
  EXPECT_EQ(settle_path(path)->placeholder.attempt, id_of(3));
}

TEST(Replacement, IsNotPutWhereSomethingElseStandsByNow) {
  TempDir dir;
  const std::string path = dir / "f";
  put_text(path, "old");
  const PathState before = *look_at(path);
  put_text(path, "changed by a program");
  {
    const auto late = begin_placeholder(path, of_attempt(1));
    EXPECT_EQ(late->put_after(before).code(), Code::kConflict);
  }
  std::filesystem::remove(path);
  {
    const auto late = begin_placeholder(path, of_attempt(1));
    EXPECT_EQ(late->put_after(before).code(), Code::kConflict);
  }
  EXPECT_EQ(count_entries(dir), 0u);
}

// Dies at a call of its name.
class DiesAt final : public ForwardingSystem {
 public:
  enum class Call { kRename, kStatAfterClaim };
  DiesAt(System& below, Call call) : ForwardingSystem(below), call_(call) {}
  int symlink(const char* target, const char* path) override {
    claimed_ = true;
    return below_.symlink(target, path);
  }
  int stat(const char* path, struct stat* about) override {
    if (claimed_ && call_ == Call::kStatAfterClaim) ::_exit(0);
    return below_.stat(path, about);
  }
  int rename(const char* from, const char* to) override {
    if (call_ == Call::kRename) ::_exit(0);
    return below_.rename(from, to);
  }

 private:
  Call call_;
  bool claimed_ = false;
};

// What a job leaves that is killed between its claim and its rename.
void die_after_claim(const std::string& path, std::uint8_t attempt, DiesAt::Call call) {
  ASSERT_EQ(test::in_child([&] {
              DiesAt dying(kernel(), call);
              use_system(dying);
              const auto before = look_at(path);
              if (before.is_ok())
                (void)begin_placeholder(path, of_attempt(attempt))->put_after(*before);
              return 1;
            }),
            0);
}

TEST(Replacement, ThatAKilledJobHadClaimedForIsPutByTheNext) {
  for (const auto call : {DiesAt::Call::kRename, DiesAt::Call::kStatAfterClaim}) {
    TempDir dir;
    const std::string path = dir / "f";
    put_text(path, "old");
    const PathState before = *look_at(path);
    die_after_claim(path, 1, call);
    EXPECT_EQ(look_at(path)->kind, Kind::kPlain);
    EXPECT_EQ(begin_placeholder(path, of_attempt(2))->put_after(before).code(), Code::kConflict);
    EXPECT_EQ(settle_path(path)->placeholder.attempt, id_of(1));
    EXPECT_EQ(settle_path(path)->placeholder.attempt, id_of(1));
    EXPECT_EQ(count_entries(dir), 2u);  // with a claim that means nothing
    ASSERT_TRUE(remove_leftovers(dir.path()).is_ok());
    EXPECT_EQ(count_entries(dir), 1u);
  }
}

// Somebody settles the path right after each claim: another job that looks there, or one that
// tidies up in the directory.
class SettlingSystem : public ForwardingSystem {
 public:
  explicit SettlingSystem(std::string path) : ForwardingSystem(kernel()), path_(std::move(path)) {}

  int symlink(const char* target, const char* path) override {
    const int result = below_.symlink(target, path);
    if (std::string_view(path).find(".dedup-next-") != std::string_view::npos) {
      EXPECT_TRUE(settle_path(path_).is_ok());
    }
    return result;
  }

 private:
  std::string path_;
};

TEST(Replacement, ThatSomebodyElsePutsThereIsPut) {
  TempDir dir;
  const std::string path = dir / "f";
  put_text(path, "old");
  const PathState before = *look_at(path);
  const auto replacement = begin_placeholder(path, of_attempt(1));
  SettlingSystem settling(path);
  System& used = use_system(settling);
  const Status status = replacement->put_after(before);
  use_system(used);
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(look_at(path)->placeholder.attempt, id_of(1));
  EXPECT_EQ(count_entries(dir), 1u);
}

TEST(Replacement, ThatWasGivenUpDoesNotStandInTheWay) {
  TempDir dir;
  const std::string path = dir / "f";
  put_text(path, "old");
  const PathState before = *look_at(path);
  for (std::uint8_t attempt = 1; attempt <= 3; ++attempt) {
    die_after_claim(path, attempt, DiesAt::Call::kRename);
    for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
      if (entry.path().string().find(".dedup-tmp-") != std::string::npos) {
        std::filesystem::remove(entry);
      }
    }
  }
  EXPECT_EQ(settle_path(path)->kind, Kind::kPlain);
  // The claims on what stands there stay: without them two could hold one.
  ASSERT_TRUE(remove_leftovers(dir.path()).is_ok());
  EXPECT_EQ(count_entries(dir), 4u);
  EXPECT_TRUE(begin_placeholder(path, of_attempt(4))->put_after(before).is_ok());
  EXPECT_EQ(settle_path(path)->placeholder.attempt, id_of(4));
  EXPECT_EQ(count_entries(dir), 1u);
}

TEST(Replacement, OfAKilledProcessIsALeftover) {
  TempDir dir;
  put_text(dir / "f", "old");
  put_text(dir / ".f.dedup-tmp-mine", "a user's");
  ASSERT_EQ(test::in_child([&] {
              const auto begun = Replacement::begin(dir / "f", id_of(1));
              ::_exit(begun.is_ok() && (*begun)->write(0, Bytes(100)).is_ok() ? 0 : 1);
              return 0;
            }),
            0);
  EXPECT_EQ(count_entries(dir), 3u);
  {
    const auto running = Replacement::begin(dir / "f", id_of(2));
    ASSERT_TRUE(running.is_ok());
    ASSERT_TRUE(remove_leftovers(dir.path()).is_ok());
    EXPECT_EQ(count_entries(dir), 3u);
  }
  EXPECT_EQ(count_entries(dir), 2u);
}

// Somebody tidies the directory between a replacement's first two calls.
class TidiesBeforeLocks final : public ForwardingSystem {
 public:
  TidiesBeforeLocks(System& below, std::string directory)
      : ForwardingSystem(below), directory_(std::move(directory)) {}

  int flock(int fd, int operation) override {
    if (times_-- > 0) {
      System& used = use_system(below_);
      EXPECT_TRUE(remove_leftovers(directory_).is_ok());
      use_system(used);
    }
    return ForwardingSystem::flock(fd, operation);
  }

 private:
  std::string directory_;
  int times_ = 2;
};

TEST(Replacement, ThatWasTakenForALeftoverIsBegunAnew) {
  TempDir dir;
  const std::string path = dir / "f";
  put_text(path, "old");
  TidiesBeforeLocks system(store::system(), dir.path());
  System& used = use_system(system);
  const auto begun = Replacement::begin(path, id_of(1));
  use_system(used);
  ASSERT_TRUE(begun.is_ok()) << begun.status().message();
  const auto joined = Replacement::join(path, (*begun)->id());
  ASSERT_TRUE(joined.is_ok()) << joined.status().message();
  ASSERT_TRUE((*joined)->write(0, Bytes(100)).is_ok());
  EXPECT_TRUE((*begun)->put_after(*look_at(path)).is_ok());
  EXPECT_EQ(test::get_file(path).size(), 100u);
}

// A file system that makes no symbolic links.
class NoLinks final : public ForwardingSystem {
 public:
  using ForwardingSystem::ForwardingSystem;
  int symlink(const char*, const char*) override {
    errno = EPERM;
    return -1;
  }
};

TEST(Replacement, IsNotPutUnguardedWhereThereAreNoSymbolicLinks) {
  TempDir dir;
  const std::string path = dir / "f";
  put_text(path, "old");
  NoLinks none(kernel());
  System& before = use_system(none);
  const Status status = begin_placeholder(path, of_attempt(1))->put_after(*look_at(path));
  use_system(before);
  EXPECT_EQ(status.code(), Code::kUnsupported) << status.message();
  EXPECT_NE(status.message().find("symbolic links"), std::string::npos) << status.message();
  EXPECT_EQ(count_entries(dir), 1u);
}

TEST(Replacement, KeepsPermissionsAndLinks) {
  TempDir dir;
  put_text(dir / "target", "old");
  ASSERT_EQ(::chmod((dir / "target").c_str(), 0641), 0);
  std::filesystem::create_symlink("target", dir / "f");
  auto replacement = Replacement::begin(dir / "f", id_of(1));
  ASSERT_TRUE(replacement.is_ok());
  ASSERT_TRUE((*replacement)->resize(9).is_ok());
  ASSERT_TRUE((*replacement)->put_after(*look_at(dir / "f")).is_ok());
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
    const auto replacement = Replacement::begin(dir / "new", id_of(1), 0666);
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
    const auto replacement = Replacement::begin(dir / "there", id_of(1));
    ASSERT_TRUE(replacement.is_ok());
    EXPECT_EQ((*replacement)->put_new().code(), Code::kFileExists);
  }
  EXPECT_EQ(std::filesystem::file_size(dir / "there"), 9u);
  EXPECT_EQ(count_entries(dir), 2u);
}

TEST(Replacement, LeavesHolesWhereThereAreZeros) {
  const TempDir dir;
  test::Random random(5);
  Bytes content(1000 * 1000);
  const Bytes some = test::random_bytes(random, 3000);
  std::copy(some.begin(), some.end(), content.begin() + 400'000);
  content.back() = std::byte{1};
  auto replacement = Replacement::begin(dir / "file", id_of(1));
  ASSERT_TRUE(replacement.is_ok());
  ASSERT_TRUE((*replacement)->write_sparse(0, content).is_ok());
  ASSERT_TRUE((*replacement)->put().is_ok());
  EXPECT_EQ(test::get_file(dir / "file"), content);
  struct stat s {};
  ASSERT_EQ(::stat((dir / "file").c_str(), &s), 0);
  EXPECT_LT(s.st_blocks * 512, 300'000);
}

TEST(Replacement, ACopyStaysForWhoGoesOnWithIt) {
  TempDir dir;
  const std::string path = dir / "f";
  ASSERT_TRUE(begin_placeholder(path, of_attempt(1))->put_new().is_ok());
  Id128 id;
  {
    const auto begun = Replacement::begin_copy(path, id_of(1));
    ASSERT_TRUE(begun.is_ok());
    id = (*begun)->id();
    ASSERT_TRUE((*begun)->resize(10).is_ok());
    (*begun)->set_mine(false);
  }
  EXPECT_TRUE(has_copy(path, id));
  // As long as the placeholder of its generation stands there.
  ASSERT_TRUE(remove_leftovers(dir.path()).is_ok());
  const auto joined = Replacement::join_copy(path, id);
  ASSERT_TRUE(joined.is_ok());
  EXPECT_EQ(*(*joined)->size(), 10u);
  const PathState before = *settle_path(path);
  (*joined)->set_mine(true);
  EXPECT_TRUE((*joined)->put_after(before).is_ok());
  EXPECT_FALSE(has_copy(path, id));
  EXPECT_EQ(test::get_file(path).size(), 10u);
  EXPECT_EQ(count_entries(dir), 1u);
}

// A placeholder, and the copy that is to take its place.
struct WrittenBack {
  TempDir dir;
  std::string path = dir / "f";
  PathState before;
  std::unique_ptr<Replacement> copy;

  WrittenBack() {
    EXPECT_TRUE(begin_placeholder(path, of_attempt(1))->put().is_ok());
    before = *settle_path(path);
    copy = std::move(*Replacement::begin_copy(path, id_of(1)));
    EXPECT_TRUE(copy->write(0, std::as_bytes(std::span("copy", 4))).is_ok());
  }
};

TEST(ReplacementUnlessWritten, TakesThePlaceOfWhatIsOnlyRead) {
  WrittenBack file;
  const auto reader = fs::open_read(file.path);
  ASSERT_TRUE(reader.is_ok());
  EXPECT_TRUE(file.copy->put_unless_written(file.before).is_ok());
  EXPECT_EQ(text_at(file.path), "copy");
  EXPECT_EQ(count_entries(file.dir), 1u);
  // HDF5 locks what it opens, and does not wait.
  const auto opened = fs::open_to_write(file.path);
  ASSERT_TRUE(opened.is_ok());
  const auto locked = fs::try_lock(*opened, true);
  EXPECT_TRUE(locked.is_ok() && *locked);
}

TEST(ReplacementUnlessWritten, WaitsAMomentForWhoWrites) {
  WrittenBack file;
  {
    const auto writer = fs::open_to_write(file.path);
    ASSERT_TRUE(writer.is_ok());
    EXPECT_EQ(file.copy->put_unless_written(file.before).code(), Code::kFileInUse);
    EXPECT_TRUE(has_copy(file.path, file.copy->id()));
  }
  EXPECT_TRUE(file.copy->put_unless_written(file.before).is_ok());
  EXPECT_EQ(text_at(file.path), "copy");
}

// A program that opens a file to write to it just before that file's name is another one's.
class OpensBeforeRename final : public ForwardingSystem {
 public:
  OpensBeforeRename(System& below, std::string path)
      : ForwardingSystem(below), path_(std::move(path)) {}
  int rename(const char* from, const char* to) override {
    if (!writer_.joinable()) {
      writer_ = std::thread([this] { put_text(path_, "written"); });
      // It waits in open() by then.
      while (below_.lease(held_) == F_RDLCK) std::this_thread::yield();
    }
    return below_.rename(from, to);
  }
  int set_lease(int fd, int kind) override {
    held_ = fd;
    return below_.set_lease(fd, kind);
  }
  void join() { writer_.join(); }

 private:
  const std::string path_;
  int held_ = -1;
  std::thread writer_;
};

TEST(ReplacementUnlessWritten, LetsInWhoComesInBetween) {
  WrittenBack file;
  OpensBeforeRename opens(system(), file.path);
  System& before = use_system(opens);
  EXPECT_EQ(file.copy->put_unless_written(file.before).code(), Code::kFileInUse);
  opens.join();
  use_system(before);
  file.copy.reset();
  EXPECT_EQ(text_at(file.path), "written");
  ASSERT_TRUE(remove_leftovers(file.dir.path()).is_ok());
  EXPECT_EQ(count_entries(file.dir), 1u);
}

TEST(Replacement, ACopyIsTakenByOne) {
  TempDir dir;
  const std::string path = dir / "f";
  ASSERT_TRUE(begin_placeholder(path, of_attempt(1))->put_new().is_ok());
  auto begun = Replacement::begin_copy(path, id_of(1));
  ASSERT_TRUE(begun.is_ok());
  (*begun)->set_mine(false);
  const Id128 id = (*begun)->id();
  begun->reset();
  {
    const auto writer = Replacement::join_copy(path, id);
    ASSERT_TRUE(writer.is_ok());
    EXPECT_TRUE(Replacement::join_copy(path, id).is_ok());
    EXPECT_EQ(Replacement::take_copy(path, id).status().code(), Code::kFileInUse);
  }
  const auto taken = Replacement::take_copy(path, id);
  ASSERT_TRUE(taken.is_ok());
  EXPECT_NE((*taken)->id(), id);
  EXPECT_EQ(Replacement::take_copy(path, id).status().code(), Code::kNoSuchFile);
  EXPECT_TRUE(has_copy(path, (*taken)->id()));
}

TEST(Replacement, ACopyGoesWithThePlaceholderThatItIsFor) {
  TempDir dir;
  const std::string path = dir / "f";
  ASSERT_TRUE(begin_placeholder(path, of_attempt(1))->put_new().is_ok());
  Id128 id;
  {
    const auto begun = Replacement::begin_copy(path, id_of(1));
    ASSERT_TRUE(begun.is_ok());
    (*begun)->set_mine(false);
    id = (*begun)->id();
    ASSERT_TRUE(begin_placeholder(path, of_attempt(2))->put_after(*settle_path(path)).is_ok());
    ASSERT_TRUE(remove_leftovers(dir.path()).is_ok());
    EXPECT_TRUE(has_copy(path, id)) << "who has begun it runs";
  }
  ASSERT_TRUE(remove_leftovers(dir.path()).is_ok());
  EXPECT_FALSE(has_copy(path, id));
  EXPECT_EQ(count_entries(dir), 1u);
}

// ---- The plain file that stood there ------------------------------------------------------------

struct KeptPlain {
  TempDir dir;
  std::string path = dir / "f";
  Id128 id;

  // A plain file that a placeholder has taken the place of, and that was kept.
  KeptPlain() {
    put_text(path, "old");
    const PathState plain = *look_at(path);
    const auto placeholder = begin_placeholder(path, of_attempt(1));
    id = *keep_as_copy(path, plain.stamp, id_of(1));
    PathState now = *look_at(path);
    EXPECT_EQ(now.stamp.modified, plain.stamp.modified);
    EXPECT_TRUE(placeholder->put_after(now).is_ok());
  }
};

TEST(KeptPlainFile, IsGoneOnWithByOne) {
  KeptPlain kept;
  EXPECT_TRUE(has_copy(kept.path, kept.id));
  ASSERT_TRUE(remove_leftovers(kept.dir.path()).is_ok());
  {
    const auto taken = Replacement::take_kept(kept.path, kept.id);
    ASSERT_TRUE(taken.is_ok()) << taken.status().message();
    EXPECT_EQ(Replacement::take_kept(kept.path, kept.id).status().code(), Code::kNoSuchFile);
    ASSERT_TRUE((*taken)->write(0, std::as_bytes(std::span("new", 3))).is_ok());
    ASSERT_TRUE((*taken)->flush().is_ok());
    ASSERT_TRUE((*taken)->put_after(*look_at(kept.path)).is_ok());
  }
  EXPECT_EQ(text_at(kept.path), "new");
  EXPECT_EQ(count_entries(kept.dir), 1u);
}

TEST(KeptPlainFile, ThatOthersCanReachOrHaveChangedIsLeftToThem) {
  for (const char* const what : {"read", "write", "link", "change"}) {
    SCOPED_TRACE(what);
    KeptPlain kept;
    const std::string name = kept.dir / ".f.dedup-copy-" + kept.id.hex();
    std::optional<fs::File> open;
    if (what == std::string("read")) open.emplace(*fs::open_read(name));
    if (what == std::string("write")) open.emplace(*fs::open_to_write(name));
    if (what == std::string("link")) {
      ASSERT_TRUE(fs::link(name, kept.dir / "other").is_ok());
    }
    if (what == std::string("change")) put_text(name, "now");
    const auto taken = Replacement::take_kept(kept.path, kept.id);
    // Where files can be cloned, only a change matters.
    if (taken.is_ok()) {
      EXPECT_NE(what, std::string("change"));
      EXPECT_NE(*(*taken)->inode(), fs::info(name)->inode);
    } else {
      EXPECT_EQ(taken.status().code(), Code::kFileInUse);
    }
    EXPECT_EQ(text_at(name), what == std::string("change") ? "now" : "old");
  }
}

// Whoever opens a file upon which a process has a lease has a signal sent to that.
TEST(KeptPlainFile, WhoLooksAtItMeanwhileEndsNobody) {
  class Opens final : public ForwardingSystem {
   public:
    Opens(System& below, std::string name) : ForwardingSystem(below), name_(std::move(name)) {}
    int set_lease(int fd, int kind) override {
      const int result = below_.set_lease(fd, kind);
      if (kind == F_WRLCK && result == 0) {
        EXPECT_EQ(below_.open(name_.c_str(), O_RDONLY | O_NONBLOCK, 0), -1);
        EXPECT_EQ(errno, EWOULDBLOCK);
      }
      return result;
    }

   private:
    std::string name_;
  };
  const TempDir dir;
  const std::string name = dir / "f";
  put_text(name, "old");
  Opens opens(system(), name);
  System& before = use_system(opens);
  {
    const auto file = fs::open_to_write(name);
    ASSERT_TRUE(file.is_ok());
    (void)fs::is_open_elsewhere(*file);
  }
  use_system(before);
}

TEST(KeptPlainFile, GoesOverToTheNextGenerationOrGoes) {
  KeptPlain kept;
  const Id128 next = *keep_for(kept.path, kept.id, id_of(2));
  EXPECT_EQ(keep_for(kept.path, kept.id, id_of(3)).status().code(), Code::kNoSuchFile);
  ASSERT_TRUE(begin_placeholder(kept.path, of_attempt(2))->put_after(*look_at(kept.path)).is_ok());
  ASSERT_TRUE(remove_leftovers(kept.dir.path()).is_ok());
  EXPECT_TRUE(has_copy(kept.path, next));
  ASSERT_TRUE(begin_placeholder(kept.path, of_attempt(3))->put_after(*look_at(kept.path)).is_ok());
  ASSERT_TRUE(remove_leftovers(kept.dir.path()).is_ok());
  EXPECT_EQ(count_entries(kept.dir), 1u);
}

TEST(KeptPlainFile, IsTheVeryOneThatIsNamed) {
  TempDir dir;
  put_text(dir / "f", "old");
  Stamp stamp = look_at(dir / "f")->stamp;
  ++stamp.modified;
  EXPECT_EQ(keep_as_copy(dir / "f", stamp, id_of(1)).status().code(), Code::kConflict);
  EXPECT_EQ(count_entries(dir), 1u);
}

TEST(Replacement, OutlastsTheClock) {
  TempDir dir;
  const auto replacement = Replacement::begin(dir / "f", id_of(1));
  ASSERT_TRUE(replacement.is_ok());
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE((*replacement)->write(0, Bytes(10, std::byte(i))).is_ok());
    const auto outlasted = (*replacement)->outlast_clock();
    ASSERT_TRUE(outlasted.is_ok());
    if (!*outlasted) GTEST_SKIP() << "this file system's clock is too coarse";
    const Stamp before = *(*replacement)->stamp();
    ASSERT_TRUE((*replacement)->write(0, Bytes(10, std::byte{99})).is_ok());
    ASSERT_NE((*replacement)->stamp()->modified, before.modified) << i;
  }
}

TEST(Replacement, OfTheLongestName) {
  TempDir dir;
  const std::string path = dir / std::string(255, 'x');
  put_placeholder(path, 1);
  EXPECT_EQ(look_at(path)->kind, Kind::kPlaceholder);
  const PathState before = *settle_path(path);
  die_after_claim(path, 1, DiesAt::Call::kRename);
  ASSERT_TRUE(remove_leftovers(dir.path()).is_ok());
  // Which path the claim is for cannot be told; the job itself is gone.
  EXPECT_TRUE(begin_placeholder(path, of_attempt(2))->put_after(before).is_ok());
  EXPECT_EQ(settle_path(path)->placeholder.attempt, id_of(2));
}

}  // namespace
}  // namespace dedup::store
