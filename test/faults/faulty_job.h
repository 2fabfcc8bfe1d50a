// A job on a store in memory, of which calls fail, whose process is killed and whose disks lose
// power: what tests of such faults at every call have in common.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "test/faults/memory_system.h"
#include "test/hooks/faulty_system.h"
#include "test/unit/store_job.h"

namespace dedup::test {

class FaultyJob : public service::StoreJob {
 public:
  // `disks`: of the node, which lose power together. Beside them there is /shared, which does not.
  FaultyJob(std::string store_template, std::string path, std::vector<std::string> disks)
      : StoreJob(std::move(store_template), std::move(path)), disks_(std::move(disks)) {
    for (const std::string& disk : disks_) memory_.mount(disk);
    memory_.mount("/shared");
    memory_.set_process(process_);
    faulty_.on_failed_sync = [this](int fd) { memory_.fail_sync(fd); };
  }
  ~FaultyJob() {
    node_.reset();
    store::use_system(before_);
  }

  store::FaultPlan& plan() { return plan_; }
  // Faults happen to calls on this disk only.
  void strike_only(const std::string& disk) {
    faulty_.is_meant = [this, disk](const char* path, int fd) {
      return memory_.is_on(disk, path, fd);
    };
  }
  void settle() {
    for (const std::string& disk : disks_) memory_.settle(disk);
  }

  // The process dies, and the disks lose power if `choose` says what becomes of the rest.
  void end_process(const Choose& choose, MemorySystem::Order order) {
    node_.reset();
    plan_.set(store::Fault::kNone, 0);
    memory_.kill(process_);
    memory_.set_process(++process_);
    for (const std::string& disk : disks_) {
      if (choose) memory_.crash(disk, choose, order);
    }
    node_ = new_node();
  }

 protected:
  MemorySystem memory_;

 private:
  std::vector<std::string> disks_;
  store::FaultPlan plan_;
  store::FaultySystem faulty_{memory_, plan_};
  store::System& before_ = store::use_system(faulty_);
  int process_ = 1;
};

// run(fault, n, choose, order): a world in which the n-th call fails so; false if there was no n-th
// call. `choose`: what the disks lose then; null: they keep their power.
template <typename Run>
void run_at_each_call(const Run& run, store::Fault fault, const Choose& choose,
                      MemorySystem::Order order) {
  for (std::uint64_t n = 1; run(fault, n, choose, order); ++n) continue;
}

template <typename Run>
void run_with_failing_calls(const Run& run) {
  using enum store::Fault;
  using enum MemorySystem::Order;
  for (auto fault = kIo; fault != kDead;
       fault = static_cast<store::Fault>(static_cast<int>(fault) + 1)) {
    run_at_each_call(run, fault, nullptr, kAny);
    run_at_each_call(run, fault, lose_all(), kAny);
  }
}

template <typename Run>
void run_with_killed_processes(const Run& run) {
  using enum MemorySystem::Order;
  for (const store::Fault fault : {store::Fault::kDead, store::Fault::kDeadShort}) {
    run_at_each_call(run, fault, nullptr, kAny);
    run_at_each_call(run, fault, lose_all(), kAny);
    run_at_each_call(run, fault, keep_all(), kAny);
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      run_at_each_call(run, fault, choose_randomly(seed), kInOrder);
      run_at_each_call(run, fault, choose_randomly(seed), kAny);
    }
  }
}

}  // namespace dedup::test
