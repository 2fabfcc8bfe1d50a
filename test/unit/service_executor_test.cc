// The executor beside a service's loop: order, rate, stop, what is thrown; by hand, and with its
// thread.
#include "service/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace dedup::service {
namespace {

using Precedence = Executor::Precedence;
using Progress = Executor::Progress;

// What tasks did, in order: "a1" is a's first step, "a:" and a text its end.
using Events = std::vector<std::string>;

// Stands still, but by hand.
std::int64_t hand_time = 0;
std::int64_t hand_clock() {
  return hand_time;
}

class Steps : public Executor::Task {
 public:
  Steps(Events& events, std::string name, int steps, std::uint64_t bytes = 0)
      : events_(events), name_(std::move(name)), steps_(steps), bytes_(bytes) {}
  ~Steps() override { events_.push_back("~" + name_); }
  Result<Progress> step(Executor::Beside& beside) override {
    events_.push_back(name_ + std::to_string(++done_));
    if (in_step) in_step(beside);
    return Progress{done_ == steps_, bytes_};
  }
  void ended(const Status& outcome) override {
    events_.push_back(name_ + ":" + (outcome.is_ok() ? "ok" : outcome.message()));
    if (in_end) in_end();
  }

  std::function<void(Executor::Beside&)> in_step;
  std::function<void()> in_end;

 private:
  Events& events_;
  std::string name_;
  int steps_;
  int done_ = 0;
  std::uint64_t bytes_;
};

class ServiceExecutor : public testing::Test {
 protected:
  Executor::Ticket add(const std::string& name, int steps,
                       Precedence precedence = Precedence::kCommit, std::uint64_t bytes = 0) {
    auto task = std::make_unique<Steps>(events, name, steps, bytes);
    last = task.get();
    return executor.add(std::move(task), precedence, 1000);
  }
  void run() {
    while (executor.run_one()) {
    }
  }

