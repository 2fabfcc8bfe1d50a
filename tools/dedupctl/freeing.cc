#include "tools/dedupctl/freeing.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/fields.h"
#include "base/text.h"
#include "store/kept.h"
#include "store/replacement.h"

namespace dedup::ctl {
namespace {

// What is done with a file, on every store here that has something of it.
enum class Action : std::uint8_t {
  kNothing,
  kTidy,     // all generations and attempts but those in `keep` go, and logs
  kCollect,  // all but the newest, which is in `keep`, and those in `kept`; and logs
  kDrop      // all of it goes: it was deleted, or nothing of it is committed anywhere
};
constexpr Action last_of(Action) {
  return Action::kDrop;
}

struct Step {
  Action action = Action::kNothing;
  Id128 identity;
  std::vector<Id128> keep;
  std::vector<store::KeptGeneration> kept{};  // kCollect

  bool operator==(const Step&) const = default;
};

bool is_on_all_its_stores(const Catalog& catalog, const FileRow& file) {
  const auto standings = catalog.standings(file);
  return std::all_of(standings.begin(), standings.end(),
                     [](Standing standing) { return standing == Standing::kHere; });
}

// Whether an attempt that is only prepared here may be committed on a store that is not.
bool may_be_committed(const Catalog& catalog, const store::CommitRecord& record) {
  return std::any_of(
      record.stores.begin(), record.stores.end(),
      [&](const store::StoreEntry& entry) { return catalog.store_of(entry.uuid) == nullptr; });
}

bool may_be_committed(const Catalog& catalog, const FileRow& file) {
  return std::any_of(file.on.begin(), file.on.end(), [&](const FileOnStore& on) {
    const auto& prepared = on.survey.prepared;
    return !on.survey.damaged.empty() ||
           std::any_of(prepared.begin(), prepared.end(), [&](const store::CommitRecord& record) {
             return may_be_committed(catalog, record);
           });
  });
}

// Of a file whose generations all stay: what jobs left that were killed.
Step tidy(const Catalog& catalog, const FileRow& file) {
  std::set<Id128> keep;
  bool is_tidy = true;
  for (const FileOnStore& on : file.on) {
    is_tidy = is_tidy && on.survey.logs == 0 && on.survey.unfinished == 0;
    keep.insert(on.survey.committed.begin(), on.survey.committed.end());
    for (const store::CommitRecord& record : on.survey.prepared) {
      if (may_be_committed(catalog, record)) keep.insert(record.attempt);
    }
  }
  // What cannot be read may be any of them.
  const bool is_damaged = std::any_of(file.on.begin(), file.on.end(), [](const FileOnStore& on) {
    return !on.survey.damaged.empty();
  });
  if (is_tidy || is_damaged) return {};
  return {Action::kTidy, file.identity, {keep.begin(), keep.end()}};
}

bool is_dropped(const FileRow& file, const std::set<Id128>& given_up) {
  return file.deleted || (is_unnamed(file) && given_up.contains(file.identity));
}

// Whether a kept generation's file says that it is kept no more, or is no more itself, as far as
// can be told here.
bool is_kept_no_more(const Catalog& catalog, const FileRow& kept, const std::set<Id128>& given_up) {
  const FileRow* const file = catalog.row_of(kept.record().kept_of.file);
  if (file == nullptr) {
    const auto is_marked = [&](const store::Mark& mark) {
      return mark.identity == kept.record().kept_of.file;
    };
    return is_on_all_its_stores(catalog, kept) ||
           std::any_of(catalog.stores.begin(), catalog.stores.end(), [&](const StoreRow& store) {
             return std::any_of(store.survey.marks.begin(), store.survey.marks.end(), is_marked);
           });
  }
  if (is_dropped(*file, given_up)) return true;
  // A job may have kept it since the file was looked at.
  const bool is_older = file->exists() && file->record().number > kept.record().kept_of.number;
  if (!is_older) return false;
  const auto& all = file->record().kept;
  return std::none_of(all.begin(), all.end(), [&](const store::KeptGeneration& one) {
    return store::kept_identity(file->identity, one.attempt) == kept.identity;
  });
}

// What is to be done with a file as it is. `note`: what is left alone, and why.
Step plan_step(const Catalog& catalog, const FileRow& file, const std::set<Id128>& given_up,
               std::string& note) {
  const bool goes = file.is_kept() && is_kept_no_more(catalog, file, given_up);
  if (goes || is_dropped(file, given_up)) return {Action::kDrop, file.identity, {}};
  if (file.exists()) {
    if (is_unnamed(file)) {
      note = "its placeholder was here last, and is found nowhere: removed, or moved elsewhere (" +
             file.identity.hex() + ", " + std::to_string(file.record().size) +
             " bytes); see --search, and --unnamed to free its space";
    }
    if (is_on_all_its_stores(catalog, file) && !may_be_committed(catalog, file)) {
      return {Action::kCollect, file.identity, {file.record().attempt}, file.record().kept};
    }
    if (!note.empty()) note += "; ";
    note += "left as it is, since stores of it are missing or behind: heal it";
  } else if (file.chosen_status.code() == Code::kConflict) {
    note = file.chosen_status.message();
  } else if (may_be_committed(catalog, file)) {
    note = "left as it is, since it may be committed on a store that is not here";
  } else {
    return {Action::kDrop, file.identity, {}};
  }
  return tidy(catalog, file);
}

// Collective: the same steps on all ranks.
std::vector<Step> plan_steps(Upkeep& upkeep, const std::set<Id128>& given_up, Freed& freed) {
  std::vector<Step> steps;
  for (const FileRow& file : upkeep.catalog.files) {
    std::string note;
    Step step = plan_step(upkeep.catalog, file, given_up, note);
    if (!note.empty()) freed.notes.push_back(name_of(file) + ": " + note);
    if (step.action != Action::kNothing) steps.push_back(std::move(step));
  }
  Bytes bytes = encoded(steps);
  upkeep.ranks.broadcast(bytes, 0);
  return decoded<std::vector<Step>>(bytes).value_or(std::vector<Step>{});
}

Result<std::uint64_t> apply(store::Store& store, const Step& step,
                            std::unique_ptr<store::Store::Lock> lock) {
  if (step.action == Action::kDrop) return store.drop_file(step.identity, std::move(lock));
  if (step.action == Action::kTidy) return store.collect(step.identity, step.keep, {}, true);
  return store::collect_older(store, step.identity, step.keep.front(), step.kept,
                              {.with_logs = true});
}

// Collective.
Status take_step(Upkeep& upkeep, const Step& step, const std::set<Id128>& given_up, Freed& freed) {
  const bool drops = step.action == Action::kDrop;
  std::string name = step.identity.hex();
  Change change;
  change.identity = step.identity;
  // Who reads a generation keeps that one, and no more, from being collected.
  change.hold = drops ? Change::Hold::kWhole : Change::Hold::kWriting;
  change.decide = [&](const FileRow& now) {
    name = name_of(now);
    std::string ignored;
    const bool same = plan_step(upkeep.catalog, now, given_up, ignored) == step;
    return same ? Status::ok() : changed_meanwhile();
  };
  change.apply = [&](LocalStore& local, std::unique_ptr<store::Store::Lock> lock) -> Status {
    DEDUP_ASSIGN(const std::uint64_t bytes, apply(*local.store, step, std::move(lock)));
    freed.bytes += bytes;
    if (drops) ++freed.files;
    return Status::ok();
  };
  const Status status = carry_out(upkeep, change);
  if (status.code() != Code::kFileInUse) return status;
  if (upkeep.is_root()) {
    ++freed.in_use;
    freed.notes.push_back(name + ": left as it is: " + status.message());
  }
  return Status::ok();
}

// What killed jobs left beside the files' names. One directory that cannot be read is no reason to
// leave the others.
void remove_leftovers(const Catalog& catalog) {
  std::set<std::string> directories;
  for (const FileRow& file : catalog.files) {
    for (const FileOnStore& on : file.on) {
      for (const auto* records : {&on.survey.newest, &on.survey.prepared}) {
        for (const store::CommitRecord& record : *records) {
          directories.insert(store::fs::directory_of(record.path));
        }
      }
    }
  }
  for (const std::string& directory : directories) (void)store::remove_leftovers(directory);
}

// What a crash interrupted.
Status finish_drops(const LocalStores& local) {
  for (const LocalStore& one : local.stores) {
    DEDUP_TRY(store::Store::open(one.store->place(), true).status());
  }
  return Status::ok();
}

std::string why(store::Store::Mover::Reason reason) {
  using Reason = store::Store::Mover::Reason;
  switch (reason) {
    case Reason::kNotCommitted:
      return "no committed generation names them: a job is writing them, or was killed";
    case Reason::kOpen:
      return "a job has them open";
    case Reason::kOtherBelow:
      return "slower tiers have others with their numbers: the tier is an old copy of itself, "
             "and may go if dedupctl check finds every chunk without it";
    case Reason::kNoRoom:
      return "no slower tier has room for them";
  }
  return "";
}

// What a job has not done: from tiers that are too full, or are leaving. `notes`: what stays.
Status move_down(const LocalStores& local, Freed& freed, std::vector<std::string>& notes) {
  for (const LocalStore& one : local.stores) {
    if (!one.store->is_overfull()) continue;
    auto mover = one.store->move_down();
    if (mover.status().code() == Code::kFileInUse) {
      notes.push_back(mover.status().message());
      continue;
    }
    DEDUP_TRY(mover.status());
    for (bool done = false; !done;) {
      DEDUP_ASSIGN(const store::Store::Mover::Moved moved, (*mover)->step());
      freed.moved_bytes += moved.bytes;
      done = moved.done;
    }
    for (const store::Store::Mover::Stays& stays : (*mover)->stays()) {
      notes.push_back(
          fmt::format("{}, which dedup_store does not name any more: {} in {} segments "
                      "stay: {}",
                      stays.directory, human(stays.bytes), stays.segments, why(stays.reason)));
    }
  }
  return Status::ok();
}

// Collective: all ranks' notes on rank 0.
void gather_notes(Upkeep& upkeep, const std::vector<std::string>& mine, Freed& freed) {
  for (const Bytes& bytes : upkeep.ranks.gather(encoded(mine))) {
    auto notes = decoded<std::vector<std::string>>(bytes).value_or(std::vector<std::string>{});
    std::move(notes.begin(), notes.end(), std::back_inserter(freed.notes));
  }
}

// All ranks' ids on all of them.
std::set<Id128> unite(const Ranks& ranks, const std::set<Id128>& mine) {
  std::set<Id128> united;
  for (const Bytes& bytes : ranks.gather(encoded(mine))) {
    united.merge(decoded<std::set<Id128>>(bytes).value_or(std::set<Id128>{}));
  }
  Bytes bytes = encoded(united);
  ranks.broadcast(bytes, 0);
  return decoded<std::set<Id128>>(bytes).value_or(std::set<Id128>{});
}

// Collective. Takes out of the marks the stores that are here and have nothing of the file (any
// more). One that gets it later would be another file: identities are not used twice.
Status shorten_marks(Upkeep& upkeep) {
  std::set<Id128> marked;
  Status status;
  for (const LocalStore& one : upkeep.local.stores) {
    const auto marks = one.store->marks();
    if (status.is_ok()) status = marks.status();
    if (marks.is_ok()) marked.insert(marks->begin(), marks->end());
  }
  DEDUP_TRY(upkeep.ranks.agree(status));
  for (const Id128& identity : unite(upkeep.ranks, marked)) {
    std::set<Id128> done;
    for (const LocalStore& one : upkeep.local.stores) {
      const auto is_there = one.store->has_file(identity);
      if (is_there.is_ok() && !*is_there) done.insert(one.store->uuid());
    }
    done = unite(upkeep.ranks, done);
    for (const LocalStore& one : upkeep.local.stores) {
      const Status shortened = one.store->shorten_mark(
          identity, [&](const Id128& store) { return done.contains(store); });
      // One that cannot be read stays.
      if (status.is_ok() && shortened.code() != Code::kCorrupt) status = shortened;
    }
  }
  return upkeep.ranks.agree(status);
}

}  // namespace

bool is_unnamed(const FileRow& file) {
  return file.at_path == AtPath::kNothing || file.at_path == AtPath::kOther;
}

Status free_space(Upkeep& upkeep, const std::set<Id128>& given_up, Freed& freed) {
  Status status = upkeep.ranks.agree(finish_drops(upkeep.local));
  for (const Step& step : plan_steps(upkeep, given_up, freed)) {
    const Status taken = take_step(upkeep, step, given_up, freed);
    if (status.is_ok()) status = taken;
  }
  if (upkeep.is_root()) remove_leftovers(upkeep.catalog);
  const Status shortened = shorten_marks(upkeep);
  if (status.is_ok()) status = shortened;
  std::vector<std::string> notes;
  const Status moved = upkeep.ranks.agree(move_down(upkeep.local, freed, notes));
  if (status.is_ok()) status = moved;
  gather_notes(upkeep, notes, freed);
  for (std::uint64_t* number : {&freed.bytes, &freed.files, &freed.in_use, &freed.moved_bytes}) {
    upkeep.ranks.sum({number, 1});
  }
  return status;
}

}  // namespace dedup::ctl
