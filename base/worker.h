// A thread for what would make another one wait, such as a busy disk.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "base/status.h"

namespace dedup {

// Does what it is given, one after the other. The thread begins with the first task and ends with
// the worker. Any number of threads may post.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Waits for the task that is being done. Those that wait are dropped, and so is what their
  // futures would say.
  ~Worker();

  // Where no thread can be had, the task is done when this returns. What it throws is its Status.
  std::future<Status> post(std::function<Status()> task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<Status()>> tasks_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace dedup
