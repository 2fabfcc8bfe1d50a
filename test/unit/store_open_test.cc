// Opening and creating stores, and finding files by path.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "store/files/segment_file.h"
#include "store/store.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::TempDir;

mode_t permissions(const std::string& path) {
  struct stat s;
  EXPECT_EQ(::lstat(path.c_str(), &s), 0) << path;
  return s.st_mode & 07777;
}

void make_directory(const std::string& path, mode_t mode) {
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0) << path;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

CommitRecord record_of(const Id128& identity, const std::string& path, std::uint64_t number = 1) {
  CommitRecord record;
  record.identity = identity;
  record.number = number;
  record.attempt = Id128::random();
  record.path = path;
  return record;
}

std::set<std::string> names_outside(const std::string& parent, const std::string& store) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(parent)) {
    if (entry.path() != store) names.insert(entry.path());
  }
  return names;
}

TEST(StoreOpen, CreatesAStoreAndFindsItAgain) {
  const TempDir dir;
  EXPECT_EQ(Store::open(dir / "s", false).status().code(), Code::kNoSuchFile);
  EXPECT_FALSE(std::filesystem::exists(dir / "s"));
  auto first = Store::open(dir / "s", true);
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  EXPECT_FALSE((*first)->uuid().is_zero());
  EXPECT_GT(*(*first)->free_bytes(), 0u);
  for (const bool create : {true, false}) {
    auto again = Store::open((dir / "s") + "//", create);
    ASSERT_TRUE(again.is_ok()) << again.status().message();
    EXPECT_EQ((*again)->uuid(), (*first)->uuid());
    EXPECT_EQ((*again)->directory(), dir / "s");
  }
  EXPECT_EQ(Store::open(dir / "no/s", false).status().code(), Code::kNoSuchFile);
  EXPECT_FALSE(std::filesystem::exists(dir / "no"));
  EXPECT_EQ(Store::open("", true).status().code(), Code::kBadFile);
}

TEST(StoreOpen, MakesTheDirectoriesAboveIt) {
  const TempDir dir;
  for (const char* const name : {"user/n0", "user/n1", "user/deep/er/n0"}) {
    auto store = Store::open(dir / name, true);
    ASSERT_TRUE(store.is_ok()) << store.status().message();
    EXPECT_EQ((*store)->directory(), dir / name);
  }
  EXPECT_EQ(permissions(dir / "user"), 0700u);
  EXPECT_EQ(permissions(dir / "user/deep"), 0700u);
  std::ofstream(dir / "file") << "a file";
  EXPECT_FALSE(Store::open(dir / "file/below/s", true).is_ok());
}

TEST(StoreOpen, IsPrivateWhateverTheUmask) {
  for (const mode_t mask : {mode_t{0}, mode_t{0277}}) {
    const TempDir dir;
    const mode_t before = ::umask(mask);
    auto store = Store::open(dir / "s", true);
    ASSERT_TRUE(store.is_ok()) << store.status().message();
    const Id128 identity = Id128::random();
    ASSERT_TRUE((*store)->adopt(record_of(identity, "/a")).is_ok());
    ASSERT_TRUE((*store)->put_mark(identity, {Id128::random()}).is_ok());
    ::umask(before);
    EXPECT_EQ(permissions(dir / "s"), 0700u);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir / "s")) {
      EXPECT_EQ(permissions(entry.path()), entry.is_directory() ? 0700u : 0600u) << entry.path();
    }
  }
}

TEST(StoreOpen, StaysWhereItWasWhenTheProgramChangesItsDirectory) {
  const TempDir dir;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  auto store = Store::open("s", true);
  std::filesystem::current_path(before);
  ASSERT_TRUE(store.is_ok());
  EXPECT_EQ((*store)->directory(), dir / "s");
  EXPECT_TRUE((*store)->create_file(Id128::random(), "/a").is_ok());
}

