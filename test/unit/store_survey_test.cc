// What a store says it has, and what its attempts have come to.
#include "store/survey.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/fields.h"
#include "store/deletion.h"
#include "store/files/segment_file.h"
#include "store/index.h"
#include "store/segment.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

class StoreSurveyTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Store::open(dir_ / "s", true);
    ASSERT_TRUE(opened.is_ok()) << opened.status().message();
    store_ = std::move(*opened);
    ASSERT_TRUE(store_->create_file(identity_, "/scratch/a").is_ok());
  }

  CommitRecord prepare(std::uint64_t number) {
    CommitRecord record;
    record.identity = identity_;
    record.number = number;
    record.attempt = test::random_id(random_);
    record.path = "/scratch/a";
    record.stores = {{store_->uuid(), "n0"}};
    EXPECT_TRUE(store_->prepare(record, false).is_ok());
    return record;
  }

  CommitRecord commit(std::uint64_t number) {
    CommitRecord record = prepare(number);
    EXPECT_TRUE(store_->commit(identity_, record.attempt, false).is_ok());
    return record;
  }

  // A segment with some chunks, all of which but the last the generation's index names.
  void add_chunks(const CommitRecord& record, std::size_t chunks) {
    auto writer =
        SegmentFileWriter::create(test::layout_of(*store_).segment(identity_, 1), identity_, 1);
    ASSERT_TRUE(writer.is_ok());
    std::vector<IndexEntry> entries;
    for (std::size_t i = 0; i < chunks; ++i) {
      const Fingerprint fingerprint = test::random_fingerprint(random_);
      entries.push_back({fingerprint, *(*writer)->append(fingerprint, Bytes(100))});
    }
    ASSERT_TRUE((*writer)->write_out().is_ok());
    entries.pop_back();
    ASSERT_TRUE(test::write_index(test::layout_of(*store_).index(identity_, record.attempt),
                                  identity_, record.attempt, entries, false)
                    .is_ok());
  }

  // What a rank gets of what another one sends.
  StoreSurvey surveyed() {
    const auto survey = store::survey(*store_);
    EXPECT_TRUE(survey.is_ok()) << survey.status().message();
    auto received = decoded<StoreSurvey>(encoded(*survey));
    EXPECT_TRUE(received);
    return *std::move(received);
  }

  test::TempDir dir_;
  test::Random random_{3};
  Id128 identity_ = test::random_id(random_);
  std::unique_ptr<Store> store_;
};

TEST_F(StoreSurveyTest, AFileWithoutAGeneration) {
  const StoreSurvey survey = surveyed();
  EXPECT_EQ(survey.uuid, store_->uuid());
  EXPECT_EQ(survey.directory, store_->directory());
  EXPECT_GT(survey.free_bytes, 0u);
  EXPECT_GE(survey.file_system_bytes, survey.free_bytes);
  ASSERT_EQ(survey.files.size(), 1u);
  EXPECT_EQ(survey.files[0].identity, identity_);
  EXPECT_TRUE(survey.files[0].newest.empty());
  EXPECT_FALSE(survey.files[0].has_index);
}

TEST_F(StoreSurveyTest, WhatIsNewestAndHowMuchItTakes) {
  commit(1);
  const CommitRecord newest = commit(2);
  const CommitRecord prepared = prepare(3);
  ASSERT_TRUE(store_->begin_attempt(identity_, test::random_id(random_)).is_ok());
  add_chunks(newest, 10);
  const FileSurvey file = surveyed().files.at(0);
  EXPECT_EQ(file.newest, std::vector<SharedRecord>{newest});
  EXPECT_EQ(file.prepared, std::vector<SharedRecord>{prepared});
  EXPECT_EQ(file.committed.size(), 2u);
  EXPECT_EQ(file.unfinished, 2u);
  EXPECT_TRUE(file.has_index);
  EXPECT_EQ(file.chunks, 9u);
  EXPECT_EQ(file.live_bytes, 9 * (100 + kChunkHeaderSize));
  EXPECT_EQ(file.segment_bytes, 64 + 10 * (100 + kChunkHeaderSize));
}

TEST_F(StoreSurveyTest, TwoOfOneNumber) {
  commit(4);
  commit(4);
  EXPECT_EQ(surveyed().files.at(0).newest.size(), 2u);
}

TEST_F(StoreSurveyTest, DamageIsSaidAndHidesNothing) {
  const CommitRecord older = commit(1);
  const CommitRecord newest = commit(2);
  add_chunks(older, 2);
  std::filesystem::resize_file(
      test::layout_of(*store_).generation(identity_, newest.attempt) + "/record", 50);
  std::filesystem::resize_file(test::layout_of(*store_).index(identity_, older.attempt), 5000);
  const FileSurvey file = surveyed().files.at(0);
  ASSERT_EQ(file.damaged.size(), 1u);
  EXPECT_NE(file.damaged[0].find(newest.attempt.hex()), std::string::npos);
  EXPECT_EQ(file.newest, std::vector<SharedRecord>{older});
  EXPECT_FALSE(file.has_index);
  EXPECT_NE(file.index_damage, "");
}

TEST_F(StoreSurveyTest, LocksAreSeenAndNotTaken) {
  const CommitRecord record = commit(1);
  EXPECT_FALSE(surveyed().files.at(0).writing);
  {
    const auto writing = store_->lock_for_writing(identity_);
    ASSERT_TRUE(writing.is_ok());
    EXPECT_TRUE(surveyed().files.at(0).writing);
    EXPECT_FALSE(surveyed().files.at(0).reading);
  }
  const auto reading = store_->lock_generation(identity_, record.attempt);
  ASSERT_TRUE(reading.is_ok());
  EXPECT_FALSE(surveyed().files.at(0).writing);
  EXPECT_TRUE(surveyed().files.at(0).reading);
}

TEST_F(StoreSurveyTest, Marks) {
  const Id128 other = test::random_id(random_);
  ASSERT_TRUE(drop_with_mark(*store_, identity_, {other}).is_ok());
  const StoreSurvey survey = surveyed();
  EXPECT_TRUE(survey.files.empty());
  ASSERT_EQ(survey.marks.size(), 1u);
  EXPECT_EQ(survey.marks[0].identity, identity_);
  EXPECT_EQ(survey.marks[0].stores_left, std::vector<Id128>{other});
}

TEST_F(StoreSurveyTest, WhatAnotherRankSendsIsNotBelieved) {
  commit(1);
  ASSERT_TRUE(store_->put_mark(test::random_id(random_), {store_->uuid()}).is_ok());
  const auto survey = store::survey(*store_);
  const Bytes whole = encoded(*survey);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decoded<StoreSurvey>(std::span(whole).first(size))) << "cut to " << size;
  }
}

}  // namespace
}  // namespace dedup::store