  Events events;
  Steps* last = nullptr;
  Executor executor{{Executor::Run::kByHand, hand_clock}};
};

TEST_F(ServiceExecutor, DoesOneAfterTheOther) {
  add("a", 2);
  add("b", 1);
  run();
  EXPECT_EQ(events, (Events{"a1", "a2", "a:ok", "~a", "b1", "b:ok", "~b"}));
  EXPECT_FALSE(executor.run_one());
}

TEST_F(ServiceExecutor, CommitsGoBeforeTheNextStepOfWhatIsInTheBackground) {
  add("a", 3, Precedence::kBackground);
  add("b", 1, Precedence::kBackground);
  EXPECT_TRUE(executor.run_one());
  add("c", 2);
  run();
  EXPECT_EQ(events,
            (Events{"a1", "c1", "c2", "c:ok", "~c", "a2", "a3", "a:ok", "~a", "b1", "b:ok", "~b"}));
}

TEST_F(ServiceExecutor, WhatIsInTheBackgroundKeepsToTheRate) {
  add("a", 4, Precedence::kBackground, 500);  // half a second each
  EXPECT_TRUE(executor.run_one());
  EXPECT_FALSE(executor.run_one());
  hand_time += 499'999'999;
  EXPECT_FALSE(executor.run_one());
  hand_time += 1;
  EXPECT_TRUE(executor.run_one());
  // Time that passed unused is not made up for.
  hand_time += 10'000'000'000;
  EXPECT_TRUE(executor.run_one());
  EXPECT_FALSE(executor.run_one());
  // A commit is not held up.
  add("c", 1, Precedence::kCommit, 1'000'000);
  EXPECT_TRUE(executor.run_one());
  hand_time += 500'000'000;
  EXPECT_TRUE(executor.run_one());
  EXPECT_EQ(events, (Events{"a1", "a2", "a3", "c1", "c:ok", "~c", "a4", "a:ok", "~a"}));
}

TEST_F(ServiceExecutor, EachTaskHasItsRate) {
  const auto add_at = [&](const std::string& name, std::uint64_t rate) {
    executor.add(std::make_unique<Steps>(events, name, 1, 500), Precedence::kBackground, rate);
  };
  add_at("a", 1000);
  add_at("b", 100);
  add_at("c", 0);
  add_at("d", 1);
  EXPECT_TRUE(executor.run_one());
  EXPECT_FALSE(executor.run_one());
  hand_time += 500'000'000;
  EXPECT_TRUE(executor.run_one());
  // What has no rate waits for none; what has one for what was moved before it.
  EXPECT_TRUE(executor.run_one());
  hand_time += 4'999'999'999;
  EXPECT_FALSE(executor.run_one());
  hand_time += 1;
  EXPECT_TRUE(executor.run_one());
}

TEST_F(ServiceExecutor, WithoutARateNobodyLooksAtTheClock) {
  Executor fast({Executor::Run::kByHand, [] {
                   ADD_FAILURE();
                   return std::int64_t{0};
                 }});
  fast.add(std::make_unique<Steps>(events, "a", 3, 1'000'000), Precedence::kBackground);
  while (fast.run_one()) {
  }
  EXPECT_EQ(events, (Events{"a1", "a2", "a3", "a:ok", "~a"}));
}

TEST_F(ServiceExecutor, WhatAStepThrowsIsItsOwnError) {
  add("a", 2);
  last->in_step = [](Executor::Beside&) { throw std::bad_alloc(); };
  add("b", 2);
  last->in_step = [](Executor::Beside&) { throw std::runtime_error("a reason"); };
  add("c", 2);
  last->in_step = [](Executor::Beside&) { throw 1; };
  add("d", 1);
  run();
  EXPECT_EQ(events, (Events{"a1", "a:out of memory", "~a", "b1", "b:a reason", "~b", "c1",
                            "c:an exception", "~c", "d1", "d:ok", "~d"}));
}

TEST_F(ServiceExecutor, ATaskThatThrowsAtItsEndHarmsNobody) {
  add("a", 1);
  last->in_end = [] { throw std::bad_alloc(); };
  add("b", 1);
  run();
  EXPECT_EQ(events, (Events{"a1", "a:ok", "~a", "b1", "b:ok", "~b"}));
}

TEST_F(ServiceExecutor, AnErrorEndsATask) {
  class Failing : public Steps {
   public:
    using Steps::Steps;
    Result<Progress> step(Executor::Beside& beside) override {
      (void)Steps::step(beside);
      return Status(Code::kNoSpace, "full");
    }
  };
  executor.add(std::make_unique<Failing>(events, "a", 5), Precedence::kCommit);
  run();
  EXPECT_EQ(events, (Events{"a1", "a:full", "~a"}));
}

TEST_F(ServiceExecutor, StoppedInTheMiddleAllEndAsStopped) {
  add("a", 3);
  add("b", 1, Precedence::kBackground);
  EXPECT_TRUE(executor.run_one());
  executor.stop();
  EXPECT_FALSE(executor.run_one());
  EXPECT_EQ(events, (Events{"a1", "a:it was stopped", "~a", "b:it was stopped", "~b"}));
  add("c", 1);
  executor.deliver();
  EXPECT_EQ(events.back(), "~c");
  EXPECT_EQ(events[events.size() - 2], "c:it was stopped");
}

TEST_F(ServiceExecutor, ACancelledTaskBeginsNoOtherStep) {
  const auto a = add("a", 3);
  const auto b = add("b", 1);
  EXPECT_TRUE(executor.run_one());
  executor.cancel(b);  // had not begun: it is not told
  executor.cancel(a);
  executor.cancel(a + 100);
  run();
  EXPECT_EQ(events, (Events{"a1", "~b", "~a"}));
}

TEST_F(ServiceExecutor, ATaskCancelledInAStepIsToldAfterIt) {
  const auto a = add("a", 3);
  last->in_step = [&](Executor::Beside&) { executor.cancel(a); };
  run();
  EXPECT_EQ(events, (Events{"a1", "a:cancelled", "~a"}));
}

TEST_F(ServiceExecutor, DestroyedWithTasksItDestroysThem) {
  {
    Executor other({Executor::Run::kByHand});
    other.add(std::make_unique<Steps>(events, "a", 3), Precedence::kCommit);
    other.add(std::make_unique<Steps>(events, "b", 3), Precedence::kBackground);
    EXPECT_TRUE(other.run_one());
  }
  EXPECT_EQ(events, (Events{"a1", "~a", "~b"}));
}

TEST_F(ServiceExecutor, ServicesAreThereOnceTheyAreKnown) {
  add("a", 2);
  last->in_step = [](Executor::Beside& beside) {
    EXPECT_EQ(beside.services().status().code(), Code::kInternal);
  };
  EXPECT_TRUE(executor.run_one());
  executor.connect(std::make_unique<Client>(std::vector<Peer>{{"n0", {}, 0}}, 0, Secret{}));
  last->in_step = [](Executor::Beside& beside) {
    const auto services = beside.services();
    ASSERT_TRUE(services.is_ok());
    EXPECT_EQ((*services)->node_name(0), "n0");
  };
  run();
}

// ---- With its thread ---------------------------------------------------------------------------

// A loop that does nothing but deliver.
class Loop {
 public:
  explicit Loop(Executor& executor) : executor_(executor) {
    executor.set_waker([this] {
      const std::lock_guard lock(mutex_);
      ++woken_;
      changed_.notify_all();
    });
  }
  // Until `done` holds, which is asked in this thread after each delivery.
  void run_until(const std::function<bool()>& done) {
    while (!done()) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return woken_ > 0; });
        woken_ = 0;
      }
      executor_.deliver();
    }
  }

 private:
  Executor& executor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int woken_ = 0;
};

