// Long work beside a service's loop: one thread that does it in small steps, one piece of work
// after the other.
//
// The loop's thread owns the service's state. What a step needs of it, it has done there
// (Beside::in_loop), and the loop never waits for a step. A step may ask other services, whose
// loops never wait either; so executors wait for loops, and nobody waits for executors but who
// asked for the work. Knows no sockets; nothing thrown leaves it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "base/status.h"
#include "service/client.h"

namespace dedup::service {

class Executor {
 public:
  // What a step may use, and only in the step.
  class Beside {
   public:
    virtual ~Beside() = default;
    // The way to the services of all nodes; kInternal before connect().
    virtual Result<Client*> services() = 0;
    // Has `work` done in the loop's thread, and waits for it. What it throws is its Status; an
    // error as well if the executor is stopped before it began.
    virtual Status in_loop(const std::function<void()>& work) = 0;
  };

  struct Progress {
    bool done = false;
    std::uint64_t bytes = 0;  // moved by the step: what a rate counts
  };

  // A piece of work. It is made, told of its end, and destroyed in the loop's thread.
  class Task {
   public:
    virtual ~Task() = default;
    // Does a bounded part of it, and is called until it is done. An error, or what it throws, ends
    // it.
    virtual Result<Progress> step(Beside& beside) = 0;
    // Once: ok, or what ended it; kInternal if it was cancelled or the executor was stopped.
    virtual void ended(const Status& outcome) = 0;
  };

  enum class Precedence {
    kCommit,     // goes first
    kBackground  // when there is nothing else, and at its rate
  };
  using Ticket = std::uint64_t;  // names a task that was added; never 0

  enum class Run { kInThread, kByHand };

  struct Options {
    Run run = Run::kInThread;
    std::int64_t (*now)() = nullptr;  // nanoseconds, for the rate; null: the system's clock
  };

  Executor() : Executor(Options()) {}
  explicit Executor(const Options& options);
  // Stops it. What was not told of its end is destroyed.
  ~Executor();

  // --- Any thread -------------------------------------------------------------------------------
  void connect(std::unique_ptr<Client> services);
  // cancel(), and returns when no step of it is being done. Not by a step.
  void cancel_and_wait(Ticket ticket);
  // Waits until there is nothing left to do, or it was stopped; false if that takes longer. Not by
  // hand.
  bool wait_until_idle(std::chrono::milliseconds time);
  // No step begins any more; returns when the one that is being done has ended. All that was not
  // done ends as stopped, also what is added from now on.
  void stop();

  // --- The loop's thread ------------------------------------------------------------------------
  // `wake` is called in any thread, throws nothing, and has deliver() called soon in the loop's.
  // Before the first add().
  void set_waker(std::function<void()> wake);
  // In the order in which they are added, but for precedence. The thread begins with the first one;
  // if none can be had, it ends with that error. `bytes_per_second`: how fast a task in the
  // background moves them; 0: as fast as it can. What is not used at a time is not saved for later,
  // and what one task has used up the next one waits for, too.
  Ticket add(std::unique_ptr<Task> task, Precedence precedence, std::uint64_t bytes_per_second = 0);
  // Nobody wants it any more: no other step of it begins. Harmless if it has ended.
  void cancel(Ticket ticket);
  // Does what steps have to be done in the loop, and tells tasks of their ends.
  void deliver() noexcept;

  // --- By hand, in place of the thread ----------------------------------------------------------
  // A step, if there is something to do now, and deliver(). False if there was not.
  bool run_one();

 private:
  struct Item {
    Ticket ticket = 0;
    std::unique_ptr<Task> task;
    std::uint64_t bytes_per_second = 0;  // 0: it has no rate
    bool cancelled = false;
    Status outcome;
  };
  using Items = std::list<Item>;
  struct LoopCall {
    const std::function<void()>* work = nullptr;
    Status outcome;
    bool begun = false;
    bool done = false;
  };
  class Reach;

  Items& queue(Precedence precedence) {
    return precedence == Precedence::kCommit ? commits_ : background_;
  }
  void run();
  // Those below with the lock held, which a step lets go meanwhile.
  Items* next_queue(std::int64_t& wait);
  void run_step(Items& from, std::unique_lock<std::mutex>& lock);
  void end(Items& from, Items::iterator item, Status outcome) noexcept;

  const Options options_;
  std::int64_t (*const now_)();
  std::function<void()> wake_;

  std::mutex mutex_;
  std::condition_variable changed_;  // something to do, or the end
  std::condition_variable idle_;     // a step has ended
  std::condition_variable called_;   // a call into the loop is done, or is not going to be
  std::unique_ptr<Client> services_;
  Items commits_;
  Items background_;
  Items ended_;  // not told yet
  LoopCall* call_ = nullptr;
  Ticket last_ticket_ = 0;
  Ticket running_ = 0;     // whose step is being done; 0: none
  std::int64_t free_ = 0;  // when the next step in the background may begin
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dedup::service
