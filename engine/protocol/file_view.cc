#include "engine/protocol/file_view.h"

#include <algorithm>

namespace dedup::engine {

Result<FileView> FileView::from(service::FileInfo info) {
  FileView view;
  view.info = std::move(info);
  if (view.info.record.empty()) return view;
  DEDUP_ASSIGN(view.record, store::CommitRecord::decode(view.info.record));
  view.committed = true;
  for (const store::StoreEntry& entry : view.record.stores) {
    const auto it = std::find_if(view.info.stores.begin(), view.info.stores.end(),
                                 [&](const auto& store) { return store.uuid == entry.uuid; });
    if (it == view.info.stores.end()) {
      return Status(Code::kInternal, "store " + entry.uuid.hex() + " is not in the file's table");
    }
    view.store_of.push_back(static_cast<NodeIndex>(it - view.info.stores.begin()));
  }
  return view;
}

std::vector<service::StoreRef> store_table(std::vector<service::StoreRef> nodes,
                                           const store::CommitRecord& record) {
  for (const store::StoreEntry& entry : record.stores) {
    const bool here = std::any_of(nodes.begin(), nodes.end(),
                                  [&](const auto& store) { return store.uuid == entry.uuid; });
    if (!here) nodes.push_back({entry.uuid, entry.node});
  }
  return nodes;
}

}  // namespace dedup::engine
