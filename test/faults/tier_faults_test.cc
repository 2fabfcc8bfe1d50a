// A fault at every call of a job whose store has two tiers, of moving segments from one to the
// other, of bringing a plain file in, and of dropping what is at its path as one: every segment of
// a generation that was committed is there, whole.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "service/messages/store_node.h"
#include "store/files/layout.h"
#include "store/kept.h"
#include "store/real_path.h"
#include "store/unnamed.h"
#include "test/faults/faulty_job.h"

namespace dedup::test {
namespace {

using service::Chunk;
using store::Fault;
using Order = MemorySystem::Order;

enum class What { kCommit, kMove, kMoveShared, kAdopt, kFetch, kEvict, kMakeRoom };

constexpr const char* kFast = "/m1";
constexpr const char* kSlow = "/n1";

class TierWorld : public FaultyJob {
 public:
  TierWorld() : FaultyJob("/m1/fast:/n1/store", "/shared/ckpt", {kFast, kSlow}) {}

  // What has a faster tier as it comes up again after a reboot; before, it had nothing.
  Status lose_fast() {
    DEDUP_TRY(open_store().status());
    node_ = new_node();
    return store::fs::remove_tree("/m1/fast");
  }

  // A generation all of which is below.
  Status commit_below() {
    ++begun_;
    DEDUP_TRY(attach(true).status());
    const auto copies = chunks(4);
    DEDUP_TRY(put(copies));
    return commit_all(copies);
  }

  // A generation with chunks above and below, of which two segments are above.
  Status commit_one() {
    ++begun_;
    DEDUP_TRY(attach(true).status());
    const auto own = chunks(4), more = chunks(3), copies = chunks(4);
    DEDUP_TRY(store_as_rank(own).status());
    DEDUP_TRY(store_as_rank(more).status());
    DEDUP_TRY(put(copies));
    std::vector<Chunk> all = own;
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), copies.begin(), copies.end());
    return commit_all(all);
  }
  // What is committed from now on is what stands at the path as a plain file, too.
  void put_plain_file() {
    memory_.put_content(path_, plain_);
    const auto file = store::fs::open_read(path_);
    EXPECT_TRUE(file.is_ok());
    stamp_ = *store::stamp_of(*file);
  }
  Status commit_all(const std::vector<Chunk>& all) {
    // Committed or not: the next job sees.
    generations_.push_back(all);
    DEDUP_ASSIGN(store::CommitRecord record, begin_commit(random_id(random_), all));
    if (stamp_) {
      DEDUP_ASSIGN(record.directory, store::directory_id(path_));
    }
    DEDUP_TRY(prepare(record).status());
    DEDUP_TRY(finish_commit(record));
    ++certain_;
    DEDUP_TRY(node_->on(service::Collect{identity_, record.attempt}).status());
    if (stamp_) {
      const store::CachedNote note{record.attempt, *stamp_};
      DEDUP_TRY(node_->on(service::PutCached{identity_, note}).status());
    }
    return node_->on(service::Detach{identity_, false, {}}).status();
  }
  // By hand, or since there is no room.
  Status evict(bool by_hand) {
    certain_ = 0;
    DEDUP_ASSIGN(const auto store, open_store());
    if (!by_hand) return store::drop_unnamed(*store, {}).status();
    auto whole = store->lock_whole(identity_);
    DEDUP_TRY(whole.status());
    return store::drop_with_kept(*store, identity_, *std::move(whole)).status();
  }
  // Another file has the segments, too.
  Status keep() {
    DEDUP_ASSIGN(const auto store, open_store());
    return store::keep_generation(*store, identity_, base_, true);
  }
  bool has_nothing() const {
    const auto store = open_store();
    if (!store.is_ok()) return false;
    const auto identities = (*store)->identities();
    return identities.is_ok() && identities->empty();
  }
  // Everything moves down, with a store to which the faster tier belongs no more.
  static Status empty() {
    DEDUP_ASSIGN(const auto store, store::Store::open("/n1/store", true));
    DEDUP_ASSIGN(const auto mover, store->move_down());
    for (;;) {
      DEDUP_ASSIGN(const store::Store::Mover::Moved moved, mover->step());
      if (moved.done) return Status::ok();
    }
  }

  // What the next job finds; and that everything can be moved down then, and nothing is left above.
  std::string check(bool kept) {
    const auto found = find();
    if (!found.is_ok()) return found.status().message();
    if (!found->damaged.empty()) return found->damaged[0];
    if (found->records.size() > 1) return "two newest generations";
    if (stamp_ && memory_.content(path_) != plain_) return "another plain file";
    const std::size_t number = found->records.empty() ? 0 : found->records[0]->number;
    if (number < certain_) return "no generation, or an older one than the last";
    if (number == 0) return check_space(kept);
    const Id128 attempt = found->records[0].digest().attempt;
    if (std::string wrong = check_all(attempt, number, kept); !wrong.empty()) return wrong;
    if (const Status status = empty(); !status.is_ok()) return "then " + status.message();
    // What a commit that came to nothing has left stays where it is.
    const bool is_last = number == begun_;
    for (const auto& [path, size] : memory_.tree(kFast)) {
      if (is_last && path.ends_with(".seg")) return path + " is left above";
    }
    for (const auto& [path, size] : memory_.tree(kSlow)) {
      if (path.ends_with("/moving")) return path + " is left";
    }
    if (std::string wrong = check_all(attempt, number, kept); !wrong.empty()) {
      return "moved down, " + wrong;
    }
    return check_space(kept);
  }

