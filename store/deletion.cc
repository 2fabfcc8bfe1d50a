#include "store/deletion.h"

#include <algorithm>
#include <utility>

#include "store/kept.h"

namespace dedup::store {

// Marks are put with the file locked, so whoever has it locked sees none that will be taken back.
Result<std::uint64_t> drop_with_mark(Store& store, const Id128& identity,
                                     const std::vector<Id128>& stores_left,
                                     std::unique_ptr<Store::Lock> whole) {
  const auto before = store.mark_stores(identity);
  // The mark first: after a crash in between, whoever sees it drops the file.
  DEDUP_TRY(store.put_mark(identity, stores_left));
  auto dropped = drop_with_kept(store, identity, std::move(whole));
  if (!dropped.is_ok()) {
    // Not deleted, so it must not be marked as such. What the caller is told is why it could not
    // be.
    (void)store.put_mark(identity, before.is_ok() ? *before : std::vector<Id128>{});
  }
  return dropped;
}

Status drop_with_mark(Store& store, const Id128& identity, const std::vector<Id128>& stores_left) {
  auto lock = store.lock_whole(identity);
  if (lock.is_ok()) {
    return drop_with_mark(store, identity, stores_left, std::move(*lock)).status();
  }
  if (lock.status().code() != Code::kNoSuchFile) return lock.status();
  DEDUP_TRY(store.put_mark(identity, stores_left));
  return store.drop_file(identity).status();  // what a crash left of it
}

Status drop_marked(Store& store, const Id128& identity) {
  auto lock = store.lock_whole(identity);
  if (lock.status().code() == Code::kNoSuchFile) return Status::ok();
  DEDUP_TRY(lock.status());
  DEDUP_ASSIGN(const auto marks, store.marks());
  const bool is_marked = std::find(marks.begin(), marks.end(), identity) != marks.end();
  if (!is_marked) return Status::ok();
  return drop_with_kept(store, identity, std::move(*lock)).status();
}

}  // namespace dedup::store
