#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "service/messages/store_node.h"
#include "store/files/log_file.h"
#include "store/files/segment_file.h"
#include "store/log.h"
#include "test/unit/store_node_fixture.h"

namespace dedup::service {
namespace {

// ---- Failures ----------------------------------------------------------------------------------

TEST_F(ServiceStoreNode, AbortLeavesWhatWasWrittenToBeCommittedLater) {
  ASSERT_OK(attach(true));
  const auto first = chunks(50);
  ASSERT_OK(put(first));
  ASSERT_OK(commit(first));
  const auto second = chunks(10);
  ASSERT_OK(store_as_rank(second));
  auto both = slice(first, 0, 5);  // the first segment is worth compacting
  both.insert(both.end(), second.begin(), second.end());
  const auto segments = files_in("segments");
  const auto failed = begin_commit(random_id(random_), both);
  ASSERT_OK(failed);
  ASSERT_OK(prepare(*failed));
  EXPECT_GT(files_in("segments").size(), segments.size());
  ASSERT_OK(node_->on(Abort{identity_, failed->attempt}));
  ASSERT_OK(node_->on(Abort{identity_, failed->attempt}));  // harmless
  EXPECT_EQ(files_in("segments"), segments);
  EXPECT_EQ(files_in("generations"), std::set<std::string>{base_.hex()});
  expect_held(first);
  expect_held(second);
  EXPECT_CODE(node_->on(References{identity_, failed->attempt, {}, {}}), kArgument);
  EXPECT_CODE(node_->on(Commit{identity_, failed->attempt, true}), kArgument);
  EXPECT_CODE(node_->on(Collect{identity_, failed->attempt}), kArgument);

  // What only the failed attempt referred to is not part of the next.
  const auto small = slice(second, 0, 3);
  ASSERT_OK(commit(small));
  expect_held(small);
  expect_absent(slice(second, 3, 10));
  EXPECT_CODE(node_->on(Abort{identity_, base_}), kArgument);
}

TEST_F(ServiceStoreNode, ANewAttemptReplacesOneThatNobodyAborted) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  ASSERT_OK(begin_commit(random_id(random_), what));
  const auto record = begin_commit(random_id(random_), slice(what, 0, 6));
  ASSERT_OK(record);
  EXPECT_EQ(files_in("generations"), std::set<std::string>{record->attempt.hex()});
  ASSERT_OK(prepare(*record));
  ASSERT_OK(finish_commit(*record));
  ASSERT_OK(node_->on(Collect{identity_, record->attempt}));
  EXPECT_EQ(files_in("generations"), std::set<std::string>{base_.hex()});
  expect_absent(slice(what, 6, 10));
}

TEST_P(ServiceStoreNodeOnAny, PrepareFailsIfAShardIsNotWhole) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  auto record = begin_commit(random_id(random_), what);
  ASSERT_OK(record);
  auto other = *record;
  other.shards[0].digest[5] ^= 1;
  EXPECT_CODE(prepare(other), kCorrupt);
  other = *record;
  other.shards.push_back(other.shards[0]);
  EXPECT_FALSE(prepare(other).is_ok());
  other = *record;
  other.identity = random_id(random_);
  EXPECT_CODE(prepare(other), kArgument);
  EXPECT_CODE(node_->on(Prepare{identity_, Bytes(100), true}), kCorrupt);
  EXPECT_CODE(node_->on(Commit{identity_, record->attempt, true}), kArgument);
  ASSERT_OK(prepare(*record));
  ASSERT_OK(finish_commit(*record));
  ASSERT_OK(node_->on(Collect{identity_, record->attempt}));
  expect_held(what);
}

