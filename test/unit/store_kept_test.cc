#include "store/kept.h"

#include <gtest/gtest.h>

#include <utility>

#include "store/deletion.h"
#include "test/unit/shard_helpers.h"
#include "test/unit/store_contract.h"

namespace dedup::store::contract {

TEST(KeptName, IsThePathAndTheNumber) {
  EXPECT_EQ(kept_path("/scratch/ckpt.h5", 7), "/scratch/ckpt.h5@7");
  for (const char* path : {"/scratch/ckpt.h5", "/a@b", "/a@1", "x"}) {
    const auto name = parse_kept_path(kept_path(path, 12));
    ASSERT_TRUE(name) << path;
    EXPECT_EQ(name->path, path);
    EXPECT_EQ(name->number, 12u);
  }
  for (const char* name : {"", "@7", "/run/@7", "/ckpt", "/ckpt@", "/ckpt@7x", "/ckpt@07",
                           "/ckpt@-1", "/ckpt@99999999999999999999"}) {
    EXPECT_FALSE(parse_kept_path(name)) << name;
  }
}

TEST(KeptAfter, IsTheBaseAndWhatItKept) {
  CommitRecord base;
  base.number = 5;
  base.attempt = Id128::random();
  base.kept = {{4, Id128::random()}, {2, Id128::random()}};
  EXPECT_TRUE(kept_after(base, 0).empty());
  const std::vector<KeptGeneration> two{{5, base.attempt}, base.kept[0]};
  EXPECT_EQ(kept_after(base, 2), two);
  EXPECT_EQ(kept_after(base, 9).size(), 3u);
}

// Generations 1, 2, ... of a file, each of a segment that they share and one of its own.
template <typename Kind>
class StoreKept : public StoreContract<Kind> {
 protected:
  CommitRecord next(std::size_t keep) {
    const std::uint64_t number = records_.size() + 1;
    CommitRecord r = this->record(number, number == 1 ? Id128{} : records_.back().attempt);
    if (number > 1) r.kept = kept_after(records_.back(), keep);
    auto more = this->chunks({700});
    this->put(*this->store_, 10 + number, more);
    if (number == 1) {
      shared_ = this->chunks({1000, 2000});
      this->put(*this->store_, 10, shared_);
    }
    own_.push_back(more.front());
    std::vector<Chunk> all = shared_;
    all.push_back(more.front());
    EXPECT_TRUE(this->store_->begin_attempt(this->identity_, r.attempt).is_ok());
    EXPECT_TRUE(this->write_index(r.attempt, all).is_ok());
    write_shard(r);
    EXPECT_TRUE(this->store_->prepare(r, true).is_ok());
    EXPECT_TRUE(this->store_->commit(this->identity_, r.attempt, true).is_ok());
    records_.push_back(r);
    return r;
  }
  void write_shard(CommitRecord& r) {
    const Bytes block = encode_block(test::random_block(this->random_, 4096));
    const auto writer = this->store_->create_shard(this->identity_, r.attempt, 0, {});
    ASSERT_TRUE(writer.is_ok());
    ASSERT_TRUE((*writer)->add(with_checksum(0, block)).is_ok());
    ASSERT_TRUE((*writer)->finish().is_ok());
    r.shards = {{test::digest_of(this->identity_, r.attempt, 0, {{0, block}}), {0}}};
  }
  Result<std::uint64_t> collect() {
    return collect_older(*this->store_, this->identity_, records_.back().attempt,
                         records_.back().kept, {});
  }
  Id128 kept(std::uint64_t number) const {
    return kept_identity(this->identity_, records_[number - 1].attempt);
  }
  // Its record, recipe and chunks.
  void expect_whole(std::uint64_t number) {
    const CommitRecord& of = records_[number - 1];
    const auto newest = this->store_->newest(kept(number));
    ASSERT_TRUE(newest.is_ok()) << newest.status().message();
    EXPECT_EQ(newest->attempt, of.attempt);
    EXPECT_EQ(newest->path, kept_path(of.path, number));
    EXPECT_EQ(newest->kept_of, (KeptOf{this->identity_, number}));
    EXPECT_EQ(newest->size, of.size);
    EXPECT_TRUE(newest->kept.empty());
    const auto index = this->store_->index(kept(number), of.attempt);
    ASSERT_TRUE(index.is_ok()) << index.status().message();
    EXPECT_EQ((*index)->size(), 3u);
    const auto shard = this->store_->shard(kept(number), of.attempt, 0, of.shards[0].digest);
    ASSERT_TRUE(shard.is_ok()) << shard.status().message();
    EXPECT_TRUE((*shard)->read_encoded(0).is_ok());
    Bytes out;
    for (const Chunk& chunk : {shared_[0], shared_[1], own_[number - 1]}) {
      ASSERT_TRUE(this->get(*this->store_, kept(number), chunk, out).is_ok());
      EXPECT_EQ(out, chunk.data);
    }
  }
  bool is_here(std::uint64_t number) { return *this->store_->has_file(kept(number)); }

