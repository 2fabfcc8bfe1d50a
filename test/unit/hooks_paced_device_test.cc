#include "test/hooks/paced_device.h"

#include <gtest/gtest.h>

#include "test/unit/hand_clock.h"

namespace dedup {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMillisecond;

class PacedDeviceTest : public ::testing::Test {
 protected:
  test::HandClock clock;
  std::atomic<std::int64_t> busy_until{0};
  PacedDevice device{1000, busy_until, clock};
};

TEST_F(PacedDeviceTest, SleepsForAsLongAsTheBytesTake) {
  clock.time = 5 * kSecond;
  device.pass(500);
  EXPECT_EQ(clock.time, 5 * kSecond + 500 * kMillisecond);
}

TEST_F(PacedDeviceTest, TimesAddUpWhoeverAsks) {
  clock.time = 5 * kSecond;
  PacedDevice other(1000, busy_until, clock);
  EXPECT_EQ(device.reserve(500, clock.now()), 5 * kSecond + 500 * kMillisecond);
  EXPECT_EQ(other.reserve(250, clock.now()), 5 * kSecond + 750 * kMillisecond);
}

TEST_F(PacedDeviceTest, SleepingTooLongDoesNotAddUp) {
  clock.time = 5 * kSecond;
  clock.oversleeps = 3 * kMillisecond;
  for (int i = 0; i < 100; ++i) device.pass(50);
  EXPECT_EQ(clock.time, 10 * kSecond + clock.oversleeps);
}

TEST_F(PacedDeviceTest, IdleTimeIsLost) {
  clock.time = 5 * kSecond;
  device.pass(1000);
  clock.time += PacedDevice::kIdleAfter + 1;
  const std::int64_t idle_until = clock.time;
  device.pass(1000);
  EXPECT_EQ(clock.time, idle_until + kSecond);
}

TEST_F(PacedDeviceTest, WorkThatBeganEarlierIsDoneEarlier) {
  clock.time = 5 * kSecond;
  const std::int64_t began = clock.now();
  clock.time += 300 * kMillisecond;
  device.wait(device.reserve(1000, began));
  EXPECT_EQ(clock.time, 6 * kSecond);
  // What took longer than the device would is not slowed down.
  const std::int64_t again = clock.now();
  clock.time += 2 * kSecond;
  device.wait(device.reserve(1000, again));
  EXPECT_EQ(clock.time, 8 * kSecond);
}

TEST_F(PacedDeviceTest, NothingTakesNoTimeWhenOff) {
  const PacedDevice off;
  EXPECT_FALSE(off.is_paced());
  off.pass(1 << 30);
  EXPECT_EQ(off.duration(1 << 30), 0);
  EXPECT_EQ(clock.time, 0);
}

TEST(ParsePace, RatesWithUnits) {
  const auto rates = parse_pace("store=10M,link=1.5K,hash=700");
  ASSERT_TRUE(rates.is_ok()) << rates.status().message();
  EXPECT_EQ(rates->store, 10 * 1048576);
  EXPECT_EQ(rates->link, 1536);
  EXPECT_EQ(rates->hash, 700);
  EXPECT_EQ(parse_pace("hash=2G")->hash, 2147483648.0);
  EXPECT_EQ(parse_pace("hash=2G")->store, 0);
}

TEST(ParsePace, WhatIsNotARateIsNamed) {
  for (const char* text : {"", "store", "store=", "store=0", "store=-1", "store=1T", "store=1MB",
                           "disk=1M", "store=1,store=2", "store=1,", "store=inf", "store=nan"}) {
    EXPECT_FALSE(parse_pace(text).is_ok()) << text;
  }
  EXPECT_NE(parse_pace("store=1M,link=fast").status().message().find("\"link=fast\""),
            std::string::npos);
}

}  // namespace
}  // namespace dedup
