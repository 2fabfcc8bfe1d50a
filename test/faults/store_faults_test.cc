// A fault at every call that a job makes to its node's store and to the real path: every way of
// failing, and death, with any part lost of what was not flushed.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "test/faults/store_world.h"

namespace dedup::test {
namespace {

using service::Chunk;
using service::slice;
using store::Fault;
using Order = MemorySystem::Order;

std::vector<Chunk> join(std::vector<Chunk> a, const std::vector<Chunk>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// What a job does, one step after the other; a program goes on after an error.
struct Scenario {
  const char* name;
  // Before the faults; must succeed.
  std::function<Status(StoreWorld&)> before;
  std::function<std::vector<std::function<Status()>>(StoreWorld&)> steps;
};

Status first_generation(StoreWorld& world) {
  DEDUP_TRY(world.attach(true).status());
  const auto what = world.chunks(12);
  DEDUP_TRY(world.put(what));
  DEDUP_TRY(world.commit_generation(what));
  return world.detach();
}

std::vector<std::function<Status()>> two_generations(StoreWorld& world) {
  const auto a = world.chunks(6), b = world.chunks(6), c = world.chunks(4);
  return {
      [&world] { return world.attach(true).status(); },
      [&world, a] { return world.store_as_rank(a).status(); },
      [&world, b] { return world.put(b); },
      [&world] { return world.use_log(); },
      [&world, a, b] { return world.commit_generation(join(a, b)); },
      [&world, c] { return world.put(c); },
      // Both segments of the first generation are mostly unused now.
      [&world, a, b, c] {
        return world.commit_generation(join(join(slice(a, 0, 2), slice(b, 0, 2)), c));
      },
      [&world] { return world.detach(); },
  };
}

// A commit that fails is tried again with the same chunks.
std::vector<std::function<Status()>> tried_again(StoreWorld& world) {
  const auto a = world.chunks(5), b = world.chunks(5);
  const auto commit = [&world, a, b] { return world.commit_generation(join(a, b)); };
  return {
      [&world] { return world.attach(true).status(); },
      [&world, a] { return world.store_as_rank(a).status(); },
      [&world, b] { return world.put(b); },
      [commit] {
        const Status first = commit();
        if (first.is_ok()) return first;
        const Status second = commit();
        return second.is_ok() ? first : second;
      },
      [&world] { return world.detach(); },
  };
}

std::vector<std::function<Status()>> never_committed(StoreWorld& world) {
  const auto a = world.chunks(5);
  return {
      [&world] { return world.attach(true).status(); },
      [&world, a] { return world.put(a); },
      [&world] { return world.detach(); },
  };
}

std::vector<std::function<Status()>> adopted(StoreWorld& world) {
  return {
      [&world] { return world.adopt(); },
      [&world] { return world.detach(); },
  };
}

std::vector<std::function<Status()>> deleted(StoreWorld& world) {
  return {
      [&world] { return world.attach(true).status(); },
      [&world] { return world.delete_file({}); },
  };
}

std::vector<std::function<Status()>> deleted_not_everywhere(StoreWorld& world) {
  const Id128 other = random_id(*std::make_unique<Random>(7));
  return {
      [&world] { return world.attach(true).status(); },
      [&world, other] { return world.delete_file({other}); },
  };
}

// ---- Two files that share segments -------------------------------------------------------------

// A file shares what the first one has committed, keeps half of its chunks and has new ones.
struct Sharing {
  std::vector<Chunk> kept, more, all;
};
Sharing sharing(StoreWorld& world) {
  world.turn_to(0);
  Sharing made{slice(world.committed(), 0, 6), world.chunks(4), {}};
  made.all = join(made.kept, made.more);
  return made;
}

std::vector<std::function<Status()>> begins_sharing(StoreWorld& world) {
  return {
      [&world] {
        world.turn_to(1);
        return world.attach_sharing();
      },
      [&world] { return world.expect_shared(1); },
  };
}

std::vector<std::function<Status()>> commits_sharing(StoreWorld& world, const Sharing& what) {
  return {
      [&world] {
        world.turn_to(1);
        return Status::ok();
      },
      // What could not be shared is stored.
      [&world, what] { return world.put(what.all); },
      [&world, what] { return world.commit_generation(what.all); },
      [&world] { return world.detach(); },
  };
}

std::vector<std::function<Status()>> then(std::vector<std::function<Status()>> steps,
                                          const std::vector<std::function<Status()>>& more) {
  steps.insert(steps.end(), more.begin(), more.end());
  return steps;
}

std::vector<std::function<Status()>> delete_one(StoreWorld& world, std::size_t file) {
  return {
      [&world, file] {
        world.turn_to(file);
        return world.attach(true).status();
      },
      [&world] { return world.delete_file({}); },
  };
}

Status two_that_share(StoreWorld& world) {
  DEDUP_TRY(first_generation(world));
  for (const auto& step : then(begins_sharing(world), commits_sharing(world, sharing(world)))) {
    DEDUP_TRY(step());
  }
  return world.expect_shared(1);
}

std::vector<std::function<Status()>> shares(StoreWorld& world) {
  return then(begins_sharing(world), commits_sharing(world, sharing(world)));
}

std::vector<std::function<Status()>> shares_what_is_deleted(StoreWorld& world) {
  const Sharing what = sharing(world);
  return then(then(begins_sharing(world), delete_one(world, 0)), commits_sharing(world, what));
}

std::vector<std::function<Status()>> donor_deleted(StoreWorld& world) {
  return delete_one(world, 0);
}

std::vector<std::function<Status()>> sharer_deleted(StoreWorld& world) {
  return delete_one(world, 1);
}

// First the one that shares needs so little of the segment that it copies that, then the other one.
std::vector<std::function<Status()>> both_compact(StoreWorld& world) {
  const auto of_second = join(slice(sharing(world).kept, 0, 1), world.chunks(4));
  const auto of_first = join(slice(world.committed(), 6, 8), world.chunks(4));
  const auto rewrite = [&world](std::size_t file, const std::vector<Chunk>& what) {
    return std::vector<std::function<Status()>>{
        [&world, file] {
          world.turn_to(file);
          return world.attach(true).status();
        },
        [&world, what] { return world.put(what); },
        [&world, what] { return world.commit_generation(what); },
        [&world] { return world.expect_shared(0); },
        [&world] { return world.detach(); },
    };
  };
  return then(rewrite(1, of_second), rewrite(0, of_first));
}

Status nothing(StoreWorld&) {
  return Status::ok();
}

const Scenario kScenarios[] = {
    {"a new store", nothing, two_generations},
    {"a file that is there", first_generation, two_generations},
    {"a commit tried again", first_generation, tried_again},
    {"a file never committed", nothing, never_committed},
    {"a generation adopted", nothing, adopted},
    {"a file deleted", first_generation, deleted},
    {"a file deleted while a store is away", first_generation, deleted_not_everywhere},
    {"a file that shares", first_generation, shares},
    {"a donor deleted before the commit", first_generation, shares_what_is_deleted},
    {"a donor deleted", two_that_share, donor_deleted},
    {"a sharing file deleted", two_that_share, sharer_deleted},
    {"two that share compact", two_that_share, both_compact},
};

// How a killed process's node is found.
struct Loss {
  const char* name;
  Choose choose;
  Order order;
  std::uint64_t seed = 0;
};

class StoreFaults : public testing::TestWithParam<Scenario> {
 protected:
  std::map<std::string, std::uint64_t> points_;
  std::map<std::string, std::uint64_t> wrong_;  // by fault, for at most kShown of each

  static constexpr std::uint64_t kShown = 3;

  void report(Fault fault, const std::string& text) {
    if (++wrong_[std::string(name_of(fault))] <= kShown) ADD_FAILURE() << text;
  }

  // Runs the scenario with `fault` at the n-th call; false if there was no such call.
  bool run(Fault fault, std::uint64_t n, const Loss& loss) {
    const Scenario& scenario = GetParam();
    StoreWorld world;
    const Status before = scenario.before(world);
    EXPECT_TRUE(before.is_ok()) << before.message();
    world.end_process();
    world.settle();
    const auto steps = scenario.steps(world);
    world.plan().set(fault, n);
    bool any_failed = false;
    std::string errors;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Status status = steps[i]();
      any_failed |= !status.is_ok();
      if (!status.is_ok()) errors += "\n  step " + std::to_string(i) + ": " + status.message();
    }
    const bool struck = world.plan().struck != 0;
    const std::string where = world.plan().where;
    const auto describe = [&](const std::string& wrong) {
      return std::string(name_of(fault)) + " at call " + std::to_string(n) + " (" + where + "), " +
             loss.name + " (seed " + std::to_string(loss.seed) + "): " + wrong + errors;
    };
    if (!struck || fault == Fault::kInterrupted || fault == Fault::kShort) {
      if (any_failed) report(fault, describe("an error"));
    }
    world.end_process();
    if (loss.choose) {
      world.memory().crash(StoreWorld::kDisk, loss.choose, loss.order);
      world.memory().crash(StoreWorld::kShared, loss.choose, loss.order);
    }
    const std::string wrong = world.check();
    if (!wrong.empty()) report(fault, describe(wrong));
    if (struck) ++points_[std::string(name_of(fault))];
    return struck;
  }

  // Until a run gets through.
  void run_all(Fault fault, const Loss& loss) {
    for (std::uint64_t n = 1; run(fault, n, loss); ++n) continue;
  }
};

TEST_P(StoreFaults, EveryCallFailsInEveryWay) {
  for (auto fault = Fault::kIo; fault != Fault::kDead;
       fault = static_cast<Fault>(static_cast<int>(fault) + 1)) {
    run_all(fault, {"power stays", nullptr, Order::kAny});
    run_all(fault, {"all is lost", lose_all(), Order::kAny});
  }
  for (const auto& [name, count] : points_) {
    std::printf("%s: %s: %llu points\n", GetParam().name, name.c_str(),
                static_cast<unsigned long long>(count));
  }
}

TEST_P(StoreFaults, KilledAtEveryCall) {
  // More of them by hand: DEDUP_TEST_SEEDS=first:count.
  std::uint64_t first = 1, count = 4;
  if (const char* text = std::getenv("DEDUP_TEST_SEEDS")) {
    char* end = nullptr;
    first = std::strtoull(text, &end, 10);
    if (*end == ':') count = std::strtoull(end + 1, nullptr, 10);
  }
  std::vector<Loss> losses = {{"power stays", nullptr, Order::kAny},
                              {"all is lost", lose_all(), Order::kAny},
                              {"all is kept", keep_all(), Order::kAny}};
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    losses.push_back({"some is lost, in order", choose_randomly(seed), Order::kInOrder, seed});
    losses.push_back({"some is lost", choose_randomly(seed), Order::kAny, seed});
  }
  for (const Fault fault : {Fault::kDead, Fault::kDeadShort}) {
    for (const Loss& loss : losses) run_all(fault, loss);
  }
  for (const auto& [name, points] : points_) {
    std::printf("%s: %s: %llu points, seeds %llu to %llu\n", GetParam().name, name.c_str(),
                static_cast<unsigned long long>(points), static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(first + count - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, StoreFaults, testing::ValuesIn(kScenarios),
                         [](const auto& scenario) {
                           std::string name = scenario.param.name;
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

// After a commit with dedup_fsync=never nothing was flushed. What somebody else's commit needs of
// that is, then, if it promises to be on the disk.
class UnflushedFaults : public testing::Test {
 protected:
  // A life ends with a loss of power, and the file whose turn it is must be there.
  static void run_all(std::uint64_t seeds, const std::function<void(StoreWorld&)>& life) {
    std::vector<Loss> losses = {{"all is lost", lose_all(), Order::kAny}};
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      losses.push_back({"some is lost", choose_randomly(seed), Order::kAny, seed});
    }
    for (const Loss& loss : losses) {
      StoreWorld world;
      ASSERT_TRUE(commit(world, world.chunks(12), false).is_ok());
      life(world);
      world.end_process();
      world.memory().crash(StoreWorld::kDisk, loss.choose, loss.order);
      EXPECT_EQ(world.check_newest(), "") << loss.name << ", seed " << loss.seed;
    }
  }
  static Status commit(StoreWorld& world, const std::vector<Chunk>& what, bool flush) {
    DEDUP_TRY(world.attach(true).status());
    DEDUP_TRY(world.put(what));
    DEDUP_TRY(world.commit_generation(what, flush));
    return world.detach();
  }
};

TEST_F(UnflushedFaults, AreNoneOfAFileThatShares) {
  run_all(50, [](StoreWorld& world) {
    for (const auto& step : shares(world)) ASSERT_TRUE(step().is_ok());
  });
}

// Else the first generation's record may come back with only its name.
TEST_F(UnflushedFaults, AreNoneOfTheNextJobIfAllIsLost) {
  run_all(0, [](StoreWorld& world) {
    const auto what = join(world.committed(), world.chunks(4));
    world.end_process();
    ASSERT_TRUE(commit(world, what, true).is_ok());
  });
}

}  // namespace
}  // namespace dedup::test