TEST(StoreOpen, RefusesWhatIsNotADirectoryOfItsOwn) {
  const TempDir dir;
  make_directory(dir / "real", 0700);
  std::filesystem::create_symlink(dir / "real", dir / "link");
  test::put_file(dir / "file", {});
  for (const std::string& name : {dir / "link", (dir / "link") + "/", dir / "file"}) {
    const auto store = Store::open(name, true);
    EXPECT_EQ(store.status().code(), Code::kAccess) << name;
    EXPECT_NE(store.status().message().find("dedup_store"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir / "real"));

  std::string foreign = "/";  // not ours, if we are not root
  if (::geteuid() == 0) {
    foreign = dir / "foreign";
    make_directory(foreign, 0700);
    ASSERT_EQ(::chown(foreign.c_str(), 12345, 12345), 0);
  }
  const auto store = Store::open(foreign, true);
  EXPECT_EQ(store.status().code(), Code::kAccess);
  EXPECT_NE(store.status().message().find("belongs to user"), std::string::npos);
}

TEST(StoreOpen, TightensItsOwnDirectoriesAndRefusesSharedOnes) {
  const TempDir dir;
  make_directory(dir / "empty", 01777);
  make_directory(dir / "empty/lost+found", 0700);
  EXPECT_TRUE(Store::open(dir / "empty", true).is_ok());
  EXPECT_EQ(permissions(dir / "empty"), 0700u);
  ASSERT_EQ(::chmod((dir / "empty").c_str(), 0755), 0);
  EXPECT_TRUE(Store::open(dir / "empty", false).is_ok());
  EXPECT_EQ(permissions(dir / "empty"), 0700u);

  make_directory(dir / "home", 0755);
  test::put_file(dir / "home/page.html", {});
  EXPECT_EQ(Store::open(dir / "home", true).status().code(), Code::kAccess);
  EXPECT_EQ(permissions(dir / "home"), 0755u);
  ASSERT_EQ(::chmod((dir / "home").c_str(), 0700), 0);
  EXPECT_TRUE(Store::open(dir / "home", true).is_ok());
}

TEST(StoreOpen, ReportsAnUnwritablePlace) {
  const TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0555), 0);
  const int code = test::in_child([&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return 100;
    return static_cast<int>(Store::open(dir / "s", true).status().code());
  });
  ASSERT_EQ(::chmod(dir.path().c_str(), 0700), 0);
  EXPECT_EQ(code, static_cast<int>(Code::kAccess));
}

TEST(StoreOpen, RefusesANewerVersionAndDamage) {
  const TempDir dir;
  ASSERT_TRUE(Store::open(dir / "s", true).is_ok());
  const Bytes whole = test::get_file(dir / "s/STORE");
  Bytes newer = whole;
  newer[8] = std::byte{2};
  test::put_file(dir / "s/STORE", newer);
  const auto store = Store::open(dir / "s", true);
  EXPECT_EQ(store.status().code(), Code::kVersion);
  EXPECT_NE(store.status().message().find("newer version of dedup"), std::string::npos);
  test::put_file(dir / "s/STORE", whole);
  test::for_each_file_damage(dir / "s/STORE",
                             [&] { EXPECT_FALSE(Store::open(dir / "s", false).is_ok()); });
  std::filesystem::remove(dir / "s/STORE");
  EXPECT_EQ(Store::open(dir / "s", true).status().code(), Code::kCorrupt);
  EXPECT_EQ(Store::open(dir / "s", false).status().code(), Code::kNoSuchFile);
}

TEST(StoreOpen, GivesProcessesThatCreateItAtOnceOneStore) {
  for (int round = 0; round < 6; ++round) {
    const TempDir dir;
    int start[2], out[2];
    ASSERT_EQ(::pipe(start), 0);
    ASSERT_EQ(::pipe(out), 0);
    constexpr int kProcesses = 6;
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::close(start[1]);
        char byte;
        static_cast<void>(!::read(start[0], &byte, 1));  // returns when the parent closes
        auto store = Store::open(dir / "s", true);
        Id128 uuid;
        if (store.is_ok() && (*store)->create_file(Id128::random(), "/same").is_ok()) {
          uuid = (*store)->uuid();
        }
        static_cast<void>(!::write(out[1], uuid.bytes.data(), uuid.bytes.size()));
        ::_exit(0);
      }
      children.push_back(child);
    }
    ::close(start[0]);
    ::close(start[1]);
    std::set<Id128> uuids;
    for (int i = 0; i < kProcesses; ++i) {
      Id128 uuid;
      ASSERT_EQ(::read(out[0], uuid.bytes.data(), uuid.bytes.size()), 16);
      EXPECT_FALSE(uuid.is_zero());
      uuids.insert(uuid);
    }
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    ::close(out[0]);
    ::close(out[1]);
    EXPECT_EQ(uuids.size(), 1u);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir / "s"), {}), 4);
    // No entry of the path's got lost.
    auto store = Store::open(dir / "s", false);
    ASSERT_TRUE(store.is_ok());
    for (const auto& entry : std::filesystem::directory_iterator(dir / "s/files")) {
      Id128 identity;
      ASSERT_TRUE(Id128::parse(entry.path().filename(), identity));
      ASSERT_TRUE((*store)->adopt(record_of(identity, "/other")).is_ok());
    }
    EXPECT_EQ((*store)->find("/same")->records.size(), std::size_t{kProcesses});
  }
}

