// rm: removes files from the stores, and their placeholders.
#include <fmt/format.h>

#include <algorithm>

#include "base/codec.h"
#include "store/deletion.h"
#include "store/fs.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

// What rank 0 decides for one file.
struct Removal {
  Id128 identity;
  bool with_mark = true;           // else this store's part only goes, as on some nodes
  std::vector<Id128> stores;       // that drop it
  std::vector<Id128> stores_left;  // that are not here and will have to

  Bytes encode() const {
    Encoder e;
    e.put(identity);
    e.put(static_cast<std::uint8_t>(with_mark));
    for (const auto* list : {&stores, &stores_left}) {
      e.put(static_cast<std::uint32_t>(list->size()));
      for (const Id128& store : *list) e.put(store);
    }
    return e.take();
  }
  static Removal decode(const Bytes& bytes) {
    Decoder d(bytes);
    Removal out;
    out.identity = d.get_id();
    out.with_mark = d.get<std::uint8_t>() != 0;
    for (auto* list : {&out.stores, &out.stores_left}) {
      list->resize(d.get_count(16));
      for (Id128& store : *list) store = d.get_id();
    }
    return out;
  }
};

Status in_use(const std::string& name, const std::string& node) {
  return {Code::kFileInUse, name + ": a job has it open on node " + node};
}

// The stores of which --on has the nodes.
Result<std::vector<Id128>> stores_of_nodes(const Session& session, const FileRow& file) {
  std::vector<Id128> stores;
  for (const std::string& node : session.options.nodes) {
    bool found = false;
    for (const FileOnStore& on : file.on) {
      const StoreRow& row = session.catalog.stores[on.store];
      if (row.node != node && row.survey.uuid.hex() != node) continue;
      stores.push_back(row.survey.uuid);
      found = true;
    }
    if (!found) return Status(Code::kNoSuchFile, "node " + node + " has nothing of " + file.path);
  }
  return stores;
}

Result<Removal> plan_removal(const Session& session, const FileRow& file) {
  Removal removal;
  removal.identity = file.identity;
  for (const FileOnStore& on : file.on) {
    if (on.survey.writing || on.survey.reading) {
      return in_use(file.path, session.catalog.stores[on.store].node);
    }
    removal.stores.push_back(session.catalog.stores[on.store].survey.uuid);
    for (const store::CommitRecord& record : on.survey.newest) {
      for (const store::StoreEntry& entry : record.stores) {
        const bool is_new = session.catalog.store_of(entry.uuid) == nullptr &&
                            std::find(removal.stores_left.begin(), removal.stores_left.end(),
                                      entry.uuid) == removal.stores_left.end();
        if (is_new) removal.stores_left.push_back(entry.uuid);
      }
    }
  }
  if (!session.options.nodes.empty()) {
    removal.with_mark = false;
    removal.stores_left.clear();
    DEDUP_ASSIGN(removal.stores, stores_of_nodes(session, file));
  }
  return removal;
}

// On rank 0: takes the placeholder away, which stands where the user says or where it was put.
Status remove_placeholder(const std::string& name, const FileRow& file) {
  std::vector<std::string> paths{file.path};
  Id128 ignored;
  const std::string text = without_prefix(name);
  if (!Id128::parse(text, ignored)) paths.insert(paths.begin(), absolute_path(text));
  for (const std::string& path : paths) {
    const auto state = store::look_at(path);
    const bool is_its = state.is_ok() && state->kind == store::PathState::Kind::kPlaceholder &&
                        state->placeholder.identity == file.identity;
    if (!is_its) continue;
    if (state->is_copy()) {
      return {Code::kUnsupported, path + ": is a copy of the placeholder at " +
                                      state->placeholder.path + ": rm removes it, and no data"};
    }
    return store::fs::remove_file(path);
  }
  return Status::ok();
}

// Collective. Every store is locked before anything is removed, so that nothing is if a job has the
// file open for writing anywhere.
Status remove_everywhere(Session& session, const std::string& name, const FileRow* file,
                         const Removal& removal) {
  std::vector<LocalStore*> mine;
  for (LocalStore& local : session.local.stores) {
    const auto& stores = removal.stores;
    if (std::find(stores.begin(), stores.end(), local.store->uuid()) != stores.end()) {
      mine.push_back(&local);
    }
  }
  Status status;
  std::vector<std::unique_ptr<store::Store::Lock>> locks;
  for (LocalStore* local : mine) {
    auto lock = local->store->lock_for_writing(removal.identity);
    if (lock.is_ok()) {
      locks.push_back(std::move(*lock));
    } else if (lock.status().code() == Code::kFileInUse) {
      status = in_use(removal.identity.hex(), local->node);
    } else if (lock.status().code() != Code::kNoSuchFile) {
      status = lock.status();
    }
  }
  DEDUP_TRY(session.group.agree(status));
  if (session.is_root() && removal.with_mark) status = remove_placeholder(name, *file);
  DEDUP_TRY(session.group.agree(status));
  locks.clear();
  for (LocalStore* local : mine) {
    const Status dropped =
        removal.with_mark
            ? store::drop_with_mark(*local->store, removal.identity, removal.stores_left)
            : local->store->drop_file(removal.identity);
    if (!dropped.is_ok() && status.is_ok()) status = dropped.with_context("node " + local->node);
  }
  return session.group.agree(status);
}

Json json_of_removal(const Session& session, const FileRow& file, const Removal& removal) {
  Json nodes = Json::array();
  for (const Id128& store : removal.stores) nodes.push_back(session.catalog.store_of(store)->node);
  Json left = Json::array();
  for (const Id128& store : removal.stores_left) left.push_back(store.hex());
  return {{"path", file.path},
          {"identity", file.identity.hex()},
          {"removed_from", std::move(nodes)},
          {"stores_left", std::move(left)}};
}

}  // namespace

ExitCode rm(Session& session) {
  Json done = Json::array();
  ExitCode code = session.code_of_stores();
  if (session.is_root()) print_troubles(session);
  for (const std::string& name : session.options.files) {
    Removal removal;
    Status status;
    const FileRow* file = nullptr;
    if (session.is_root()) {
      const auto found = session.catalog.find(name);
      status = found.status();
      if (status.is_ok()) {
        file = *found;
        auto planned = plan_removal(session, *file);
        status = planned.status();
        if (status.is_ok()) removal = std::move(*planned);
      }
    }
    status = session.group.agree(status);
    if (status.is_ok()) {
      Bytes bytes = removal.encode();
      session.group.broadcast(0, bytes);
      removal = Removal::decode(bytes);
      status = remove_everywhere(session, name, file, removal);
    }
    if (!status.is_ok()) {
      const ExitCode failed = fail(session, status);
      if (code == kFine) code = failed;
      continue;
    }
    if (!session.is_root()) continue;
    if (session.options.json) {
      done.push_back(json_of_removal(session, *file, removal));
      continue;
    }
    for (const Id128& left : removal.stores_left) {
      std::fprintf(stderr, "dedupctl: %s: store %s is not here; it drops the file when it is\n",
                   file->path.c_str(), left.hex().c_str());
    }
  }
  if (session.is_root() && session.options.json) {
    Json out = json_head(session, "rm");
    out["files"] = std::move(done);
    print(out);
  }
  return code;
}

}  // namespace dedup::ctl
