#include "base/worker.h"

#include <utility>

#include "base/barrier.h"
#include "base/thread.h"

namespace dedup {

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::future<Status> Worker::post(std::function<Status()> task) {
  // Whoever waits is told by a Status, also of an exception.
  std::packaged_task<Status()> packaged([task = std::move(task)] {
    Status status;
    const Status thrown = no_exceptions([&] { status = task(); });
    return thrown.is_ok() ? status : thrown;
  });
  std::future<Status> result = packaged.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      auto started = start_thread("dedup-worker", [this] { run(); });
      if (started.is_ok()) thread_ = std::move(*started);
    }
    if (thread_.joinable()) {
      tasks_.push_back(std::move(packaged));
      changed_.notify_one();
      return result;
    }
  }
  packaged();
  return result;
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (ending_) return;
    std::packaged_task<Status()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    // What the task holds on to is not let go under the lock.
    task = {};
    lock.lock();
  }
}

}  // namespace dedup
