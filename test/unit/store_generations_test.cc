// Commit, locks, dropping and collecting.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "store/files/log_file.h"
#include "store/files/segment_file.h"
#include "store/index.h"
#include "store/log.h"
#include "store/segment.h"
#include "store/shard.h"
#include "store/store.h"
#include "test/unit/shard_helpers.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::TempDir;

class StoreGenerations : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Store::open(dir_ / "s", true);
    ASSERT_TRUE(opened.is_ok()) << opened.status().message();
    store_ = std::move(*opened);
    ASSERT_TRUE(store_->create_file(identity_, "/scratch/a").is_ok());
  }

  CommitRecord record(std::uint64_t number) const {
    CommitRecord r;
    r.identity = identity_;
    r.number = number;
    r.attempt = Id128::random();
    r.path = "/scratch/a";
    return r;
  }

  // A segment with one chunk; returns its index entry.
  IndexEntry segment(std::uint64_t number, std::size_t size = 20000) {
    auto writer = SegmentFileWriter::create(test::layout_of(*store_).segment(identity_, number),
                                            identity_, number);
    EXPECT_TRUE(writer.is_ok()) << writer.status().message();
    IndexEntry entry{test::random_fingerprint(random_), {}};
    entry.location = *(*writer)->append(entry.fingerprint, Bytes(size));
    EXPECT_TRUE((*writer)->flush().is_ok());
    return entry;
  }

  // A generation with an index of `entries` and a shard, prepared, and committed if wanted.
  CommitRecord generation(std::uint64_t number, const std::vector<IndexEntry>& entries,
                          bool committed = true) {
    const CommitRecord r = record(number);
    EXPECT_TRUE(store_->begin_attempt(identity_, r.attempt).is_ok());
    EXPECT_TRUE(test::write_index(test::layout_of(*store_).index(identity_, r.attempt), identity_,
                                  r.attempt, entries, false)
                    .is_ok());
    EXPECT_TRUE(write_shard(r.attempt, 0, Bytes(3000)).is_ok());
    EXPECT_TRUE(store_->prepare(r, number % 2 == 0).is_ok());
    EXPECT_TRUE(!committed || store_->commit(identity_, r.attempt, number % 2 == 0).is_ok());
    return r;
  }

  // Of one block with these bytes.
  Status write_shard(const Id128& attempt, std::uint32_t shard, Bytes bytes) {
    DEDUP_ASSIGN(const auto writer, store_->create_shard(identity_, attempt, shard, {}));
    DEDUP_TRY(writer->add(with_checksum(shard, std::move(bytes))));
    return writer->finish();
  }

  std::vector<std::uint64_t> segment_numbers() {
    std::vector<std::uint64_t> numbers;
    for (const auto& s : *store_->segments(identity_)) numbers.push_back(s.segment);
    return numbers;
  }

  bool exists(const CommitRecord& r) {
    return std::filesystem::exists(test::layout_of(*store_).generation(identity_, r.attempt));
  }

  // What taking the lock gives in another process.
  int code_in_child(const std::function<Status(Store&)>& body) {
    return test::in_child([&] {
      auto store = Store::open(dir_ / "s", false);
      return store.is_ok() ? static_cast<int>(body(**store).code()) : 100;
    });
  }

  const TempDir dir_;
  test::Random random_{1};
  const Id128 identity_ = Id128::random();
  std::unique_ptr<Store> store_;
};

constexpr int kOk = static_cast<int>(Code::kOk);
constexpr int kInUse = static_cast<int>(Code::kFileInUse);

