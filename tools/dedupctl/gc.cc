// gc: frees what nothing refers to any more, now rather than when a store runs out of room.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/codec.h"
#include "store/unnamed.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

// What is done with a file, on every store that has something of it.
enum class Action : std::uint8_t {
  kCollect,  // older generations and attempts that came to nothing go
  kDrop      // all of it goes: it was deleted, or nothing of it is committed anywhere
};

struct Step {
  Action action = Action::kCollect;
  Id128 identity;
  Id128 keep;  // kCollect: the attempt that stays
};

struct Freed {
  std::uint64_t bytes = 0;  // that the stores have more free
  std::uint64_t files = 0;  // that were dropped, each store's counted
  std::uint64_t in_use = 0;
};

bool is_on_all_its_stores(const Session& session, const FileRow& file) {
  const auto standings = session.catalog.standings(file);
  return std::all_of(standings.begin(), standings.end(),
                     [](Standing standing) { return standing == Standing::kHere; });
}

// Whether an attempt that is prepared on some store may be committed on one that is not here.
bool may_be_committed(const Session& session, const FileRow& file) {
  for (const FileOnStore& on : file.on) {
    if (!on.survey.damaged.empty()) return true;
    for (const store::CommitRecord& record : on.survey.prepared) {
      for (const store::StoreEntry& entry : record.stores) {
        if (session.catalog.store_of(entry.uuid) == nullptr) return true;
      }
    }
  }
  return false;
}

// On rank 0. `notes`: what is left alone, and why.
std::vector<Step> plan_steps(const Session& session, std::vector<std::string>& notes) {
  std::vector<Step> steps;
  for (const FileRow& file : session.catalog.files) {
    const std::string name = file.path.empty() ? file.identity.hex() : file.path;
    if (file.deleted) {
      steps.push_back({Action::kDrop, file.identity, {}});
    } else if (file.exists()) {
      const bool is_unnamed = file.at_path == AtPath::kNothing || file.at_path == AtPath::kOther;
      if (is_unnamed && !session.options.unnamed) {
        notes.push_back(name +
                        ": its name was removed, or moved to another directory; --unnamed "
                        "frees its space");
      }
      if (is_on_all_its_stores(session, file) && !may_be_committed(session, file)) {
        steps.push_back({Action::kCollect, file.identity, file.record().attempt});
      } else {
        notes.push_back(name +
                        ": left as it is, since stores of it are missing or behind: heal it");
      }
    } else if (file.chosen_status.code() == Code::kConflict) {
      notes.push_back(file.chosen_status.message());
    } else if (may_be_committed(session, file)) {
      notes.push_back(name +
                      ": left as it is, since it may be committed on a store that is not here");
    } else {
      steps.push_back({Action::kDrop, file.identity, {}});
    }
  }
  return steps;
}

Bytes encode(const std::vector<Step>& steps) {
  Encoder e;
  for (const Step& step : steps) {
    e.put(static_cast<std::uint8_t>(step.action));
    e.put(step.identity);
    e.put(step.keep);
  }
  return e.take();
}

std::vector<Step> decode(const Bytes& bytes) {
  std::vector<Step> steps;
  for (Decoder d(bytes); !d.at_end();) {
    Step step;
    step.action = static_cast<Action>(d.get<std::uint8_t>());
    step.identity = d.get_id();
    step.keep = d.get_id();
    steps.push_back(step);
  }
  return steps;
}

// With the lock for writing held: whether the store still is as the catalog says.
Status check_unchanged(const store::Store& store, const Step& step) {
  DEDUP_ASSIGN(const store::CommitRecord newest, store.newest(step.identity));
  if (newest.attempt == step.keep) return Status::ok();
  return {Code::kFileInUse, "another generation was committed meanwhile"};
}

// Collective. All stores are locked before any is changed: a job that has some of them may be about
// to commit.
void collect(Session& session, const Step& step, Freed& freed) {
  Status status;
  std::vector<std::unique_ptr<store::Store::Lock>> locks;
  std::vector<store::Store*> stores;
  for (LocalStore& local : session.local.stores) {
    auto lock = local.store->lock_for_writing(step.identity);
    if (lock.status().code() == Code::kNoSuchFile) continue;
    if (lock.is_ok()) {
      locks.push_back(std::move(*lock));
      stores.push_back(local.store.get());
    }
    Status mine = lock.is_ok() ? check_unchanged(*local.store, step) : lock.status();
    // A store that only another generation's record is on is none of this one's.
    if (mine.code() == Code::kNotFound) mine = Status::ok();
    if (!mine.is_ok() && status.is_ok()) status = mine.with_context("node " + local.node);
  }
  status = session.group.agree(status);
  for (store::Store* store : stores) {
    if (!status.is_ok()) break;
    const auto bytes = store->collect(step.identity, step.keep, {}, true);
    if (bytes.is_ok()) freed.bytes += *bytes;
  }
  if (!status.is_ok() && session.is_root()) ++freed.in_use;
}

