#include "base/worker.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>
#include <vector>

namespace dedup {
namespace {

TEST(Worker, DoesTasksInOrderInAThreadOfItsOwn) {
  Worker worker;
  std::vector<int> done;
  std::thread::id where;
  std::vector<std::future<Status>> results;
  for (int i = 0; i < 100; ++i) {
    results.push_back(worker.post([&, i] {
      where = std::this_thread::get_id();
      done.push_back(i);
      return i == 7 ? Status(Code::kIo, "seven") : Status::ok();
    }));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].get().code(), i == 7 ? Code::kIo : Code::kOk);
  }
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(Worker, TakesNoSignals) {
  Worker worker;
  sigset_t blocked;
  sigemptyset(&blocked);
  ASSERT_TRUE(worker
                  .post([&] {
                    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
                    return Status::ok();
                  })
                  .get()
                  .is_ok());
  EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGINT), 0);
}

TEST(Worker, IsGoneOnlyWhenNoTaskIsBeingDone) {
  std::promise<void> begun;
  std::promise<void> go_on;
  bool ended = false;
  std::thread releaser;
  {
    Worker worker;
    worker.post([&] {
      begun.set_value();
      go_on.get_future().wait();
      ended = true;
      return Status::ok();
    });
    begun.get_future().wait();
    releaser = std::thread([&] { go_on.set_value(); });
  }
  EXPECT_TRUE(ended);
  releaser.join();
}

TEST(Worker, WithoutTasksHasNothingToWaitFor) {
  const Worker worker;
}

}  // namespace
}  // namespace dedup