TEST(StoreOpen, ReportsAFullDiskAndRecovers) {
  const TempDir dir;
  {
    const test::FileSizeLimit limit(0);
    EXPECT_FALSE(Store::open(dir / "s", true).is_ok());
  }
  auto store = Store::open(dir / "s", true);
  ASSERT_TRUE(store.is_ok()) << store.status().message();
  const Id128 identity = Id128::random();
  const CommitRecord record = record_of(identity, "/a");
  {
    const test::FileSizeLimit limit(0);
    EXPECT_FALSE((*store)->adopt(record).is_ok());
    EXPECT_FALSE((*store)->put_mark(identity, {Id128::random()}).is_ok());
  }
  EXPECT_EQ((*store)->newest(identity).status().code(), Code::kNotFound);
  EXPECT_TRUE((*store)->adopt(record).is_ok());
  EXPECT_EQ(*(*store)->newest(identity), record);
}

TEST(StoreOpen, CallsAFullFileSystemNoSpace) {
  const TempDir dir;
  constexpr int kCannotMount = 100;
  const int code = test::in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
      return kCannotMount;
    }
    auto store = Store::open(dir.path(), true);
    if (!store.is_ok()) return 101;
    const Id128 identity = Id128::random();
    if (!(*store)->create_file(identity, "/a").is_ok()) return 102;
    auto writer =
        SegmentFileWriter::create(test::layout_of(**store).segment(identity, 0), identity, 0);
    if (!writer.is_ok()) return 103;
    for (int i = 0; i < 1000; ++i) {
      const auto location = (*writer)->append({}, Bytes(4096));
      if (!location.is_ok()) return static_cast<int>(location.status().code());
    }
    return 104;
  });
  if (code == kCannotMount) GTEST_SKIP() << "no right to mount a tmpfs";
  EXPECT_EQ(code, static_cast<int>(Code::kNoSpace));
}

TEST(StorePaths, FindNewestRecordsOfEveryIdentity) {
  const TempDir dir;
  auto store = Store::open(dir / "s", true);
  ASSERT_TRUE(store.is_ok());
  EXPECT_TRUE((*store)->find("/a")->records.empty());
  const Id128 first = Id128::random(), second = Id128::random(), other = Id128::random();
  const CommitRecord old = record_of(first, "/a", 1), young = record_of(first, "/a", 2);
  const CommitRecord rival = record_of(second, "/a", 1), elsewhere = record_of(other, "/b", 7);
  for (const auto* record : {&young, &old, &rival, &elsewhere}) {
    ASSERT_TRUE((*store)->adopt(*record).is_ok());
    ASSERT_TRUE((*store)->adopt(*record).is_ok());
  }
  ASSERT_TRUE((*store)->create_file(Id128::random(), "/a").is_ok());
  auto found = (*store)->find("/a");
  ASSERT_TRUE(found.is_ok());
  EXPECT_TRUE(found->damaged.empty());
  std::sort(found->records.begin(), found->records.end());
  std::vector<CommitRecord> wanted{young, rival};
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(found->records, wanted);
  EXPECT_EQ((*store)->list()->size(), 3u);
  EXPECT_EQ(*(*store)->newest(first), young);
}