void drop(Session& session, const Step& step, Freed& freed) {
  for (LocalStore& local : session.local.stores) {
    const auto before = local.store->free_bytes();
    const auto there = local.store->identities();
    const bool is_there =
        there.is_ok() && std::find(there->begin(), there->end(), step.identity) != there->end();
    if (!is_there) continue;
    const Status dropped = local.store->drop_file(step.identity);
    if (dropped.code() == Code::kFileInUse) ++freed.in_use;
    const auto after = local.store->free_bytes();
    if (!dropped.is_ok()) continue;
    ++freed.files;
    if (before.is_ok() && after.is_ok() && *after > *before) freed.bytes += *after - *before;
  }
}

// What a crash interrupted.
Status finish_drops(Session& session) {
  for (LocalStore& local : session.local.stores) {
    DEDUP_TRY(store::Store::open(local.store->directory(), true).status());
  }
  return Status::ok();
}

// Marks no longer name the stores that are here: these have dropped what they are about.
Status shorten_marks(Session& session) {
  Encoder mine;
  for (const LocalStore& local : session.local.stores) mine.put(local.store->uuid());
  Encoder gathered;
  for (const Bytes& bytes : session.group.gather(mine.bytes())) {
    gathered.put_raw(bytes.data(), bytes.size());
  }
  Bytes all = gathered.take();
  session.group.broadcast(0, all);
  std::set<Id128> here;
  for (Decoder d(all); !d.at_end();) here.insert(d.get_id());
  for (LocalStore& local : session.local.stores) {
    DEDUP_ASSIGN(const auto marks, local.store->marks());
    for (const Id128& identity : marks) {
      auto left = local.store->mark_stores(identity);
      if (!left.is_ok()) continue;
      const std::size_t before = left->size();
      std::erase_if(*left, [&](const Id128& store) { return here.contains(store); });
      if (left->size() < before) DEDUP_TRY(local.store->put_mark(identity, *left));
    }
  }
  return Status::ok();
}

// Files that nothing names any more: their space, found by what it adds to the free one.
Status drop_unnamed(Session& session, Freed& freed) {
  for (LocalStore& local : session.local.stores) {
    DEDUP_ASSIGN(const std::uint64_t before, local.store->free_bytes());
    DEDUP_ASSIGN(const std::size_t dropped, store::drop_unnamed(*local.store, {}));
    DEDUP_ASSIGN(const std::uint64_t after, local.store->free_bytes());
    freed.files += dropped;
    if (dropped > 0 && after > before) freed.bytes += after - before;
  }
  return Status::ok();
}

}  // namespace

ExitCode gc(Session& session) {
  std::vector<std::string> notes;
  std::vector<Step> steps;
  if (session.is_root()) {
    print_troubles(session);
    steps = plan_steps(session, notes);
  }
  Bytes bytes = encode(steps);
  session.group.broadcast(0, bytes);
  Freed freed;
  Status status =
      session.group.agree(session.options.unnamed ? drop_unnamed(session, freed) : Status::ok());
  if (status.is_ok()) status = session.group.agree(finish_drops(session));
  bool in_use = false;
  for (const Step& step : decode(bytes)) {
    const std::uint64_t before = freed.in_use;
    step.action == Action::kCollect ? collect(session, step, freed) : drop(session, step, freed);
    in_use = in_use || freed.in_use > before;
  }
  std::uint64_t skipped = in_use ? 1 : 0;
  session.group.sum({&skipped, 1});
  if (skipped == 0 && status.is_ok()) status = session.group.agree(shorten_marks(session));
  for (std::uint64_t* number : {&freed.bytes, &freed.files, &freed.in_use}) {
    session.group.sum({number, 1});
  }
  if (!session.is_root()) return kFine;
  if (session.options.json) {
    Json out = json_head(session, "gc");
    out["freed_bytes"] = freed.bytes;
    out["dropped_files"] = freed.files;
    out["files_in_use"] = freed.in_use;
    out["notes"] = notes;
    print(out);
  } else {
    for (const std::string& note : notes) print(note + "\n");
    print(fmt::format("freed {}, dropped {} files{}\n", human(freed.bytes), freed.files,
                      freed.in_use == 0 ? "" : fmt::format(", {} are in use", freed.in_use)));
  }
  if (!status.is_ok()) return fail(session, status);
  return session.code_of_stores();
}

}  // namespace dedup::ctl