TEST_F(ServiceStoreNode, AFullDiskFailsTheRequestAndLeavesTheLastGeneration) {
  ASSERT_OK(attach(true));
  const auto first = chunks(60, 4000);
  ASSERT_OK(put(first));
  ASSERT_OK(commit(first));
  const auto second = chunks(100, 4000);
  {
    const test::FileSizeLimit full(100 * 1000);
    EXPECT_FALSE(put(second).is_ok());
    expect_held(first);
  }
  expect_absent(second);
  EXPECT_EQ(node_->on(Claim{identity_, {second[0].fingerprint}})->granted[0], 1);
  ASSERT_OK(node_->on(Release{identity_, {second[0].fingerprint}}));
  ASSERT_OK(put(second));  // there is room again
  expect_held(second);
  {
    // Phase 1: the index does not fit.
    const auto record = begin_commit(random_id(random_), second);
    ASSERT_OK(record);
    const test::FileSizeLimit full(4096);
    EXPECT_FALSE(prepare(*record).is_ok());
    ASSERT_OK(node_->on(Abort{identity_, record->attempt}));
  }
  expect_held(first);
  expect_held(second);
  EXPECT_EQ(files_in("generations"), std::set<std::string>{base_.hex()});
  ASSERT_OK(commit(second));
  expect_held(second);
}

TEST_F(ServiceStoreNode, CompactionIsLeftOutWhereItCannotBeDone) {
  ASSERT_OK(attach(true));
  const auto first = chunks(50), second = chunks(50);
  ASSERT_OK(store_as_rank(first));
  const auto sound = store_as_rank(second);
  ASSERT_OK(sound);
  auto kept = slice(first, 0, 10);
  const auto more = slice(second, 0, 10);
  kept.insert(kept.end(), more.begin(), more.end());
  // One of the chunks that would have to move is damaged: it stays as damaged as it is.
  const auto location = node_->on(Locate{identity_, {kept[4].fingerprint}})->locations[0];
  damage(segment_path(location.segment), store::chunk_end(kept[4].fingerprint, location) - 7);
  ASSERT_OK(commit(kept));
  const auto reply = get_chunks(*node_, identity_, kept);
  ASSERT_OK(reply);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ((*reply)[i], i == 4 ? Bytes{} : kept[i].data);
  }
  // The other segment's chunks have moved.
  EXPECT_TRUE(std::filesystem::exists(segment_path(location.segment)));
  EXPECT_FALSE(std::filesystem::exists(segment_path(*sound)));
  EXPECT_EQ(files_in("segments").size(), 2u);
}

TEST_F(ServiceStoreNode, PrepareFailsIfASegmentCannotBeFlushed) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  const auto segment = store_as_rank(what);
  ASSERT_OK(segment);
  const auto record = begin_commit(random_id(random_), what);
  ASSERT_OK(record);
  std::filesystem::remove(segment_path(*segment));
  EXPECT_CODE(prepare(*record), kIo);
  ASSERT_OK(node_->on(Abort{identity_, record->attempt}));
  expect_absent(what);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  expect_held(what);
}

TEST_P(ServiceStoreNodeOnAny, ForgetsASegmentThatARankCouldNotFlush) {
  ASSERT_OK(attach(true));
  const auto lost = chunks(10), kept = chunks(10);
  const auto segment = store_as_rank(lost);
  ASSERT_OK(segment);
  ASSERT_OK(store_as_rank(kept));
  const auto record = begin_commit(random_id(random_), lost);
  ASSERT_OK(record);
  ASSERT_OK(node_->on(WriteIndex{identity_, record->attempt, true, {}, true}));
  ASSERT_OK(node_->on(ForgetSegment{identity_, *segment}));
  ASSERT_OK(node_->on(Abort{identity_, record->attempt}));
  expect_absent(lost);
  expect_held(kept);
  ASSERT_OK(put(lost));
  ASSERT_OK(commit(lost));
  expect_held(lost);
}

// As one that was shared with another file, which may have been committed without being flushed.
TEST_P(ServiceStoreNodeOnAny, ForgetsASegmentThatTheGenerationBeforeHas) {
  ASSERT_OK(attach(true));
  const auto lost = chunks(10), kept = chunks(10);
  const auto segment = store_as_rank(lost);
  ASSERT_OK(segment);
  ASSERT_OK(store_as_rank(kept));
  auto both = lost;
  both.insert(both.end(), kept.begin(), kept.end());
  ASSERT_OK(commit(both));
  expect_held(both);
  ASSERT_OK(node_->on(ForgetSegment{identity_, *segment}));
  expect_absent(lost);
  expect_held(kept);
  ASSERT_OK(put(lost));
  ASSERT_OK(commit(both));
  expect_held(both);
}