TEST(StorePaths, NeverLeadOutOfTheStore) {
  const TempDir dir;
  auto store = Store::open(dir / "s", true);
  ASSERT_TRUE(store.is_ok());
  const auto before = names_outside(dir.path(), dir / "s");
  const std::string paths[] = {"../../x",
                               "/../../../" + dir.path() + "/x",
                               dir / "x",
                               "",
                               ".",
                               "..",
                               "/",
                               std::string(100000, 'p'),
                               "/a\nb\n/c",
                               std::string("/nul\0in it", 10),
                               "/\xff\xfe",
                               "paths",
                               "../files/lock"};
  for (const auto& path : paths) {
    const CommitRecord record = record_of(Id128::random(), path);
    ASSERT_TRUE((*store)->adopt(record).is_ok());
    const auto found = (*store)->find(path);
    ASSERT_TRUE(found.is_ok()) << found.status().message();
    EXPECT_EQ(found->records, std::vector<CommitRecord>{record});
  }
  EXPECT_EQ(names_outside(dir.path(), dir / "s"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir / "s/paths"), {}),
            std::ssize(paths));
  for (const auto& entry : std::filesystem::directory_iterator(dir / "s/paths")) {
    EXPECT_EQ(entry.path().filename().string().size(), 64u);
  }
}

TEST(StorePaths, SurviveADamagedEntry) {
  const TempDir dir;
  auto store = Store::open(dir / "s", true);
  ASSERT_TRUE(store.is_ok());
  const CommitRecord record = record_of(Id128::random(), "/a");
  ASSERT_TRUE((*store)->adopt(record).is_ok());
  ASSERT_TRUE((*store)->adopt(record_of(Id128::random(), "/b")).is_ok());
  std::vector<std::string> entries;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "s/paths")) {
    entries.push_back(entry.path());
  }
  for (const auto& entry : entries) {
    test::for_each_file_damage(entry, [&] {
      const auto found = (*store)->find("/a");
      if (found.is_ok()) {
        EXPECT_EQ(found->records, std::vector<CommitRecord>{record});
      } else {
        EXPECT_EQ(found.status().code(), Code::kVersion);
      }
    });
  }
  const CommitRecord more = record_of(Id128::random(), "/a");
  ASSERT_TRUE((*store)->adopt(more).is_ok());
  EXPECT_EQ((*store)->find("/a")->records.size(), 2u);
}

TEST(StoreMarks, LastUntilEveryStoreHasDroppedTheFile) {
  const TempDir dir;
  auto store = Store::open(dir / "s", true);
  ASSERT_TRUE(store.is_ok());
  const Id128 identity = Id128::random(), a = Id128::random(), b = Id128::random();
  EXPECT_EQ((*store)->mark_stores(identity).status().code(), Code::kNotFound);
  ASSERT_TRUE((*store)->adopt(record_of(identity, "/a")).is_ok());
  ASSERT_TRUE((*store)->put_mark(identity, {a, b}).is_ok());
  ASSERT_TRUE((*store)->drop_file(identity).is_ok());
  auto reopened = Store::open(dir / "s", false);
  ASSERT_TRUE(reopened.is_ok());
  EXPECT_EQ(*(*reopened)->marks(), std::vector<Id128>{identity});
  EXPECT_EQ(*(*reopened)->mark_stores(identity), (std::vector<Id128>{a, b}));
  // This store has forgotten the path, another one may not have: every path shows the mark.
  EXPECT_EQ((*reopened)->find("/a")->deleted, std::vector<Id128>{identity});
  ASSERT_TRUE((*reopened)->put_mark(identity, {b}).is_ok());
  EXPECT_EQ(*(*store)->mark_stores(identity), std::vector<Id128>{b});
  ASSERT_TRUE((*store)->put_mark(identity, {}).is_ok());
  ASSERT_TRUE((*store)->put_mark(identity, {}).is_ok());
  EXPECT_TRUE((*store)->marks()->empty());
  ASSERT_TRUE((*store)->put_mark(identity, {a}).is_ok());
  test::for_each_file_damage(dir / "s/marks/" + identity.hex(), [&] {
    EXPECT_FALSE((*store)->mark_stores(identity).is_ok());
    EXPECT_EQ(*(*store)->marks(), std::vector<Id128>{identity});
  });
}

}  // namespace
}  // namespace dedup::store