TEST_F(StoreGenerations, ExistFromTheRenameOn) {
  EXPECT_EQ(store_->newest(identity_).status().code(), Code::kNotFound);
  const CommitRecord first = record(1);
  EXPECT_EQ(store_->commit(identity_, first.attempt, true).code(), Code::kNotFound);
  ASSERT_TRUE(store_->prepare(first, true).is_ok());
  EXPECT_EQ(store_->newest(identity_).status().code(), Code::kNotFound);
  EXPECT_TRUE(store_->find("/scratch/a")->records.empty());
  ASSERT_TRUE(store_->prepare(first, true).is_ok());
  ASSERT_TRUE(store_->commit(identity_, first.attempt, true).is_ok());
  EXPECT_EQ(*store_->newest(identity_), first);
  ASSERT_TRUE(store_->commit(identity_, first.attempt, true).is_ok());

  const CommitRecord second = record(2);
  ASSERT_TRUE(store_->prepare(second, false).is_ok());
  EXPECT_EQ(*store_->newest(identity_), first);
  ASSERT_TRUE(store_->commit(identity_, second.attempt, false).is_ok());
  EXPECT_EQ(*store_->newest(identity_), second);
  ASSERT_TRUE(store_->adopt(first).is_ok());
  EXPECT_EQ(*store_->newest(identity_), second);
}

TEST_F(StoreGenerations, KeepTheirShardsAsWrittenLast) {
  const CommitRecord r = record(1);
  ASSERT_TRUE(store_->begin_attempt(identity_, r.attempt).is_ok());
  const Bytes bytes = test::random_bytes(random_, 3000);
  ASSERT_TRUE(write_shard(r.attempt, 12, test::random_bytes(random_, 5000)).is_ok());
  ASSERT_TRUE(write_shard(r.attempt, 12, bytes).is_ok());
  const auto shard = store_->shard(identity_, r.attempt, 12,
                                   test::digest_of(identity_, r.attempt, 12, {{12, bytes}}));
  ASSERT_TRUE(shard.is_ok()) << shard.status().message();
  EXPECT_EQ(*(*shard)->read(12), bytes);
}

TEST_F(StoreGenerations, AreNotChosenSilentlyOverADamagedOne) {
  const CommitRecord old = generation(1, {});
  const CommitRecord young = generation(2, {});
  const std::string path =
      test::layout_of(*store_).generation(identity_, young.attempt) + "/record";
  const Bytes whole = test::get_file(path);
  Bytes damaged = whole;
  damaged[60] ^= std::byte{4};
  test::put_file(path, damaged);
  EXPECT_EQ(store_->newest(identity_).status().code(), Code::kCorrupt);
  const auto found = store_->find("/scratch/a");
  ASSERT_TRUE(found.is_ok());
  ASSERT_EQ(found->damaged.size(), 1u);
  EXPECT_NE(found->damaged[0].find(path), std::string::npos);
  EXPECT_EQ(found->records, std::vector<CommitRecord>{old});
  // Adopting it from another node mends it.
  ASSERT_TRUE(store_->adopt(young).is_ok());
  EXPECT_EQ(*store_->newest(identity_), young);

  test::put_file(path, test::get_file(test::layout_of(*store_).generation(identity_, old.attempt) +
                                      "/record"));
  EXPECT_EQ(store_->newest(identity_).status().code(), Code::kCorrupt);
  Bytes newer = whole;
  newer[8] = static_cast<std::byte>(format::kRecord.version + 1);
  test::put_file(path, newer);
  EXPECT_EQ(store_->newest(identity_).status().code(), Code::kVersion);
  EXPECT_EQ(store_->find("/scratch/a").status().code(), Code::kVersion);
  EXPECT_EQ(store_->adopt(young).code(), Code::kVersion);
}

TEST_F(StoreGenerations, ThatBothHaveTheHighestNumberConflict) {
  const CommitRecord a = generation(3, {}), b = generation(3, {});
  const auto newest = store_->newest(identity_);
  EXPECT_EQ(newest.status().code(), Code::kConflict);
  EXPECT_NE(newest.status().message().find(a.attempt.hex()), std::string::npos);
  EXPECT_NE(newest.status().message().find(b.attempt.hex()), std::string::npos);
  EXPECT_EQ(store_->find("/scratch/a")->records.size(), 2u);
}

