#include "test/faults/memory_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cerrno>
#include <set>
#include <string>

#include "store/fs.h"

namespace dedup::test {
namespace {

namespace fs = store::fs;
using Order = MemorySystem::Order;

Bytes bytes(std::string_view text) {
  const auto span = std::as_bytes(std::span(text));
  return {span.begin(), span.end()};
}

std::string text(const Bytes& content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

// One disk at /n0, which the store's functions work on.
class Memory : public testing::Test {
 protected:
  MemorySystem memory_;
  store::System& before_ = store::use_system(memory_);

  Memory() { memory_.mount("/n0"); }
  ~Memory() override { store::use_system(before_); }

  void make(const std::string& path, std::string_view content, bool flush) {
    const auto file = fs::create_new(path);
    ASSERT_TRUE(file.is_ok()) << file.status().message();
    ASSERT_TRUE(fs::write_at(*file, 0, bytes(content)).is_ok());
    ASSERT_TRUE(!flush || fs::sync_data(*file).is_ok());
  }
  std::string get(const std::string& path) {
    const auto content = fs::read_file(path);
    return content.is_ok() ? text(*content) : "";
  }
  std::set<std::string> names(const std::string& path) {
    const auto list = fs::list(path);
    EXPECT_TRUE(list.is_ok());
    return {list->begin(), list->end()};
  }
};

TEST_F(Memory, IsAFileSystem) {
  ASSERT_TRUE(fs::make_directory("/n0/d").is_ok());
  EXPECT_FALSE(*fs::make_directory("/n0/d"));
  make("/n0/d/a", "hello", false);
  EXPECT_EQ(fs::create_new("/n0/d/a").status().code(), Code::kFileExists);
  EXPECT_EQ(get("/n0/d/a"), "hello");
  EXPECT_TRUE(fs::link("/n0/d/a", "/n0/d/b").is_ok());
  EXPECT_TRUE(fs::rename("/n0/d/a", "/n0/d/c").is_ok());
  EXPECT_EQ(names("/n0/d"), (std::set<std::string>{"b", "c"}));
  EXPECT_EQ(fs::info("/n0/d/b")->inode, fs::info("/n0/d/c")->inode);
  EXPECT_FALSE(fs::remove_directory("/n0/d").is_ok());
  EXPECT_EQ(fs::open_read("/n0/d/x").status().code(), Code::kNoSuchFile);
  EXPECT_EQ(fs::open_read("/n0/d/c/x").status().code(), Code::kBadFile);
  EXPECT_EQ(memory_.tree("/n0"),
            (std::map<std::string, std::uint64_t>{{"d/", 0}, {"d/b", 5}, {"d/c", 5}}));
  EXPECT_TRUE(fs::remove_tree("/n0/d").is_ok());
  EXPECT_TRUE(names("/n0").empty());
  EXPECT_EQ(memory_.used_bytes("/n0"), 512u);
  EXPECT_EQ(memory_.open_files(0), 0u);
}

TEST_F(Memory, FilesHaveHolesAndLiveWhileTheyAreOpen) {
  const auto file = fs::create_new("/n0/a");
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(fs::write_at(*file, 10'000'000, bytes("end")).is_ok());
  EXPECT_EQ(fs::info(*file)->size, 10'000'003u);
  EXPECT_EQ(fs::info(*file)->allocated, 512u);
  ASSERT_TRUE(fs::remove_file("/n0/a").is_ok());
  Bytes out(8);
  ASSERT_TRUE(fs::read_at(*file, 9'999'995, out).is_ok());
  EXPECT_EQ(text(out), std::string("\0\0\0\0\0end", 8));
  EXPECT_EQ(fs::read_at(*file, 9'999'996, out).code(), Code::kCorrupt);
  ASSERT_TRUE(fs::truncate(*file, 100).is_ok());
  ASSERT_TRUE(fs::truncate(*file, 10'000'003).is_ok());
  ASSERT_TRUE(fs::read_at(*file, 9'999'995, out).is_ok());
  EXPECT_EQ(text(out), std::string(8, '\0'));
}

TEST_F(Memory, LocksBelongToOpenFilesAndEndWithTheProcess) {
  make("/n0/lock", "", false);
  auto one = fs::open_read("/n0/lock"), two = fs::open_read("/n0/lock");
  memory_.set_process(1);
  const auto other = fs::open_read("/n0/lock");
  EXPECT_TRUE(*fs::try_lock(*other, true));
  EXPECT_FALSE(*fs::try_lock(*one, false));
  memory_.kill(1);
  EXPECT_EQ(memory_.open_files(1), 0u);
  EXPECT_FALSE(fs::info(*other).is_ok());
  EXPECT_TRUE(*fs::try_lock(*one, false));
  EXPECT_TRUE(*fs::try_lock(*two, false));
  EXPECT_FALSE(*fs::try_lock(*two, true));
  one = fs::File();
  EXPECT_TRUE(*fs::try_lock(*two, true));
}

TEST_F(Memory, AFullDiskCutsAWriteShort) {
  memory_.resize_disk("/n0", 10 * 512);
  const auto file = fs::create_new("/n0/a");
  ASSERT_TRUE(file.is_ok());
  EXPECT_EQ(fs::write_at(*file, 100, Bytes(100'000)).code(), Code::kNoSpace);
  EXPECT_EQ(fs::info(*file)->size, 8u * 512);
  EXPECT_EQ(*fs::free_bytes("/n0"), 0u);
  EXPECT_EQ(*fs::file_system_bytes("/n0"), 10u * 512);
  EXPECT_EQ(fs::create_new("/n0/b").status().code(), Code::kNoSpace);
  EXPECT_TRUE(fs::write_at(*file, 0, Bytes(100)).is_ok());  // there is something already
  ASSERT_TRUE(fs::truncate(*file, 512).is_ok());
  EXPECT_EQ(*fs::free_bytes("/n0"), 7u * 512);
  EXPECT_TRUE(fs::create_new("/n0/b").is_ok());
}

TEST_F(Memory, WhatIsNotFlushedMayBeLost) {
  make("/n0/flushed", "one", true);
  ASSERT_TRUE(fs::sync_directory("/n0").is_ok());
  make("/n0/unnamed", "two", true);
  make("/n0/nothing", "three", false);
  memory_.crash("/n0", lose_all(), Order::kAny);
  EXPECT_EQ(names("/n0"), std::set<std::string>{"flushed"});
  EXPECT_EQ(get("/n0/flushed"), "one");

  make("/n0/new", "two", false);
  ASSERT_TRUE(fs::sync_directory("/n0").is_ok());
  memory_.crash("/n0", lose_all(), Order::kAny);
  EXPECT_EQ(names("/n0"), (std::set<std::string>{"flushed", "new"}));
  EXPECT_EQ(get("/n0/new"), "");

  ASSERT_TRUE(fs::rename("/n0/flushed", "/n0/new").is_ok());
  memory_.crash("/n0", keep_all(), Order::kAny);
  EXPECT_EQ(names("/n0"), std::set<std::string>{"new"});
  EXPECT_EQ(get("/n0/new"), "one");
  EXPECT_EQ(memory_.used_bytes("/n0"), 3u * 512);

  ASSERT_TRUE(fs::remove_file("/n0/new").is_ok());
  memory_.crash("/n0", lose_all(), Order::kInOrder);
  EXPECT_EQ(get("/n0/new"), "one");
}

TEST_F(Memory, AnyPartMayBeLost) {
  std::set<std::string> contents, in_order, in_any_order;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    memory_.mount("/n0");
    make("/n0/file", std::string(1024, 'a'), true);
    ASSERT_TRUE(fs::sync_directory("/n0").is_ok());
    {
      const auto file = fs::open_or_create("/n0/file");
      ASSERT_TRUE(fs::write_at(*file, 0, bytes(std::string(1536, 'b'))).is_ok());
    }
    for (const char* name : {"/n0/1", "/n0/2", "/n0/3"}) make(name, "x", true);
    const Order order = seed % 2 == 0 ? Order::kInOrder : Order::kAny;
    memory_.crash("/n0", choose_randomly(seed), order);
    std::string outcome;
    const std::string found = get("/n0/file");
    for (std::size_t i = 0; i < found.size(); i += 512) outcome += found[i] == 0 ? '0' : found[i];
    contents.insert(outcome);
    std::string all;
    for (const auto& name : names("/n0")) all += name[0];
    (seed % 2 == 0 ? in_order : in_any_order).insert(all);
  }
  const std::set<std::string> possible = {"aa",  "bb",  "ab",  "ba",  "aa0", "aab",
                                          "ab0", "abb", "ba0", "bab", "bb0", "bbb"};
  EXPECT_LE(contents.size(), possible.size());
  for (const char* one : {"aa", "aa0", "bbb", "aab", "bab", "ab"})
    EXPECT_TRUE(contents.contains(one));
  for (const auto& one : contents) EXPECT_TRUE(possible.contains(one)) << one;
  EXPECT_EQ(in_order, (std::set<std::string>{"f", "1f", "12f", "123f"}));
  EXPECT_EQ(in_any_order.size(), 8u);
}

TEST_F(Memory, ANewDirectoryIsLostWithWhatIsInIt) {
  ASSERT_TRUE(fs::make_directory("/n0/d").is_ok());
  make("/n0/d/a", "x", true);
  ASSERT_TRUE(fs::sync_directory("/n0/d").is_ok());
  memory_.crash("/n0", lose_all(), Order::kAny);
  EXPECT_TRUE(names("/n0").empty());
  EXPECT_EQ(memory_.used_bytes("/n0"), 512u);
}

TEST_F(Memory, ARenamedDirectoryHasOneName) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    memory_.mount("/n0");
    ASSERT_TRUE(fs::make_directory("/n0/a").is_ok());
    ASSERT_TRUE(fs::sync_directory("/n0").is_ok());
    ASSERT_TRUE(fs::rename("/n0/a", "/n0/b").is_ok());
    ASSERT_TRUE(fs::rename("/n0/b", "/n0/c").is_ok());
    memory_.crash("/n0", choose_randomly(seed), Order::kAny);
    EXPECT_EQ(names("/n0").size(), 1u);
  }
}

TEST_F(Memory, AfterAFailedFlushALaterOneDoesNotHelp) {
  make("/n0/a", "old", true);
  ASSERT_TRUE(fs::sync_directory("/n0").is_ok());
  {
    const auto file = fs::open_or_create("/n0/a");
    ASSERT_TRUE(fs::write_at(*file, 0, bytes("new")).is_ok());
    memory_.fail_sync(file->fd());
    ASSERT_TRUE(fs::write_at(*file, 3, bytes("er")).is_ok());
    ASSERT_TRUE(fs::sync_data(*file).is_ok());
  }
  EXPECT_EQ(get("/n0/a"), "newer");
  memory_.crash("/n0", lose_all(), Order::kAny);
  EXPECT_EQ(get("/n0/a"), "older");
}

TEST_F(Memory, DisksAreOnTheirOwn) {
  memory_.mount("/n1");
  make("/n0/a", "x", false);
  make("/n1/a", "y", false);
  EXPECT_NE(fs::info("/n0/a")->device, fs::info("/n1/a")->device);
  const auto open = fs::open_read("/n0/a");
  EXPECT_FALSE(fs::link("/n0/a", "/n1/b").is_ok());
  memory_.crash("/n0", lose_all(), Order::kAny);
  EXPECT_FALSE(fs::info(*open).is_ok());
  EXPECT_TRUE(names("/n0").empty());
  EXPECT_EQ(get("/n1/a"), "y");
  memory_.settle("/n1");
  memory_.crash("/n1", lose_all(), Order::kAny);
  EXPECT_EQ(get("/n1/a"), "y");
}

}  // namespace
}  // namespace dedup::test