TEST_P(ServiceStoreNodeOnAny, PreparesWhatHasAnIndexOnly) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  const auto record = begin_commit(random_id(random_), what);
  ASSERT_OK(record);
  EXPECT_CODE(node_->on(Prepare{identity_, record->encode(), true}), kArgument);
  for (int i = 0; i < 2; ++i) {
    const auto index = node_->on(WriteIndex{identity_, record->attempt, true, {}, true});
    ASSERT_OK(index);
    EXPECT_EQ(index->chunks, 10u);
  }
  ASSERT_OK(prepare(*record));
  EXPECT_CODE(prepare(*record), kArgument);
  ASSERT_OK(finish_commit(*record));
  expect_held(what);
}

TEST_P(ServiceStoreNodeOnAny, TakesOneCopyOfAChunkThatIsThereTwice) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  const Id128 attempt = random_id(random_);
  ASSERT_OK(node_->on(refer_to(identity_, attempt, names(what))));
  // A rank that never asked whether it is to store it.
  const auto segment = node_->on(OpenSegment{identity_});
  ASSERT_OK(segment);
  auto writer = (*open_store())->create_segment(identity_, segment->number);
  ASSERT_OK(writer);
  const auto location = (*writer)->append(what[0].fingerprint, what[0].data);
  ASSERT_OK(location);
  ASSERT_OK((*writer)->write_out());
  ASSERT_OK(node_->on(Register{
      identity_, {plan::Placement::copies_on({1})}, {{what[0].fingerprint, *location, 0}}}));
  const auto record = begin_commit(attempt, what);
  ASSERT_OK(record);
  const auto prepared = prepare(*record);
  ASSERT_OK(prepared);
  EXPECT_EQ(prepared->chunks, what.size());
}

TEST_F(ServiceStoreNode, CompactionIsLeftOutWhereThereIsNoRoom) {
  ASSERT_OK(attach(true));
  const auto first = chunks(50, 4000);
  ASSERT_OK(put(first));
  ASSERT_OK(commit(first));
  const auto kept = slice(first, 0, 20);
  const auto record = begin_commit(random_id(random_), kept);
  ASSERT_OK(record);
  {
    const test::FileSizeLimit full(50 * 1000);
    ASSERT_OK(prepare(*record));
  }
  EXPECT_EQ(files_in("segments").size(), 1u);
  ASSERT_OK(finish_commit(*record));
  ASSERT_OK(node_->on(Collect{identity_, record->attempt}));
  expect_held(kept);
  ASSERT_OK(commit(kept));  // there is room now
  expect_held(kept);
  expect_absent(slice(first, 20, 50));
}

TEST_F(ServiceStoreNode, ACommitRestoresWhatTheStoreLost) {
  ASSERT_OK(attach(true));
  const auto first = chunks(20), second = chunks(20);
  const auto lost = store_as_rank(first);
  ASSERT_OK(lost);
  ASSERT_OK(store_as_rank(second));
  auto both = first;
  both.insert(both.end(), second.begin(), second.end());
  ASSERT_OK(commit(both));
  const auto third = chunks(20);
  const auto lost_too = store_as_rank(third);
  ASSERT_OK(lost_too);
  std::filesystem::remove(segment_path(*lost));
  std::filesystem::remove(segment_path(*lost_too));

  both.insert(both.end(), third.begin(), third.end());
  const Id128 attempt = random_id(random_);
  const auto reply = node_->on(refer_to(identity_, attempt, names(both)));
  ASSERT_OK(reply);
  EXPECT_EQ(std::accumulate(reply->missing.begin(), reply->missing.end(), 0), 40);
  EXPECT_EQ(reply->missing[0], 1);
  EXPECT_EQ(reply->missing[20], 0);
  ASSERT_OK(put(first));
  ASSERT_OK(put(third));
  const auto record = begin_commit(attempt, both);
  ASSERT_OK(record);
  ASSERT_OK(prepare(*record));
  ASSERT_OK(finish_commit(*record));
  ASSERT_OK(node_->on(Collect{identity_, attempt}));
  expect_held(both);
}

