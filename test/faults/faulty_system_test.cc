#include "test/hooks/faulty_system.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "store/fs.h"
#include "test/faults/memory_system.h"

namespace dedup::test {
namespace {

namespace fs = store::fs;
using store::Fault;

// A disk whose calls fail as planned.
class Faulty : public testing::Test {
 protected:
  MemorySystem memory_;
  store::FaultPlan plan_;
  store::FaultySystem faulty_{memory_, plan_};
  store::System& before_ = store::use_system(faulty_);

  Faulty() { memory_.mount("/n0"); }
  ~Faulty() override { store::use_system(before_); }

  // Writes a file in the way of records; every kind of call that a fault knows is in it.
  static Status work() {
    DEDUP_TRY(fs::write_file_atomically("/n0/record", Bytes(1000, std::byte{7})));
    DEDUP_TRY(fs::read_file("/n0/record").status());
    return fs::list("/n0").status();
  }
};

TEST_F(Faulty, EveryFaultStrikesOnceAtEveryCall) {
  std::map<Fault, std::uint64_t> points;
  for (auto fault = Fault::kIo; fault != Fault::kEnd;
       fault = static_cast<Fault>(static_cast<int>(fault) + 1)) {
    for (std::uint64_t n = 1;; ++n) {
      memory_.mount("/n0");
      plan_.set(fault, n);
      const Status status = work();
      if (plan_.struck == 0) {
        EXPECT_TRUE(status.is_ok()) << status.message();
        EXPECT_EQ(plan_.calls, n - 1);
        break;
      }
      ++points[fault];
      const bool harmless = fault == Fault::kInterrupted || fault == Fault::kShort;
      EXPECT_EQ(status.is_ok(), harmless)
          << name_of(fault) << " at " << plan_.where << ": " << status.message();
      const Code code = fault == Fault::kNoSpace || fault == Fault::kFull ? Code::kNoSpace
                        : fault == Fault::kReadOnly                       ? Code::kReadOnly
                                                                          : Code::kIo;
      if (harmless) continue;
      EXPECT_EQ(status.code(), code) << name_of(fault) << " at " << plan_.where;
    }
  }
  // unlink, open, fchmod, pwritev, fdatasync, rename, open, fsync; open, fstat, preadv; list.
  EXPECT_EQ(points[Fault::kIo], 12u);
  EXPECT_EQ(points[Fault::kDead], 12u);
  EXPECT_EQ(points[Fault::kLate], 4u);
  EXPECT_EQ(points[Fault::kNoSpace], 5u);
  EXPECT_EQ(points[Fault::kFull], 5u);
  EXPECT_EQ(points[Fault::kReadOnly], 7u);
  EXPECT_EQ(points[Fault::kTooMany], 4u);
  EXPECT_EQ(points[Fault::kInterrupted], 8u);
  EXPECT_EQ(points[Fault::kShort], 2u);
  EXPECT_EQ(points[Fault::kDeadShort], 1u);
}

TEST_F(Faulty, TheDeadDoNothing) {
  int deaths = 0;
  faulty_.on_death = [&] { ++deaths; };
  plan_.set(Fault::kDead, 3);
  EXPECT_FALSE(work().is_ok());
  EXPECT_EQ(memory_.tree("/n0").size(), 1u);  // not even removing
  EXPECT_FALSE(work().is_ok());
  EXPECT_GE(deaths, 1);
  EXPECT_EQ(memory_.tree("/n0").size(), 1u);
}

TEST_F(Faulty, AFlushThatFailedIsTold) {
  faulty_.on_failed_sync = [&](int fd) { memory_.fail_sync(fd); };
  for (const std::uint64_t n : {3u, 5u}) {  // the file's, the directory's
    plan_.set(Fault::kNoSpace, n);
    EXPECT_EQ(work().code(), Code::kNoSpace) << plan_.where;
    EXPECT_EQ(plan_.struck, 1u);
  }
}

}  // namespace
}  // namespace dedup::test
