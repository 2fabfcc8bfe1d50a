#include "store/deletion.h"

namespace dedup::store {

Status drop_with_mark(Store& store, const Id128& identity, const std::vector<Id128>& stores_left) {
  const auto before = store.mark_stores(identity);
  // The mark first: after a crash in between, whoever sees it drops the file.
  DEDUP_TRY(store.put_mark(identity, stores_left));
  Status status = store.drop_file(identity);
  if (!status.is_ok()) {
    // Not deleted, so it must not be marked as such. What the caller is told is why it could not
    // be.
    (void)store.put_mark(identity, before.is_ok() ? *before : std::vector<Id128>{});
  }
  return status;
}

}  // namespace dedup::store