TEST_F(ServiceStoreNode, ADamagedIndexIsAsGoodAsNone) {
  ASSERT_OK(attach(true));
  const auto what = chunks(20);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  damage(file_directory() + "/generations/" + base_.hex() + "/index", 100);
  restart();
  ASSERT_OK(attach(true));
  expect_absent(what);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  expect_held(what);
  restart();
  ASSERT_OK(attach(true));
  expect_held(what);
}

TEST_F(ServiceStoreNode, DamagedChunksComeBackEmpty) {
  ASSERT_OK(attach(true));
  const auto what = chunks(50);
  const auto segment = store_as_rank(what);
  ASSERT_OK(segment);
  ASSERT_OK(commit(what));
  const auto at = [&](std::size_t i) {
    return node_->on(Locate{identity_, {what[i].fingerprint}})->locations[0].offset;
  };
  damage(segment_path(*segment), at(7) + 500);
  damage(segment_path(*segment), at(20) + 1);
  const auto reply = get_chunks(*node_, identity_, what);
  ASSERT_OK(reply);
  for (std::size_t i = 0; i < what.size(); ++i) {
    EXPECT_EQ((*reply)[i], i == 7 || i == 20 ? Bytes{} : what[i].data) << i;
  }
}

TEST_F(ServiceStoreNode, AStoreThatVanishesIsAnErrorAndNothingWorse) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  const auto log = node_->on(OpenLog{identity_});
  const auto more = chunks(10);
  ASSERT_OK(put(more));
  std::filesystem::remove_all(directory());

  const auto code_of = [](const auto& reply) { return reply.status().code(); };
  const auto reply = get_chunks(*node_, identity_, what);
  if (reply.is_ok()) {
    // Files that were still open may be read to their end.
    for (std::size_t i = 0; i < what.size(); ++i) {
      EXPECT_TRUE((*reply)[i].empty() || (*reply)[i] == what[i].data);
    }
  }
  (void)node_->on(look_at(identity_, names(what)));
  (void)node_->on(Locate{identity_, names(what)});
  EXPECT_EQ(code_of(node_->on(ReadLog{identity_, log->number, 0, 1})), Code::kNotFound);
  EXPECT_EQ(code_of(node_->on(Space{identity_})), Code::kIo);
  const Id128 attempt = random_id(random_);
  EXPECT_EQ(code_of(node_->on(PutShard{identity_, attempt, 0, {}, true, true, {}, {}})), Code::kIo);
  const auto references = node_->on(refer_to(identity_, attempt, names(more)));
  EXPECT_EQ(code_of(references), Code::kIo);
  EXPECT_NE(references.status().message().find("n1"), std::string::npos);
  store::CommitRecord record;
  record.identity = identity_;
  record.number = 9;
  record.attempt = attempt;
  record.path = path_;
  EXPECT_FALSE(prepare(record).is_ok());
  EXPECT_FALSE(node_->on(Commit{identity_, attempt, true}).is_ok());
  (void)node_->on(Abort{identity_, attempt});
  (void)node_->on(Detach{identity_, false, {}});
  EXPECT_EQ(code_of(node_->on(look_at(identity_, {}))), Code::kInternal);

  // The directory is a new store now.
  const Id128 old = uuid_;
  const auto found = find();
  ASSERT_OK(found);
  EXPECT_NE(found->store.uuid, old);
  EXPECT_TRUE(found->records.empty());
}

TEST_F(ServiceStoreNode, AStoreThatCannotBeUsedSaysWhyAndWhere) {
  test::put_file(directory(), Bytes(10));
  const auto reply = find();
  ASSERT_FALSE(reply.is_ok());
  EXPECT_NE(reply.status().message().find("n1"), std::string::npos);
  EXPECT_NE(reply.status().message().find(directory()), std::string::npos);
  EXPECT_CODE(node_->on(Find{path_, {}, "/proc/no/such/%n"}), kNoSuchFile);
  EXPECT_FALSE(node_->on(Attach{identity_, path_, template_, {}, true, true}).is_ok());
  EXPECT_CODE(node_->on(Space{identity_}), kInternal);
}

