#include "tools/dedupctl/node_load.h"

namespace dedup::ctl {

std::vector<NodeLoad> loads(const Session& session, const FileRow& file) {
  std::vector<NodeLoad> out;
  const auto standings = session.catalog.standings(file);
  for (std::size_t i = 0; i < standings.size(); ++i) {
    const store::StoreEntry& entry = file.record().stores[i];
    NodeLoad load{entry.node, entry.uuid.hex(), std::string(name_of(standings[i]))};
    const StoreRow* const row = session.catalog.store_of(entry.uuid);
    for (const FileOnStore& on : file.on) {
      if (row != &session.catalog.stores[on.store]) continue;
      if (standings[i] == Standing::kHere) {
        load.chunks = on.survey.chunks;
        load.live_bytes = on.survey.live_bytes;
      }
      load.stored_bytes = on.survey.segment_bytes;
      load.log_bytes = on.survey.log_bytes;
    }
    out.push_back(std::move(load));
  }
  return out;
}

}  // namespace dedup::ctl