TEST_F(StoreGenerations, AreAbandonedOnlyUncommitted) {
  const CommitRecord committed = generation(1, {});
  const CommitRecord open = generation(2, {}, false);
  EXPECT_EQ(store_->abandon(identity_, committed.attempt).code(), Code::kArgument);
  EXPECT_TRUE(store_->abandon(identity_, open.attempt).is_ok());
  EXPECT_TRUE(store_->abandon(identity_, open.attempt).is_ok());
  EXPECT_FALSE(exists(open));
  EXPECT_EQ(*store_->newest(identity_), committed);
}

TEST_F(StoreGenerations, ReportAFullDiskAndLeaveTheOldOne) {
  const CommitRecord old = generation(1, {});
  const CommitRecord young = record(2);
  {
    const test::FileSizeLimit limit(10);
    EXPECT_FALSE(store_->prepare(young, true).is_ok());
    EXPECT_FALSE(write_shard(young.attempt, 0, Bytes(100)).is_ok());
  }
  EXPECT_EQ(store_->commit(identity_, young.attempt, true).code(), Code::kNotFound);
  EXPECT_EQ(*store_->newest(identity_), old);
  EXPECT_TRUE(store_->abandon(identity_, young.attempt).is_ok());
  EXPECT_FALSE(exists(young));
}

TEST_F(StoreGenerations, WritingIsForOneJobAtATime) {
  EXPECT_EQ(store_->lock_for_writing(Id128::random()).status().code(), Code::kNoSuchFile);
  const auto take = [&](Store& s) { return s.lock_for_writing(identity_).status(); };
  {
    const auto lock = store_->lock_for_writing(identity_);
    ASSERT_TRUE(lock.is_ok()) << lock.status().message();
    EXPECT_EQ(code_in_child(take), kInUse);
    EXPECT_EQ(take(*store_).code(), Code::kFileInUse);
  }
  EXPECT_EQ(code_in_child(take), kOk);
  EXPECT_EQ(code_in_child(take), kOk);  // a process that ended holds nothing
}

// A file that was being created when the power went.
TEST_F(StoreGenerations, WhatHasNoLockFileCanBeLocked) {
  const std::string lock = (dir_ / "s/files/") + identity_.hex() + "/lock";
  ASSERT_EQ(std::remove(lock.c_str()), 0);
  EXPECT_TRUE(store_->lock_for_writing(identity_).is_ok());
  EXPECT_EQ(std::remove(lock.c_str()), 0);
}

TEST_F(StoreGenerations, APathIsCreatedByOneJobAtATime) {
  const std::string path = "/scratch/new";
  const Id128 mine = Id128::random();
  const auto take = [&](Store& s) {
    return s.create_for_writing(Id128::random(), path, {}, true).status();
  };
  {
    const auto lock = store_->create_for_writing(mine, path, {}, true);
    ASSERT_TRUE(lock.is_ok()) << lock.status().message();
    EXPECT_EQ(code_in_child(take), kInUse);
    // The job that has it may well create another: it has deleted this one, for example.
    EXPECT_TRUE(store_->create_for_writing(Id128::random(), path, {mine}, true).is_ok());
  }
  EXPECT_EQ(code_in_child(take), kOk);  // nobody came to commit one

  CommitRecord committed = record(1);
  committed.identity = mine;
  committed.path = path;
  ASSERT_TRUE(store_->adopt(committed).is_ok());
  const Status late = store_->create_for_writing(Id128::random(), path, {}, true).status();
  EXPECT_EQ(late.code(), Code::kFileExists);
  EXPECT_NE(late.message().find(path), std::string::npos);
}