TEST_P(ServiceStoreNodeOnAny, EveryRequestSaysThatAFileIsNotAttached) {
  EXPECT_CODE(node_->on(Adopt{identity_, {}}), kInternal);
  EXPECT_CODE(node_->on(Detach{identity_, true, {}}), kInternal);
  EXPECT_CODE(node_->on(OpenSegment{identity_}), kInternal);
  EXPECT_CODE(node_->on(OpenLog{identity_}), kInternal);
  EXPECT_CODE(node_->on(Claim{identity_, {}}), kInternal);
  EXPECT_CODE(node_->on(Register{identity_, {}, {}}), kInternal);
  EXPECT_CODE(node_->on(Release{identity_, {}}), kInternal);
  EXPECT_CODE(node_->on(Locate{identity_, {}}), kInternal);
  EXPECT_CODE(node_->on(GetChunks{identity_, {}}), kInternal);
  EXPECT_CODE(node_->on(PutChunks{identity_, {}, {}}), kInternal);
  EXPECT_CODE(node_->on(ReadLog{identity_, 1, 0, 1}), kInternal);
  EXPECT_CODE(node_->on(ListShard{identity_, {}, 0, {}, 0}), kInternal);
  EXPECT_CODE(node_->on(ReadShard{identity_, {}, 0, {}, {}}), kInternal);
  EXPECT_CODE(node_->on(PutShard{identity_, {}, 0, {}, true, true, {}, {}}), kInternal);
  EXPECT_CODE(node_->on(Prepare{identity_, {}, true}), kInternal);
  EXPECT_CODE(node_->on(Commit{identity_, {}, true}), kInternal);
  EXPECT_CODE(node_->on(Abort{identity_, {}}), kInternal);
  EXPECT_CODE(node_->on(Collect{identity_, {}}), kInternal);
}

// ---- Jobs that died, stores that come back ------------------------------------------------------

TEST_F(ServiceStoreNode, TheNextJobRemovesWhatADeadOneLeft) {
  ASSERT_OK(attach(true));
  const auto first = chunks(20);
  ASSERT_OK(put(first));
  ASSERT_OK(commit(first));
  const auto log = node_->on(OpenLog{identity_});
  ASSERT_OK((*open_store())->create_log(identity_, log->number));
  const auto second = chunks(20);
  const auto segment = store_as_rank(second);
  ASSERT_OK(segment);
  const auto record = begin_commit(random_id(random_), second);
  ASSERT_OK(record);
  ASSERT_OK(prepare(*record));
  restart();

  ASSERT_OK(attach(false));  // removes nothing
  EXPECT_EQ(files_in("segments").size(), 2u);
  const auto attached = attach(true);
  ASSERT_OK(attached);
  EXPECT_EQ(attached->newest, base_);
  EXPECT_EQ(files_in("segments").size(), 1u);
  EXPECT_EQ(files_in("logs").size(), 0u);
  EXPECT_EQ(files_in("generations"), std::set<std::string>{base_.hex()});
  expect_held(first);
  expect_absent(second);
  ASSERT_OK(put(second));
  ASSERT_OK(commit(second));
  expect_held(second);
}

TEST_F(ServiceStoreNode, AGenerationCommittedElsewhereIsFinishedHere) {
  ASSERT_OK(attach(true));
  const auto first = chunks(20), second = chunks(20);
  ASSERT_OK(put(first));
  ASSERT_OK(commit(first));
  ASSERT_OK(put(second));
  const auto record = begin_commit(random_id(random_), second);
  ASSERT_OK(record);
  ASSERT_OK(prepare(*record));
  const Id128 old = base_;
  for (const bool write : {false, true}) {
    restart();
    // Another node has it committed, so the next job takes it for the base.
    base_ = record->attempt;
    const auto attached = attach(write);
    ASSERT_OK(attached);
    EXPECT_EQ(attached->newest, old);
    EXPECT_EQ(files_in("generations").size(), 2u);  // nothing may go yet
    if (!write) continue;
    // A job that gives up now changes nothing.
    ASSERT_OK(node_->on(Detach{identity_, false, {}}));
    EXPECT_EQ(files_in("generations").size(), 2u);
    ASSERT_OK(attach(write));
    ASSERT_OK(node_->on(Adopt{identity_, record->encode()}));
    expect_held(second);
    expect_absent(first);
    EXPECT_EQ(files_in("generations"), std::set<std::string>{base_.hex()});
    EXPECT_EQ(files_in("segments").size(), 1u);
  }
  restart();
  EXPECT_EQ(attach(false)->newest, record->attempt);
  expect_held(second);
}

