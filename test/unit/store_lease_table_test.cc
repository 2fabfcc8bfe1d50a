#include "store/lease_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "store/files/log_file.h"
#include "store/log.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::TempDir;

// A log with a table as its process sees it, and as the service does.
class LeaseTableTest : public testing::Test {
 protected:
  void SetUp() override {
    auto log = LogFileWriter::create(dir_ / "l", Id128::random(), 1);
    ASSERT_TRUE(log.is_ok()) << log.status().message();
    log_ = std::move(*log);
    EXPECT_EQ(open_leases(dir_ / "l").status().code(), Code::kCorrupt);
    auto own = log_->make_leases();
    ASSERT_TRUE(own.is_ok()) << own.status().message();
    own_ = std::move(*own);
    auto service = open_leases(dir_ / "l");
    ASSERT_TRUE(service.is_ok()) << service.status().message();
    service_ = std::move(*service);
  }

  const TempDir dir_;
  std::unique_ptr<LogWriter> log_;
  std::unique_ptr<LeaseTable> own_;
  std::unique_ptr<LeaseTable> service_;
};

using Noted = LeaseTable::Noted;

TEST_F(LeaseTableTest, TellsTheServiceWhatWasWritten) {
  own_->begin(3, 1);
  own_->begin(LeaseTable::kSlots - 1, 2);
  EXPECT_EQ(own_->note(3, {0, 10, 100}), Noted::kYes);
  EXPECT_EQ(own_->note(3, {10, 10, 110}), Noted::kYes);
  EXPECT_EQ(own_->note(3, {20, 10, 130}), Noted::kYes);  // elsewhere in the log
  EXPECT_EQ(own_->note(3, {50, 10, 140}), Noted::kYes);  // elsewhere in the block
  const auto writes = service_->recall(3, 1);
  ASSERT_TRUE(writes);
  ASSERT_EQ(writes->size(), 3u);
  EXPECT_EQ(writes->at(0).length, 20u);
  EXPECT_EQ(writes->at(1).log_offset, 130u);
  EXPECT_EQ(writes->at(2).begin, 50u);
  EXPECT_EQ(own_->note(3, {60, 10, 150}), Noted::kRecalled);
  EXPECT_EQ(own_->note(3, {0, 1, 160}), Noted::kRecalled);
  EXPECT_TRUE(own_->end(3));
  EXPECT_EQ(own_->writes(3).size(), 4u);
  // The other one is as it was.
  EXPECT_EQ(own_->note(LeaseTable::kSlots - 1, {0, 10, 200}), Noted::kYes);
  EXPECT_FALSE(own_->end(LeaseTable::kSlots - 1));
  EXPECT_EQ(service_->recall(LeaseTable::kSlots - 1, 2)->size(), 1u);
}

TEST_F(LeaseTableTest, KnowsOneLeaseFromAnother) {
  EXPECT_FALSE(service_->recall(0, 1));
  EXPECT_FALSE(service_->recall(LeaseTable::kSlots, 1));
  own_->begin(0, 1);
  EXPECT_FALSE(service_->recall(0, 2));
  EXPECT_EQ(own_->note(0, {0, 10, 100}), Noted::kYes);
  EXPECT_FALSE(own_->end(0));
  EXPECT_TRUE(service_->recall(0, 1));
  own_->free(0);
  EXPECT_FALSE(service_->recall(0, 1));
  own_->begin(0, 2);
  EXPECT_FALSE(service_->recall(0, 1));
  EXPECT_EQ(own_->note(0, {0, 10, 110}), Noted::kYes);
  EXPECT_EQ(service_->recall(0, 2)->front().log_offset, 110u);
}

TEST_F(LeaseTableTest, HasRoomForSoManyWritesAndNoMore) {
  own_->begin(5, 1);
  for (std::uint32_t i = 0; i < LeaseTable::kWrites; ++i) {
    EXPECT_EQ(own_->note(5, {2 * i, 1, 100 + i}), Noted::kYes);
  }
  EXPECT_EQ(own_->note(5, {0, 1, 9000}), Noted::kFull);
  // One that continues the last needs none.
  EXPECT_EQ(own_->note(5, {2 * LeaseTable::kWrites - 1, 1, 100 + LeaseTable::kWrites}),
            Noted::kYes);
  EXPECT_EQ(service_->recall(5, 1)->size(), LeaseTable::kWrites);
  EXPECT_FALSE(service_->recall(4, 1));
}

TEST_F(LeaseTableTest, StaysWhenTheLogIsCleared) {
  own_->begin(0, 1);
  ASSERT_EQ(own_->note(0, {0, 10, 100}), Noted::kYes);
  ASSERT_TRUE(log_->append(Bytes(100000)).is_ok());
  ASSERT_TRUE(log_->clear(LogWriter::Space::kFree).is_ok());
  EXPECT_EQ(own_->note(0, {10, 10, 110}), Noted::kYes);
  EXPECT_EQ(service_->recall(0, 1)->front().length, 20u);
}

// A write that the process takes for noted is among those of whoever recalls the lease, and a
// recall that finds the lease finds its writes and no others.
TEST_F(LeaseTableTest, NothingIsLostBetweenTheTwo) {
  constexpr std::uint64_t kLeases = 20000;
  std::atomic<std::uint64_t> serial{0};
  std::atomic<bool> done{false};
  // By lease: how many writes a recall found, plus one.
  std::vector<std::atomic<std::uint64_t>> found(kLeases + 1);
  std::thread recaller([&] {
    while (!done) {
      const std::uint64_t now = serial;
      const auto writes = service_->recall(0, now);
      if (!writes) continue;
      std::uint64_t bytes = 0;
      for (const LeasedWrite& write : *writes) {
        EXPECT_EQ(write.log_offset / 1000, now);
        bytes += write.length;
      }
      found[now] = bytes + 1;
    }
  });
  std::uint64_t met = 0;
  for (std::uint64_t lease = 1; lease <= kLeases; ++lease) {
    own_->begin(0, lease);
    serial = lease;
    std::uint32_t noted = 0;
    Noted outcome = Noted::kYes;
    for (std::uint32_t i = 0; i < 40 && outcome == Noted::kYes; ++i) {
      // Every third one does not continue the one before.
      outcome = own_->note(0, {i + i / 3, 1, lease * 1000 + i});
      if (outcome == Noted::kYes) ++noted;
    }
    if (outcome == Noted::kRecalled) {
      while (found[lease] == 0) std::this_thread::yield();
      EXPECT_GE(found[lease], noted + 1);
      ++met;
    }
    own_->end(0);
    own_->free(0);
  }
  done = true;
  recaller.join();
  // How often the two meet is the scheduler's choice.
  RecordProperty("met", static_cast<int>(met));
}

}  // namespace
}  // namespace dedup::store
