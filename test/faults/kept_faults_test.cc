// A fault at every call while a commit keeps older generations, of which none is lost, and while
// they are given up since there is no room.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "service/messages/store_node.h"
#include "store/kept.h"
#include "test/faults/faulty_job.h"

namespace dedup::test {
namespace {

using service::Chunk;
using store::Fault;
using Order = MemorySystem::Order;

constexpr std::size_t kKeep = 3;  // the newest counted

class KeptWorld : public FaultyJob {
 public:
  KeptWorld() : FaultyJob("/n1/store", "/shared/ckpt", {"/n1"}) {
    ::setenv("DEDUP_TEST_WORTH_KEEPING", "1", 1);
  }

  // A generation of some chunks of the one before, and new ones.
  Status next() {
    std::vector<Chunk> what = chunks(4);
    DEDUP_TRY(put(what));
    if (!generations_.empty()) {
      const auto& before = generations_.back().chunks;
      what.insert(what.end(), before.begin(), before.begin() + 2);
    }
    DEDUP_ASSIGN(store::CommitRecord record, begin_commit(random_id(random_), what));
    if (!generations_.empty()) record.kept = kept_after(generations_.back().record, kKeep - 1);
    DEDUP_TRY(prepare(record).status());
    // Committed or not: the next job sees.
    generations_.push_back({record, what});
    DEDUP_TRY(finish_commit(record));
    ++certain_;
    return node_->on(service::Collect{identity_, record.attempt}).status();
  }

  Status give_up() {
    may_be_gone_ = true;
    DEDUP_TRY(node_->on(service::Detach{identity_, false, {}}).status());
    DEDUP_ASSIGN(const auto store, open_store());
    const bool all = store::give_up_kept(*store, ~std::uint64_t{0}).size() == kKeep - 1;
    return all ? Status::ok() : Status(Code::kIo, "some are left");
  }

  // What the next job finds, and leaves after a commit of its own; empty if all is right.
  std::string check() {
    const auto found = find();
    if (!found.is_ok()) return found.status().message();
    if (found->records.size() != 1 || !found->damaged.empty()) return "no newest generation";
    const store::CommitRecord& newest = found->whole.at(0);
    if (newest.number < certain_) return "an older generation than the last one";
    generations_.resize(newest.number);
    base_ = newest.attempt;
    base_digest_ = newest.shards[0].digest;
    number_ = newest.number;
    if (const std::string wrong = check_kept(newest); !wrong.empty()) return wrong;
    Status status = attach(true).status();
    if (status.is_ok()) status = next();
    if (status.is_ok()) status = node_->on(service::Detach{identity_, false, {}}).status();
    if (!status.is_ok()) return "the next job: " + status.message();
    const std::string wrong = check_kept(generations_.back().record);
    return wrong.empty() ? check_rest() : "then " + wrong;
  }

 private:
  struct Generation {
    store::CommitRecord record;
    std::vector<Chunk> chunks;
  };

  std::string check_kept(const store::CommitRecord& newest) {
    for (const store::KeptGeneration& one : newest.kept) {
      const std::string name = "generation " + std::to_string(one.number) + ": ";
      const Generation& generation = generations_[one.number - 1];
      const Id128 identity = store::kept_identity(identity_, one.attempt);
      const std::string path = store::kept_path(path_, one.number);
      const auto found =
          node_->on(service::Find{path, identity, template_, {}, identity_, one.attempt});
      if (!found.is_ok()) return name + found.status().message();
      if (found->records.empty() && may_be_gone_) continue;
      if (found->records.size() != 1) return name + "is gone";
      const auto attached =
          node_->on(service::Attach{identity, path, template_, one.attempt, false, false});
      if (!attached.is_ok()) return name + attached.status().message();
      const auto shard = node_->on(
          service::ReadShard{identity, one.attempt, 0, generation.record.shards[0].digest, {3, 7}});
      if (!shard.is_ok()) return name + shard.status().message();
      const auto got = get_chunks(*node_, identity, generation.chunks);
      if (!got.is_ok()) return name + got.status().message();
      for (std::size_t i = 0; i < got->size(); ++i) {
        if ((*got)[i] != generation.chunks[i].data) return name + "lost " + std::to_string(i);
      }
      const Status left = node_->on(service::Detach{identity, false, {}}).status();
      if (!left.is_ok()) return name + left.message();
    }
    return "";
  }

  // Nothing else is there.
  std::string check_rest() {
    const auto store = open_store();
    if (!store.is_ok()) return store.status().message();
    const auto identities = (*store)->identities();
    if (!identities.is_ok()) return identities.status().message();
    const std::size_t least = may_be_gone_ ? 2 : kKeep;
    if (identities->size() < least || identities->size() > kKeep) return "another number of files";
    for (const Id128& identity : *identities) {
      const auto all = (*store)->generations(identity);
      if (!all.is_ok()) return all.status().message();
      const bool is_one = all->committed.size() == 1 && all->prepared.empty() &&
                          all->begun.empty() && all->damaged.empty();
      if (!is_one) return "attempts are left of " + identity.hex();
    }
    return "";
  }

  std::vector<Generation> generations_;  // that were committed, or may have been
  std::uint64_t certain_ = 0;            // so many of them were
  bool may_be_gone_ = false;             // the kept ones
};

enum class What { kCommit, kGiveUp };

class KeptFaults : public testing::TestWithParam<What> {
 protected:
  // `choose`: what the disk loses; null: it keeps its power. False if there was no n-th call.
  static bool run(Fault fault, std::uint64_t n, const Choose& choose, Order order) {
    KeptWorld world;
    EXPECT_TRUE(world.attach(true).is_ok());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.next().is_ok());
    world.settle();
    world.plan().set(fault, n);
    const Status status = GetParam() == What::kCommit ? world.next() : world.give_up();
    const bool struck = world.plan().struck != 0;
    const std::string where = world.plan().where;
    EXPECT_TRUE(struck || status.is_ok()) << status.message();
    world.end_process(choose, order);
    EXPECT_EQ(world.check(), "") << name_of(fault) << " at call " << n << " (" << where << ")";
    return struck && !testing::Test::HasFailure();
  }
};

TEST_P(KeptFaults, NoneIsLostIfACallFails) {
  run_with_failing_calls(run);
}

TEST_P(KeptFaults, NoneIsLostIfTheProcessIsKilled) {
  run_with_killed_processes(run);
}

INSTANTIATE_TEST_SUITE_P(All, KeptFaults, testing::Values(What::kCommit, What::kGiveUp),
                         [](const auto& what) {
                           return what.param == What::kCommit ? "Commit" : "GiveUp";
                         });

}  // namespace
}  // namespace dedup::test
