#include "engine/protocol/delete_file.h"

#include <algorithm>

#include "engine/protocol/fence.h"
#include "engine/protocol/search.h"
#include "service/messages/file_home.h"
#include "service/messages/homes.h"
#include "service/messages/store_node.h"
#include "store/real_path.h"

namespace dedup::engine {
namespace {

// On one rank: takes away what stands at the real path, if it is this file.
Status remove_real(const service::FileInfo& info) {
  if (info.real_path == service::FileInfo::RealPath::kNone || !stands_at_path(info)) {
    return Status::ok();
  }
  return store::fs::remove_file(info.path);
}

// Of a file that this job has open, with the path's turn: the name goes at once, the data with the
// last handle.
Status set_aside_as_deleted(service::Client& client, NodeIndex home,
                            const service::FileInfo& info) {
  DEDUP_TRY(remove_real(info));
  return client.call(home, service::SetAside{info.identity, true}).status();
}

// Deletes what all nodes' stores have of a path, or of what a placeholder there names or a plain
// file is cached as, that this job does not have open; but not `aside`.
Status drop_everywhere(service::Client& client, const std::string& path, const hints::Hints& hints,
                       const store::PathState& state, const std::vector<Id128>& aside) {
  DEDUP_ASSIGN(SearchResult found,
               search_alone(client, path, state.placeholder.identity, hints.store));
  hide(found, aside);
  DEDUP_ASSIGN(const bool shared, is_shared(found, path));
  const bool is_plain = state.kind == store::PathState::Kind::kPlain;
  const Id128 identity = is_plain ? store::choose_cached(state.stamp, found.reports).record.identity
                                  : state.placeholder.identity;
  const bool is_there = state.kind == store::PathState::Kind::kPlaceholder || is_plain;
  if (shared && !is_there) return {Code::kNoSuchFile, path + ": no such file"};
  if (shared) DEDUP_TRY(store::fs::remove_file(path));
  // What a copy of a placeholder names is the original's.
  if (shared && state.is_copy()) return Status::ok();
  bool any = shared;
  for (const store::StoreReport& report : found.reports) {
    for (const store::CommitRecord& record : report.records) {
      if (shared && record.identity != identity) continue;
      any = true;
      std::vector<Id128> left;
      for (const store::StoreEntry& entry : record.stores) {
        const bool here =
            std::any_of(found.stores.begin(), found.stores.end(),
                        [&](const service::StoreRef& store) { return store.uuid == entry.uuid; });
        if (!here) left.push_back(entry.uuid);
      }
      const service::Drop request{hints.store, record.identity, left};
      DEDUP_TRY(client.call(report.node, request).status());
    }
  }
  if (any) return Status::ok();
  return {Code::kNoSuchFile, path + ": no such file in the stores of this job's " +
                                 std::to_string(client.nodes()) + " nodes (" + hints.store + ")"};
}

}  // namespace

Status delete_name(JobFile& file) {
  DEDUP_ASSIGN(const service::OpenBeginReply begun,
               file.client().call(file.home, service::OpenBegin{file.path}));
  Status status;
  if (begun.known && begun.info.identity == file.identity()) {
    status = set_aside_as_deleted(file.client(), file.home, begun.info);
  }
  const service::OpenEnd end{file.path, false, {}, {}, false};
  const Status ended = file.client().call(file.home, end).status();
  return status.is_ok() ? ended : status;
}

Status delete_file(service::Client& client, const std::string& path, const hints::Hints& hints) {
  const NodeIndex home = service::file_home(path, client.nodes());
  // With the path's turn nobody opens or closes the file meanwhile.
  DEDUP_ASSIGN(const service::OpenBeginReply begun, client.call(home, service::OpenBegin{path}));
  Status status;
  if (begun.known) {
    status = set_aside_as_deleted(client, home, begun.info);
  } else {
    const auto state = store::look_at(path);
    status =
        state.is_ok() ? drop_everywhere(client, path, hints, *state, begun.aside) : state.status();
  }
  const Status end = client.call(home, service::OpenEnd{path, false, {}, {}, false}).status();
  return status.is_ok() ? end : status;
}

}  // namespace dedup::engine
