#include "service/executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/barrier.h"
#include "base/thread.h"

namespace dedup::service {
namespace {

// Short enough to take no memory.
Status stopped() {
  return {Code::kInternal, "it was stopped"};
}
Status cancelled() {
  return {Code::kInternal, "cancelled"};
}

std::int64_t system_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

class Executor::Reach final : public Executor::Beside {
 public:
  explicit Reach(Executor& executor) : executor_(executor) {}

  Result<Client*> services() override {
    const std::lock_guard lock(executor_.mutex_);
    if (executor_.services_) return executor_.services_.get();
    return Status(Code::kInternal, "the services do not know each other yet");
  }

  Status in_loop(const std::function<void()>& work) override {
    if (executor_.options_.run == Run::kByHand) return no_exceptions(work);
    LoopCall call{&work, {}};
    std::unique_lock lock(executor_.mutex_);
    if (executor_.stopping_) return stopped();
    executor_.call_ = &call;
    executor_.wake_();
    executor_.called_.wait(lock, [&] { return call.done || (executor_.stopping_ && !call.begun); });
    executor_.call_ = nullptr;
    return call.done ? std::move(call.outcome) : stopped();
  }

 private:
  Executor& executor_;
};

Executor::Executor(const Options& options)
    : options_(options), now_(options.now != nullptr ? options.now : system_now) {}

Executor::~Executor() {
  stop();
}

void Executor::connect(std::unique_ptr<Client> services) {
  const std::lock_guard lock(mutex_);
  services_ = std::move(services);
}

void Executor::set_waker(std::function<void()> wake) {
  wake_ = std::move(wake);
}

void Executor::cancel_and_wait(Ticket ticket) {
  cancel(ticket);
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return running_ != ticket; });
}

bool Executor::wait_until_idle(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, time,
                        [&] { return stopping_ || (commits_.empty() && background_.empty()); });
}

void Executor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    called_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  for (Items* items : {&commits_, &background_}) {
    while (!items->empty()) end(*items, items->begin(), stopped());
  }
}

// ---- The loop's thread -------------------------------------------------------------------------

Executor::Ticket Executor::add(std::unique_ptr<Task> task, Precedence precedence,
                               std::uint64_t bytes_per_second) {
  Items one;
  one.emplace_back();
  Item& item = one.front();
  item.task = std::move(task);
  item.bytes_per_second = precedence == Precedence::kBackground ? bytes_per_second : 0;
  const std::lock_guard lock(mutex_);
  const Ticket ticket = ++last_ticket_;
  item.ticket = ticket;
  Items& items = queue(precedence);
  items.splice(items.end(), one);
  if (stopping_) {
    end(items, std::prev(items.end()), stopped());
    return ticket;
  }
  if (options_.run == Run::kInThread && !thread_.joinable()) {
    auto started = start_thread("dedup-executor", [this] { run(); });
    if (!started.is_ok()) {
      end(items, std::prev(items.end()), started.status());
      return ticket;
    }
    thread_ = std::move(*started);
  }
  changed_.notify_one();
  return ticket;
}

void Executor::cancel(Ticket ticket) {
  Items gone;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  for (Items* items : {&commits_, &background_}) {
    const auto item = std::find_if(items->begin(), items->end(),
                                   [&](const Item& i) { return i.ticket == ticket; });
    if (item == items->end()) continue;
    item->cancelled = true;
    if (ticket != running_) gone.splice(gone.end(), *items, item);
    return;
  }
}

void Executor::deliver() noexcept {
  Items ended;
  LoopCall* call = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
    if (call_ != nullptr && !call_->begun) {
      call = call_;
      call->begun = true;
    }
  }
  if (call != nullptr) {
    Status outcome = no_exceptions(*call->work);
    const std::lock_guard lock(mutex_);
    call->outcome = std::move(outcome);
    call->done = true;
    called_.notify_all();
  }
  for (Item& item : ended) {
    // One that throws answers by being destroyed.
    (void)no_exceptions([&] { item.task->ended(item.outcome); });
    item.task.reset();
  }
}

// ---- The executor's ----------------------------------------------------------------------------

// The queue whose first task is next; null if there is none, or none for `wait` nanoseconds (0:
// until something is added).
Executor::Items* Executor::next_queue(std::int64_t& wait) {
  wait = 0;
  if (!commits_.empty()) return &commits_;
  if (background_.empty()) return nullptr;
  if (background_.front().bytes_per_second > 0) {
    wait = std::max<std::int64_t>(free_ - now_(), 0);
  }
  return wait == 0 ? &background_ : nullptr;
}

void Executor::end(Items& from, Items::iterator item, Status outcome) noexcept {
  item->outcome = std::move(outcome);
  ended_.splice(ended_.end(), from, item);
  if (wake_) wake_();
}

void Executor::run_step(Items& from, std::unique_lock<std::mutex>& lock) {
  const auto item = from.begin();
  running_ = item->ticket;
  lock.unlock();
  Progress progress;
  Status status;
  const Status thrown = no_exceptions([&] {
    Reach beside(*this);
    Result<Progress> result = item->task->step(beside);
    status = result.status();
    if (result.is_ok()) progress = *result;
  });
  if (!thrown.is_ok()) status = thrown;
  lock.lock();
  running_ = 0;
  if (item->bytes_per_second > 0) {
    const double takes =
        static_cast<double>(progress.bytes) / static_cast<double>(item->bytes_per_second) * 1e9;
    free_ = std::max(free_, now_()) + static_cast<std::int64_t>(takes);
  }
  if (!status.is_ok() || progress.done) {
    end(from, item, std::move(status));
  } else if (item->cancelled) {
    end(from, item, cancelled());
  }
  idle_.notify_all();
}

void Executor::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::int64_t wait = 0;
    if (Items* const from = next_queue(wait); from != nullptr) {
      run_step(*from, lock);
    } else if (wait > 0) {
      changed_.wait_for(lock, std::chrono::nanoseconds(wait));
    } else {
      changed_.wait(lock);
    }
  }
}

bool Executor::run_one() {
  bool did = false;
  {
    std::unique_lock lock(mutex_);
    std::int64_t wait = 0;
    Items* const from = stopping_ || running_ != 0 ? nullptr : next_queue(wait);
    if (from != nullptr) run_step(*from, lock);
    did = from != nullptr;
  }
  deliver();
  return did;
}

}  // namespace dedup::service
