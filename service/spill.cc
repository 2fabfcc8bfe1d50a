#include "service/spill.h"

#include <utility>

namespace dedup::service {

Result<Executor::Progress> SpillTask::step(Executor::Beside&) {
  if (!store_) {
    DEDUP_ASSIGN(store_, opener_(place_, false));
    auto mover = store_->move_down();
    // Somebody else does it already.
    if (mover.status().code() == Code::kFileInUse) return Executor::Progress{true, 0};
    DEDUP_ASSIGN(mover_, std::move(mover));
  }
  DEDUP_ASSIGN(const store::Store::Mover::Moved moved, mover_->step());
  return Executor::Progress{moved.done, moved.bytes};
}

void SpillTask::ended(const Status& outcome) {
  mover_.reset();
  on_end_(outcome);
}

}  // namespace dedup::service
