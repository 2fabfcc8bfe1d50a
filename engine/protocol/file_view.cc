#include "engine/protocol/file_view.h"

#include <algorithm>

#include "base/hooks.h"

namespace dedup::engine {

namespace {

// Where a store is in the table; kNoNode if it is not.
NodeIndex position_of(const Id128& uuid, const std::vector<service::StoreRef>& stores) {
  const auto it = std::find_if(stores.begin(), stores.end(),
                               [&](const auto& store) { return store.uuid == uuid; });
  return it == stores.end() ? kNoNode : static_cast<NodeIndex>(it - stores.begin());
}

Result<CommittedGeneration> from_record(const Bytes& record,
                                        const std::vector<service::StoreRef>& stores) {
  CommittedGeneration generation;
  DEDUP_ASSIGN(generation.record, store::CommitRecord::decode(record));
  for (const store::StoreEntry& entry : generation.record.stores) {
    generation.store_of.push_back(position_of(entry.uuid, stores));
  }
  return generation;
}

}  // namespace

bool is_small(const store::CommitRecord& record) {
  const std::uint64_t chunk = std::max<std::uint64_t>(1, record.chunk_size);
  return (record.size + chunk - 1) / chunk < entries_worth_keeping();
}

bool CommittedGeneration::is_numbered_like(NodeIndex nodes) const {
  if (store_of.size() != nodes) return false;
  for (NodeIndex n = 0; n < nodes; ++n) {
    if (store_of[n] != n) return false;
  }
  return true;
}

const CommittedGeneration* FileView::origin() const {
  if (committed) return &*committed;
  return donor ? &*donor : nullptr;
}

std::vector<NodeIndex> FileView::nodes_of(const Id128& generation) const {
  const CommittedGeneration* const from = origin();
  if (from == nullptr || from->record.attempt != generation) return {};
  return from->store_of;
}

Result<FileView> FileView::from(service::FileInfo info) {
  FileView view;
  view.info = std::move(info);
  if (!view.info.record.empty()) {
    DEDUP_ASSIGN(view.committed, from_record(view.info.record, view.info.stores));
    const auto& nodes = view.committed->store_of;
    const auto unknown = std::find(nodes.begin(), nodes.end(), kNoNode);
    if (unknown != nodes.end()) {
      const auto& entry = view.committed->record.stores[unknown - nodes.begin()];
      return Status(Code::kInternal, "store " + entry.uuid.hex() + " is not in the file's table");
    }
  } else if (!view.info.donor.empty()) {
    DEDUP_ASSIGN(view.donor, from_record(view.info.donor, view.info.stores));
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