 private:
  std::string check_all(const Id128& attempt, std::size_t number, bool kept) {
    std::vector<Id128> identities{identity_};
    if (kept) identities.push_back(store::kept_identity(identity_, attempt));
    for (const Id128& identity : identities) {
      const auto attached =
          node_->on(service::Attach{identity, path_, template_, attempt, false, false});
      if (!attached.is_ok()) return attached.status().message();
      const auto got = get_chunks(*node_, identity, generations_[number - 1]);
      if (!got.is_ok()) return got.status().message();
      for (std::size_t i = 0; i < got->size(); ++i) {
        if ((*got)[i] != generations_[number - 1][i].data) return "lost " + std::to_string(i);
      }
      const Status left = node_->on(service::Detach{identity, false, {}}).status();
      if (!left.is_ok()) return left.message();
    }
    return "";
  }

  // Both files, if there are two, have the same segments still; and all is free when they are gone.
  std::string check_space(bool kept) {
    const auto store = store::Store::open("/n1/store", true);
    if (!store.is_ok()) return store.status().message();
    const auto segments = (*store)->segments(identity_);
    if (!segments.is_ok()) return segments.status().message();
    for (const store::SegmentSize& segment : *segments) {
      if (segment.is_shared != kept) return "a segment is not shared as it was";
    }
    const auto identities = (*store)->identities();
    if (!identities.is_ok()) return identities.status().message();
    for (const Id128& identity : *identities) {
      if (const auto freed = (*store)->drop_file(identity); !freed.is_ok()) {
        return freed.status().message();
      }
    }
    for (const char* const disk : {kFast, kSlow}) {
      for (const auto& [path, size] : memory_.tree(disk)) {
        const bool is_within = path.find("/files/") != std::string::npos;
        if (is_within && !path.ends_with("/files/")) return path + " is left for good";
      }
    }
    return "";
  }

  const Bytes plain_ = Bytes(5000, std::byte{7});
  std::optional<store::Stamp> stamp_;            // of the plain file, if there is one
  std::vector<std::vector<Chunk>> generations_;  // that were committed, or may have been
  std::uint64_t begun_ = 0;                      // commits
  std::uint64_t certain_ = 0;                    // so many of them were
};

// `choose`: what the disks lose; null: they keep their power. `disk`: where the fault is to be, or
// null. False if there was no n-th call.
bool run_one(What what, const char* disk, Fault fault, std::uint64_t n, const Choose& choose,
             Order order) {
  TierWorld world;
  const bool moves = what == What::kMove || what == What::kMoveShared;
  const bool drops = what == What::kEvict || what == What::kMakeRoom;
  const bool kept = what == What::kMoveShared;
  if (drops || what == What::kFetch) world.put_plain_file();
  if (moves || drops) {
    const Status status = world.commit_one();
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
  if (kept) {
    const Status status = world.keep();
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
  if (what == What::kAdopt) {
    const Status before = world.commit_below();
    EXPECT_TRUE(before.is_ok()) << before.message();
    const Status lost = world.lose_fast();
    EXPECT_TRUE(lost.is_ok()) << lost.message();
  }
  world.settle();
  if (disk != nullptr) world.strike_only(disk);
  world.plan().set(fault, n);
  const Status status = moves   ? TierWorld::empty()
                        : drops ? world.evict(what == What::kEvict)
                                : world.commit_one();
  const bool struck = world.plan().struck != 0;
  const std::string where = world.plan().where;
  EXPECT_TRUE(struck || status.is_ok()) << status.message();
  world.plan().set(Fault::kNone, 0);
  EXPECT_TRUE(struck || !drops || world.has_nothing());
  // One tier that takes nothing more is no reason to fail while there is another; but what was
  // given space in it must be written and flushed.
  const bool is_late = where.find("sync") != where.npos || where.starts_with("pwritev");
  const bool goes_on = disk == kFast && fault == Fault::kNoSpace && !moves && !drops && !is_late;
  EXPECT_TRUE(!goes_on || status.is_ok()) << status.message() << ", at call " << n << " (" << where;
  world.end_process(choose, order);
  EXPECT_EQ(world.check(kept), "") << name_of(fault) << " at call " << n << " (" << where << ")";
  return struck && !testing::Test::HasFailure();
}

class TierFaults : public testing::TestWithParam<What> {
 protected:
  static bool run(Fault fault, std::uint64_t n, const Choose& choose, Order order) {
    return run_one(GetParam(), nullptr, fault, n, choose, order);
  }
};

TEST_P(TierFaults, NothingIsLostIfACallFails) {
  run_with_failing_calls(run);
}

TEST_P(TierFaults, NothingIsLostIfTheProcessIsKilled) {
  run_with_killed_processes(run);
}

TEST_P(TierFaults, NothingIsLostIfOneTierIsFull) {
  for (const char* const disk : {kFast, kSlow}) {
    const auto run_there = [disk](Fault fault, std::uint64_t n, const Choose& choose, Order order) {
      return run_one(GetParam(), disk, fault, n, choose, order);
    };
    for (const Fault fault : {Fault::kNoSpace, Fault::kFull}) {
      run_at_each_call(run_there, fault, nullptr, Order::kAny);
      run_at_each_call(run_there, fault, lose_all(), Order::kAny);
    }
  }
}

std::string name_of_what(const testing::TestParamInfo<What>& what) {
  constexpr std::array kNames = {"Commit", "Move",  "MoveShared", "Adopt",
                                 "Fetch",  "Evict", "MakeRoom"};
  return kNames.at(static_cast<std::size_t>(what.param));
}

INSTANTIATE_TEST_SUITE_P(All, TierFaults,
                         testing::Values(What::kCommit, What::kMove, What::kMoveShared,
                                         What::kAdopt, What::kFetch, What::kEvict, What::kMakeRoom),
                         name_of_what);

}  // namespace
}  // namespace dedup::test
