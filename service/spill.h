// Moving segments of this node's store to slower tiers: a task for the executor.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/store_place.h"
#include "service/executor.h"
#include "store/store.h"

namespace dedup::service {

// A step copies a few megabytes. What it has not done when it is stopped, the next one does, of
// this job or another. Uses a Store object of its own, in the executor's thread.
class SpillTask final : public Executor::Task {
 public:
  // `on_end` is called in the loop's thread.
  SpillTask(store::StoreOpener opener, StorePlace place, std::function<void(const Status&)> on_end)
      : opener_(std::move(opener)), place_(std::move(place)), on_end_(std::move(on_end)) {}

  Result<Executor::Progress> step(Executor::Beside& beside) override;
  void ended(const Status& outcome) override;

 private:
  const store::StoreOpener opener_;
  const StorePlace place_;
  const std::function<void(const Status&)> on_end_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Store::Mover> mover_;
};

}  // namespace dedup::service