TEST(ServiceExecutorThread, WhatAStepAsksTheLoopForIsDoneInItsThread) {
  Events events;
  bool ended = false;
  Executor executor;
  Loop loop(executor);
  auto task = std::make_unique<Steps>(events, "a", 2);
  const auto here = std::this_thread::get_id();
  int calls = 0;
  task->in_step = [&](Executor::Beside& beside) {
    EXPECT_NE(std::this_thread::get_id(), here);
    EXPECT_TRUE(beside
                    .in_loop([&] {
                      EXPECT_EQ(std::this_thread::get_id(), here);
                      ++calls;
                    })
                    .is_ok());
    EXPECT_EQ(beside.in_loop([] { throw std::bad_alloc(); }).code(), Code::kNoMemory);
  };
  task->in_end = [&] {
    EXPECT_EQ(std::this_thread::get_id(), here);
    ended = true;
  };
  executor.add(std::move(task), Precedence::kCommit);
  loop.run_until([&] { return ended; });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(events, (Events{"a1", "a2", "a:ok", "~a"}));
}

TEST(ServiceExecutorThread, StopWaitsForTheStepAndLetsNoOtherBegin) {
  Events events;
  Executor executor;
  executor.set_waker([] {});
  auto task = std::make_unique<Steps>(events, "a", 100);
  std::atomic<bool> in_step = false;
  task->in_step = [&](Executor::Beside& beside) {
    in_step = true;
    // The loop never comes: the call ends with the executor.
    EXPECT_EQ(beside.in_loop([] { ADD_FAILURE(); }).message(), "it was stopped");
  };
  executor.add(std::move(task), Precedence::kCommit);
  while (!in_step) std::this_thread::yield();
  executor.stop();
  executor.deliver();
  EXPECT_EQ(events, (Events{"a1", "a:it was stopped", "~a"}));
}

TEST(ServiceExecutorThread, ItWaitsForTheRateAndForNothingWhenItIsStopped) {
  Events events;
  // The clock stands still: the second step would never begin.
  Executor executor({Executor::Run::kInThread, hand_clock});
  executor.set_waker([] {});
  auto task = std::make_unique<Steps>(events, "a", 2, 1'000'000'000);
  std::atomic<bool> in_step = false;
  task->in_step = [&](Executor::Beside&) { in_step = true; };
  executor.add(std::move(task), Precedence::kBackground, 1);
  while (!in_step) std::this_thread::yield();
  executor.stop();
  executor.deliver();
  EXPECT_EQ(events, (Events{"a1", "a:it was stopped", "~a"}));
}

}  // namespace
}  // namespace dedup::service
