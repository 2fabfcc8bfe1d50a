#include "tools/dedupctl/upkeep.h"

#include <utility>
#include <vector>

namespace dedup::ctl {
namespace {

struct Locked {
  LocalStore* local = nullptr;
  std::unique_ptr<store::Store::Lock> lock;
};

// This process's part; nothing of a store that has nothing of the file.
Result<std::vector<Locked>> lock_here(LocalStores& local, const Change& change) {
  std::vector<Locked> locked;
  for (LocalStore& one : local.stores) {
    auto lock = change.hold == Change::Hold::kWhole ? one.store->lock_whole(change.identity)
                                                    : one.store->lock_for_writing(change.identity);
    const Code code = lock.status().code();
    if (code == Code::kNoSuchFile) continue;
    if (code == Code::kFileInUse) {
      return Status(code, "a job has it open on node " + one.node);
    }
    DEDUP_TRY(lock.status().with_context("node " + one.node));
    locked.push_back({&one, std::move(*lock)});
  }
  return locked;
}

}  // namespace

Status carry_out(Upkeep& upkeep, const Change& change) {
  const Ranks& ranks = upkeep.ranks;
  auto locked = lock_here(upkeep.local, change);
  DEDUP_TRY(ranks.agree(locked.status()));
  DEDUP_ASSIGN(const FileRow now, look_again(ranks, upkeep.local, upkeep.catalog, change.identity));
  DEDUP_TRY(ranks.agree(upkeep.is_root() ? change.decide(now) : Status::ok()));
  Status status;
  for (Locked& one : *locked) {
    const Status applied = change.apply(*one.local, std::move(one.lock));
    if (status.is_ok()) status = applied.with_context("node " + one.local->node);
  }
  return ranks.agree(status);
}

Status changed_meanwhile() {
  return {Code::kFileInUse, "a job has changed it meanwhile"};
}

}  // namespace dedup::ctl
