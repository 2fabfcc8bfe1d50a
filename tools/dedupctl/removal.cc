#include "tools/dedupctl/removal.h"

#include <algorithm>

#include "base/fields.h"
#include "store/deletion.h"
#include "store/fs.h"
#include "store/kept.h"

namespace dedup::ctl {
namespace {

bool contains(const std::vector<Id128>& ids, const Id128& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// The stores of `nodes`.
Result<std::vector<Id128>> stores_of(const Catalog& catalog, const FileRow& file,
                                     const std::vector<std::string>& nodes) {
  std::vector<Id128> stores;
  for (const std::string& node : nodes) {
    bool found = false;
    for (const FileOnStore& on : file.on) {
      const StoreRow& row = catalog.stores[on.store];
      if (row.node != node && row.survey.uuid.hex() != node) continue;
      stores.push_back(row.survey.uuid);
      found = true;
    }
    if (!found) return Status(Code::kNoSuchFile, "node " + node + " has nothing of " + file.path);
  }
  return stores;
}

Result<Removal> plan_removal(const Catalog& catalog, const FileRow& file,
                             const std::vector<std::string>& nodes) {
  Removal removal;
  removal.identity = file.identity;
  removal.path = file.path;
  for (const FileOnStore& on : file.on) {
    const Id128& store = catalog.stores[on.store].survey.uuid;
    removal.stores.push_back(store);
    for (const store::CommitRecord& record : on.survey.newest) {
      removal.generations.emplace_back(store, record.attempt);
      for (const store::StoreEntry& entry : record.stores) {
        const bool is_new =
            catalog.store_of(entry.uuid) == nullptr && !contains(removal.stores_left, entry.uuid);
        if (is_new) removal.stores_left.push_back(entry.uuid);
      }
    }
  }
  if (!nodes.empty()) {
    removal.with_mark = false;
    removal.stores_left.clear();
    DEDUP_ASSIGN(removal.stores, stores_of(catalog, file, nodes));
  }
  return removal;
}

// Where the file's placeholder is: where the user says; of an identity, where it stands. Empty:
// nowhere.
Result<std::string> find_placeholder(const std::string& name, const FileRow& file) {
  Id128 ignored;
  const std::string text = without_prefix(name);
  const bool by_path = !Id128::parse(text, ignored);
  std::vector<std::string> paths{by_path || file.stands_at.empty() ? file.path : file.stands_at};
  if (by_path) paths.insert(paths.begin(), absolute_path(text));
  for (const std::string& path : paths) {
    const auto state = store::look_at(path);
    const bool is_its = state.is_ok() && state->kind == store::PathState::Kind::kPlaceholder &&
                        state->placeholder.identity == file.identity;
    if (!is_its) continue;
    if (!state->is_copy()) return path;
    return Status(Code::kUnsupported, path + ": is a copy of the placeholder at " +
                                          state->placeholder.path + ": rm removes it, and no data");
  }
  if (by_path && file.at_path == AtPath::kMoved) {
    return Status(Code::kNoSuchFile,
                  paths.front() + ": was moved to " + file.stands_at +
                      "; give that name, or its identity: " + file.identity.hex());
  }
  return std::string();
}

Result<Removal> plan(const Catalog& catalog, const FileRow& file, const RemovalRequest& request) {
  DEDUP_ASSIGN(Removal removal, plan_removal(catalog, file, request.nodes));
  // No placeholder leads to an older generation.
  if (!file.is_kept()) {
    DEDUP_ASSIGN(removal.placeholder, find_placeholder(request.name, file));
  }
  return removal;
}

// With all stores locked: whether it is what the user means, and was looked at; then its name goes
// first. If this process is killed in between, it is a file that nothing names.
Status decide(const Upkeep& upkeep, const RemovalRequest& request, const Removal& planned,
              const FileRow& now) {
  const auto named = upkeep.catalog.find(request.name, request.generation);
  if (!named.is_ok() || (*named)->identity != planned.identity) return changed_meanwhile();
  const auto again = plan(upkeep.catalog, now, request);
  if (!again.is_ok() || *again != planned) return changed_meanwhile();
  if (!planned.with_mark || planned.placeholder.empty()) return Status::ok();
  return store::fs::remove_file(planned.placeholder);
}

Result<Removal> plan_by_name(const Catalog& catalog, const RemovalRequest& request) {
  DEDUP_ASSIGN(const FileRow* const file, catalog.find(request.name, request.generation));
  return plan(catalog, *file, request);
}

}  // namespace

Result<Removal> remove_file(Upkeep& upkeep, const RemovalRequest& request) {
  Result<Removal> planned = Removal{};
  if (upkeep.is_root()) planned = plan_by_name(upkeep.catalog, request);
  Removal removal;
  if (planned.is_ok()) removal = *planned;
  DEDUP_TRY(upkeep.ranks.share(planned.status(), removal));
  Change change;
  change.identity = removal.identity;
  change.decide = [&](const FileRow& now) { return decide(upkeep, request, *planned, now); };
  change.apply = [&](LocalStore& local, std::unique_ptr<store::Store::Lock> lock) -> Status {
    store::Store& store = *local.store;
    if (!contains(removal.stores, store.uuid())) return Status::ok();
    if (removal.with_mark) {
      return store::drop_with_mark(store, removal.identity, removal.stores_left, std::move(lock))
          .status();
    }
    DEDUP_ASSIGN(const auto kept, store::kept_of(store, removal.identity));
    DEDUP_TRY(store.drop_file(removal.identity, std::move(lock)).status());
    return store::drop_kept(store, kept);
  };
  DEDUP_TRY(carry_out(upkeep, change).with_context(request.name));
  return planned;
}

}  // namespace dedup::ctl