TEST_F(StoreGenerations, ReadingIsForManyAndKeepsThem) {
  const CommitRecord old = generation(1, {segment(1)});
  const CommitRecord young = generation(2, {segment(2)});
  EXPECT_EQ(store_->lock_generation(identity_, Id128::random()).status().code(), Code::kNotFound);
  auto lock = store_->lock_generation(identity_, old.attempt);
  ASSERT_TRUE(lock.is_ok());
  EXPECT_EQ(
      code_in_child([&](Store& s) { return s.lock_generation(identity_, old.attempt).status(); }),
      kOk);
  EXPECT_EQ(code_in_child([&](Store& s) { return s.drop_file(identity_).status(); }), kInUse);
  const auto collect = [&](Store& s) {
    return s.collect(identity_, {young.attempt}, {}, true).status();
  };
  EXPECT_EQ(code_in_child(collect), kOk);
  EXPECT_TRUE(exists(old));
  EXPECT_EQ(segment_numbers(), (std::vector<std::uint64_t>{1, 2}));
  lock->reset();
  EXPECT_EQ(code_in_child(collect), kOk);
  EXPECT_FALSE(exists(old));
  EXPECT_EQ(segment_numbers(), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(store_->lock_generation(identity_, old.attempt).status().code(), Code::kNotFound);
}

TEST_F(StoreGenerations, CollectKeepsWhatLives) {
  const IndexEntry shared = segment(1), old_only = segment(2), new_only = segment(3);
  segment(4);  // of nobody
  segment(5);  // still written
  const CommitRecord old = generation(1, {shared, old_only});
  const CommitRecord failed = generation(2, {old_only}, false);
  const CommitRecord young = generation(3, {shared, new_only});
  ASSERT_TRUE(
      LogFileWriter::create(test::layout_of(*store_).log(identity_, 0x123), identity_, 0x123)
          .is_ok());
  test::put_file(test::layout_of(*store_).file(identity_) + "/segments/README", {});

  const auto freed = store_->collect(identity_, {young.attempt}, {5}, false);
  ASSERT_TRUE(freed.is_ok()) << freed.status().message();
  EXPECT_GE(*freed, 40000u);
  EXPECT_EQ(segment_numbers(), (std::vector<std::uint64_t>{1, 3, 5}));
  EXPECT_FALSE(exists(old));
  EXPECT_FALSE(exists(failed));
  EXPECT_EQ(*store_->newest(identity_), young);
  EXPECT_EQ(*store_->logs(identity_), std::vector<std::uint64_t>{0x123});
  EXPECT_TRUE(
      std::filesystem::exists(test::layout_of(*store_).file(identity_) + "/segments/README"));

  ASSERT_TRUE(store_->collect(identity_, {young.attempt}, {}, true).is_ok());
  EXPECT_EQ(segment_numbers(), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_TRUE(store_->logs(identity_)->empty());
  EXPECT_EQ(*store_->collect(identity_, {young.attempt}, {}, true), 0u);
}

TEST_F(StoreGenerations, CollectCanKeepWhatMayHaveBeenCommittedElsewhere) {
  const CommitRecord old = generation(1, {segment(1)});
  CommitRecord next = generation(2, {segment(2)}, false);
  CommitRecord other = generation(3, {segment(3)}, false);
  next.parent = old.attempt;
  other.parent = Id128::random();
  CommitRecord alone = generation(4, {segment(4)}, false);
  alone.parent = old.attempt;
  alone.stores = {{store_->uuid(), "n0"}};
  next.stores = other.stores = {{store_->uuid(), "n0"}, {Id128::random(), "n1"}};
  ASSERT_TRUE(store_->prepare(next, true).is_ok());
  ASSERT_TRUE(store_->prepare(other, true).is_ok());
  ASSERT_TRUE(store_->prepare(alone, true).is_ok());
  const auto collect = [&](Store::Prepared prepared) {
    return store_->collect(identity_, {old.attempt}, {}, true, prepared).status();
  };
  ASSERT_TRUE(collect(Store::Prepared::kKeep).is_ok());
  EXPECT_TRUE(exists(next));
  EXPECT_FALSE(exists(other));
  EXPECT_FALSE(exists(alone));
  EXPECT_EQ(segment_numbers(), (std::vector<std::uint64_t>{1, 2}));
  ASSERT_TRUE(collect(Store::Prepared::kDrop).is_ok());
  EXPECT_FALSE(exists(next));
  EXPECT_EQ(segment_numbers(), (std::vector<std::uint64_t>{1}));
}

TEST_F(StoreGenerations, CollectRemovesNoSegmentThatADamagedIndexMayName) {
  const CommitRecord young = generation(1, {segment(1)});
  segment(2);
  const std::string path = test::layout_of(*store_).index(identity_, young.attempt);
  Bytes bytes = test::get_file(path);
  bytes[20] ^= std::byte{1};
  test::put_file(path, bytes);
  ASSERT_TRUE(store_->collect(identity_, {young.attempt}, {}, true).is_ok());
  EXPECT_EQ(segment_numbers(), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(StoreGenerations, CollectWithNothingToKeepLeavesOnlyTheFile) {
  generation(1, {segment(1)}, false);
  ASSERT_TRUE(store_->collect(identity_, {}, {}, true).is_ok());
  EXPECT_TRUE(segment_numbers().empty());
  EXPECT_TRUE(store_->lock_for_writing(identity_).is_ok());
}

TEST_F(StoreGenerations, DropTakesEverything) {
  generation(1, {segment(1)});
  const Id128 other = Id128::random();
  CommitRecord kept = record(1);
  kept.identity = other;
  ASSERT_TRUE(store_->adopt(kept).is_ok());
  {
    const auto lock = store_->lock_for_writing(identity_);
    EXPECT_EQ(code_in_child([&](Store& s) { return s.drop_file(identity_).status(); }), kInUse);
    EXPECT_EQ(store_->find("/scratch/a")->records.size(), 2u);
  }
  ASSERT_TRUE(store_->drop_file(identity_).is_ok());
  ASSERT_TRUE(store_->drop_file(identity_).is_ok());
  EXPECT_FALSE(std::filesystem::exists(test::layout_of(*store_).file(identity_)));
  EXPECT_EQ(store_->find("/scratch/a")->records, std::vector<CommitRecord>{kept});
  EXPECT_EQ(store_->lock_for_writing(identity_).status().code(), Code::kNoSuchFile);
  ASSERT_TRUE(store_->drop_file(other).is_ok());
  for (const char* directory : {"s/files", "s/paths"}) {
    EXPECT_TRUE(std::filesystem::is_empty(dir_ / directory)) << directory;
  }
}

TEST_F(StoreGenerations, ADropThatWasInterruptedIsFinishedAtTheNextOpen) {
  generation(1, {segment(1)});
  std::filesystem::rename(test::layout_of(*store_).file(identity_),
                          dir_ / "s/files/drop-" + identity_.hex());
  EXPECT_TRUE(store_->find("/scratch/a")->records.empty());
  ASSERT_TRUE(Store::open(dir_ / "s", true).is_ok());
  for (const char* directory : {"s/files", "s/paths"}) {
    EXPECT_TRUE(std::filesystem::is_empty(dir_ / directory)) << directory;
  }
}

// A reader either gets a lock under which everything stays readable, or learns that it came late.
TEST_F(StoreGenerations, ReadersAndACollectorNeverHurtEachOther) {
  constexpr int kRounds = 200;
  std::vector<CommitRecord> generations;
  for (int i = 0; i < kRounds; ++i) {
    generations.push_back(generation(static_cast<std::uint64_t>(2 * i + 1), {}));
  }
  const CommitRecord newest = generation(2 * kRounds + 1, {});
  const pid_t collector = ::fork();
  if (collector == 0) {
    auto store = Store::open(dir_ / "s", false);
    bool ok = store.is_ok();
    for (int i = 0; i < kRounds && ok; ++i) {
      ok = (*store)->collect(identity_, {newest.attempt}, {}, false).is_ok();
    }
    ::_exit(ok ? 0 : 1);
  }
  for (const auto& r : generations) {
    const auto lock = store_->lock_generation(identity_, r.attempt);
    if (lock.is_ok()) {
      EXPECT_TRUE(std::filesystem::exists(test::layout_of(*store_).index(identity_, r.attempt)));
      EXPECT_TRUE(std::filesystem::exists(
          test::layout_of(*store_).generation(identity_, r.attempt) + "/record"));
    } else {
      EXPECT_TRUE(lock.status().code() == Code::kNotFound ||
                  lock.status().code() == Code::kFileInUse)
          << lock.status().message();
    }
  }
  int status = 1;
  ASSERT_EQ(::waitpid(collector, &status, 0), collector);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace dedup::store