  std::vector<CommitRecord> records_;
  std::vector<Chunk> shared_;
  std::vector<Chunk> own_;
};
TYPED_TEST_SUITE(StoreKept, Kinds, KindNames);

TYPED_TEST(StoreKept, IsAFileOfItsOwnWithWhatTheGenerationHad) {
  this->next(2);
  EXPECT_FALSE(this->is_here(1));
  for (std::uint64_t number = 2; number <= 5; ++number) {
    this->next(2);
    ASSERT_TRUE(this->collect().is_ok());
    EXPECT_EQ(this->store_->generations(this->identity_)->committed.size(), 1u);
    for (std::uint64_t older = 1; older < number; ++older) {
      if (older + 2 >= number) {
        this->expect_whole(older);
      } else {
        EXPECT_FALSE(this->is_here(older)) << older;
      }
    }
  }
  // What the file itself has is what it had without them.
  EXPECT_EQ(this->store_->segments(this->identity_)->size(), 2u);
  ASSERT_TRUE(drop_with_mark(*this->store_, this->identity_, {}).is_ok());
  EXPECT_TRUE(this->store_->identities()->empty());
}

TYPED_TEST(StoreKept, GoesWithNoFileButItsOwn) {
  this->next(1);
  this->next(1);
  ASSERT_TRUE(this->collect().is_ok());
  ASSERT_TRUE(this->store_->drop_file(this->identity_).is_ok());
  this->expect_whole(1);
}

TYPED_TEST(StoreKept, StaysWhereItWasUntilItCanBeAFile) {
  this->next(1);
  this->next(1);
  {
    // Somebody else is just making it.
    const auto busy =
        this->store_->create_for_writing(this->kept(1), "/scratch/run/ckpt.h5@1", {}, false);
    ASSERT_TRUE(busy.is_ok());
    ASSERT_TRUE(this->collect().is_ok());
    EXPECT_TRUE(*this->store_->has_attempt(this->identity_, this->records_[0].attempt));
  }
  // And died.
  ASSERT_TRUE(this->store_->begin_attempt(this->kept(1), this->records_[0].attempt).is_ok());
  ASSERT_TRUE(this->collect().is_ok());
  EXPECT_FALSE(*this->store_->has_attempt(this->identity_, this->records_[0].attempt));
  this->expect_whole(1);
}

TYPED_TEST(StoreKept, IsNotMadeOfWhatIsNotHere) {
  const CommitRecord first = this->record(1);
  ASSERT_TRUE(this->store_->adopt(first).is_ok());
  this->records_.push_back(first);
  EXPECT_EQ(keep_generation(*this->store_, this->identity_, first.attempt, true).code(),
            Code::kNotFound);
  EXPECT_EQ(keep_generation(*this->store_, this->identity_, random_id(this->random_), true).code(),
            Code::kNotFound);
  EXPECT_FALSE(this->is_here(1));
}

TYPED_TEST(StoreKept, IsMadeAnewWhereItsRecordCameAlone) {
  this->next(1);
  CommitRecord adopted = this->next(1);
  ASSERT_TRUE(this->collect().is_ok());
  adopted = *this->store_->newest(this->kept(1));
  this->next(2);
  const Id128 second = this->kept(2);
  adopted.identity = second;
  adopted.attempt = this->records_[1].attempt;
  ASSERT_TRUE(this->store_->adopt(adopted).is_ok());
  ASSERT_TRUE(this->collect().is_ok());
  this->expect_whole(2);
}

TYPED_TEST(StoreKept, IsNotMadeAgainOnceItWasDeleted) {
  this->next(1);
  this->next(1);
  ASSERT_TRUE(drop_with_mark(*this->store_, this->kept(1), {random_id(this->random_)}).is_ok());
  ASSERT_TRUE(this->collect().is_ok());
  EXPECT_FALSE(this->is_here(1));
  EXPECT_FALSE(*this->store_->has_attempt(this->identity_, this->records_[0].attempt));
}

TYPED_TEST(StoreKept, IsGivenUpOldestFirstUnlessItIsRead) {
  using Names = std::vector<std::string>;
  for (int i = 0; i < 4; ++i) this->next(3);
  ASSERT_TRUE(this->collect().is_ok());
  {
    const auto reading = this->store_->lock_generation(this->kept(1), this->records_[0].attempt);
    ASSERT_TRUE(reading.is_ok());
    EXPECT_EQ(give_up_kept(*this->store_, 1), Names{"/scratch/run/ckpt.h5@2"});
  }
  EXPECT_EQ(give_up_kept(*this->store_, 1), Names{"/scratch/run/ckpt.h5@1"});
  EXPECT_EQ(give_up_kept(*this->store_, 1 << 20), Names{"/scratch/run/ckpt.h5@3"});
  EXPECT_EQ(give_up_kept(*this->store_, 1), Names());
  EXPECT_TRUE(this->store_->newest(this->identity_).is_ok());
}

}  // namespace dedup::store::contract