TEST_F(ServiceStoreNode, AdoptsForReadingWhatIsOnlyPrepared) {
  ASSERT_OK(attach(true));
  const auto what = chunks(20);
  ASSERT_OK(put(what));
  const auto record = begin_commit(random_id(random_), what);
  ASSERT_OK(record);
  ASSERT_OK(prepare(*record));
  restart();
  base_ = record->attempt;
  ASSERT_OK(attach(false));
  auto other = *record;
  other.identity = random_id(random_);
  EXPECT_CODE(node_->on(Adopt{identity_, other.encode()}), kArgument);
  ASSERT_OK(node_->on(Adopt{identity_, record->encode()}));
  ASSERT_OK(node_->on(Adopt{identity_, record->encode()}));
  expect_held(what);
  // It is locked: a job that writes leaves it.
  const auto reader = std::exchange(node_, new_node());
  number_ = record->number;
  ASSERT_OK(attach(true));
  const auto more = chunks(20);
  ASSERT_OK(put(more));
  ASSERT_OK(commit(more));
  expect_absent(what);
  const auto reply = get_chunks(*reader, identity_, what);
  ASSERT_OK(reply);
  EXPECT_EQ((*reply)[0], what[0].data);
  EXPECT_EQ(files_in("generations").size(), 2u);
}

TEST_F(ServiceStoreNode, ACommitWhoseEndIsNotKnownIsKeptForTheNextJob) {
  ASSERT_OK(attach(true));
  const auto what = chunks(20);
  ASSERT_OK(put(what));
  const auto record = begin_commit(random_id(random_), what);
  ASSERT_OK(record);
  ASSERT_OK(prepare(*record));
  ASSERT_OK(node_->on(Detach{identity_, false, {}}));
  EXPECT_EQ(files_in("generations"), std::set<std::string>{record->attempt.hex()});
  EXPECT_EQ(files_in("segments").size(), 1u);
}

TEST_F(ServiceStoreNode, AStoreThatTookNoPartJoinsAtTheNextCommit) {
  ASSERT_OK(find());
  store::CommitRecord elsewhere;
  elsewhere.identity = identity_;
  elsewhere.number = 5;
  elsewhere.attempt = random_id(random_);
  elsewhere.path = path_;
  elsewhere.size = 100;
  elsewhere.replication = 1;
  elsewhere.chunk_size = 4096;
  elsewhere.fingerprint = "sha256";
  elsewhere.stores = {{random_id(random_), "n7"}};
  elsewhere.shards = {{store::Digest{}, {0}}};
  elsewhere.lineage = {{session_, 5}};
  base_ = elsewhere.attempt;
  number_ = 5;
  const auto attached = attach(true);
  ASSERT_OK(attached);
  EXPECT_TRUE(attached->newest.is_zero());
  ASSERT_OK(node_->on(Adopt{identity_, elsewhere.encode()}));
  ASSERT_OK(node_->on(Detach{identity_, false, {}}));
  // A job that only reads adopts it too, and holds on to it.
  StoreNode reader("n1", 0, 1);
  std::filesystem::remove_all(file_directory());
  ASSERT_OK(reader.on(Find{path_, {}, template_}));
  ASSERT_OK(reader.on(Attach{identity_, path_, template_, base_, false, false}));
  ASSERT_OK(reader.on(Adopt{identity_, elsewhere.encode()}));
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  expect_absent(what);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  expect_held(what);
  EXPECT_EQ(find()->records.size(), 1u);
  EXPECT_EQ(files_in("generations"), (std::set<std::string>{base_.hex(), elsewhere.attempt.hex()}));
}

}  // namespace
}  // namespace dedup::service
