#include "engine/protocol/own_leases.h"

#include <algorithm>
#include <utility>

#include "engine/protocol/job_file.h"
#include "engine/protocol/leases.h"

namespace dedup::engine {

Result<bool> OwnLeases::note(const JobFile& file, std::uint64_t block,
                             const store::LeasedWrite& write) {
  const auto lease =
      std::find_if(leases_.begin(), leases_.end(), [&](const auto& l) { return l.block == block; });
  if (lease == leases_.end()) return false;
  if (table_->note(lease->slot, write) == store::LeaseTable::Noted::kYes) return true;
  DEDUP_TRY(give_back(file, lease));
  return false;
}

Result<service::Lease> OwnLeases::wish(const JobFile& file, std::uint64_t block) {
  if (unavailable_ || std::exchange(last_block_, block) != block) return service::Lease{};
  if (!table_) {
    auto made = file.local->make_leases();
    if (!made.is_ok()) {
      unavailable_ = true;
      return service::Lease{};
    }
    table_ = std::move(*made);
  }
  if (leases_.size() == store::LeaseTable::kSlots) DEDUP_TRY(give_back(file, leases_.begin()));
  std::uint32_t slot = 0;
  const auto is_taken = [&](const service::Lease& l) { return l.slot == slot; };
  while (std::any_of(leases_.begin(), leases_.end(), is_taken)) ++slot;
  // It may be recalled as soon as it is granted.
  table_->begin(slot, ++last_serial_);
  leases_.push_back({block, file.client().self(), file.local->log_number(), slot, last_serial_});
  return leases_.back();
}

void OwnLeases::refused(const service::Lease& lease) {
  table_->free(lease.slot);
  std::erase(leases_, lease);
}

void OwnLeases::doubt(const service::Lease& lease) {
  table_->end(lease.slot);
}

Status OwnLeases::give_back_all(const JobFile& file) {
  while (!leases_.empty()) DEDUP_TRY(give_back(file, leases_.begin()));
  return Status::ok();
}

Status OwnLeases::give_back(const JobFile& file, Leases::iterator lease) {
  const bool recalled = table_->end(lease->slot);
  std::vector<LogPiece> pieces =
      store::log_pieces(table_->writes(lease->slot), lease->node, lease->log);
  DEDUP_TRY(return_lease(file, *lease, std::move(pieces), recalled));
  table_->free(lease->slot);
  leases_.erase(lease);
  return Status::ok();
}

}  // namespace dedup::engine
