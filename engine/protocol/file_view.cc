#include "engine/protocol/file_view.h"

#include <algorithm>

namespace dedup::engine {

namespace {

// Where a store is in the table; kNoNode if it is not.
NodeIndex position_of(const Id128& uuid, const std::vector<service::StoreRef>& stores) {
  const auto it = std::find_if(stores.begin(), stores.end(),
                               [&](const auto& store) { return store.uuid == uuid; });
  return it == stores.end() ? kNoNode : static_cast<NodeIndex>(it - stores.begin());
}

}  // namespace

std::vector<NodeIndex> FileView::nodes_of(const Id128& generation) const {
  if (base() == generation) return store_of;
  std::vector<NodeIndex> nodes;
  if (info.donor.attempt != generation) return nodes;
  for (const Id128& uuid : info.donor.stores) nodes.push_back(position_of(uuid, info.stores));
  return nodes;
}

Result<FileView> FileView::from(service::FileInfo info) {
  FileView view;
  view.info = std::move(info);
  if (view.info.record.empty()) return view;
  DEDUP_ASSIGN(view.record, store::CommitRecord::decode(view.info.record));
  view.committed = true;
  for (const store::StoreEntry& entry : view.record.stores) {
    const NodeIndex position = position_of(entry.uuid, view.info.stores);
    if (position == kNoNode) {
      return Status(Code::kInternal, "store " + entry.uuid.hex() + " is not in the file's table");
    }
    view.store_of.push_back(position);
  }
  return view;
}

std::vector<service::StoreRef> store_table(std::vector<service::StoreRef> nodes,
                                           const store::CommitRecord& record) {
  for (const store::StoreEntry& entry : record.stores) {
    if (position_of(entry.uuid, nodes) == kNoNode) nodes.push_back({entry.uuid, entry.node});
  }
  return nodes;
}

}  // namespace dedup::engine
