#include "test/hooks/paced_system.h"

#include <gtest/gtest.h>

#include <ctime>
#include <limits>

#include "store/fs.h"
#include "test/unit/hand_clock.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

class PacedSystemTest : public ::testing::Test {
 protected:
  void SetUp() override { clock.time = kSecond; }
  ~PacedSystemTest() override { use_system(before); }

  test::HandClock clock;
  std::atomic<std::int64_t> busy_until{0};
  PacedDevice device{1000, busy_until, clock};
  // Beyond all times that a file has.
  PacedSystem paced{kernel(), device, {std::numeric_limits<time_t>::max(), 0}};
  System& before = use_system(paced);
  test::TempDir directory;
};

TEST_F(PacedSystemTest, BytesReadAndWrittenTakeTime) {
  const Bytes data(3000, std::byte{7});
  auto file = fs::create_new(directory / "file");
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(fs::write_at(*file, 100, data).is_ok());
  EXPECT_EQ(clock.time, 4 * kSecond);
  Bytes back(2000);
  ASSERT_TRUE(fs::read_at(*file, 100, back).is_ok());
  EXPECT_EQ(clock.time, 6 * kSecond);
  EXPECT_EQ(back, Bytes(2000, std::byte{7}));
}

TEST_F(PacedSystemTest, WhatWasWrittenLateIsReadFromMemory) {
  PacedSystem late(kernel(), device, {1, 0});
  use_system(late);
  auto file = fs::create_new(directory / "file");
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(fs::write_at(*file, 0, Bytes(500)).is_ok());
  const std::int64_t written = clock.time;
  EXPECT_GT(written, kSecond);
  Bytes back(500);
  ASSERT_TRUE(fs::read_at(*file, 0, back).is_ok());
  EXPECT_EQ(clock.time, written);
}

TEST_F(PacedSystemTest, OnlyWhatWentThroughTakesTime) {
  auto file = fs::create_new(directory / "file");
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(fs::write_at(*file, 0, Bytes(500)).is_ok());
  const std::int64_t written = clock.time;
  Bytes back(2000);
  EXPECT_FALSE(fs::read_at(*file, 0, back).is_ok());  // 500 bytes, then the end
  EXPECT_EQ(clock.time, written + kSecond / 2);
}

TEST_F(PacedSystemTest, ErrorsOfTheKernelComeThrough) {
  const auto missing = fs::open_read(directory / "missing");
  EXPECT_EQ(missing.status().code(), Code::kNoSuchFile);
  EXPECT_EQ(clock.time, kSecond);
}

}  // namespace
}  // namespace dedup::store
