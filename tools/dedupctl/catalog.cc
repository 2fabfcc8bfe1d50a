#include "tools/dedupctl/catalog.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/fields.h"
#include "store/fs.h"
#include "store/kept.h"
#include "store/replacement.h"
#include "tools/dedupctl/whereabouts.h"

namespace dedup::ctl {
namespace {

constexpr std::string_view kPrefix = "dedup:";
constexpr const char* kImpossible = "what another rank sent of its stores cannot be";

// What a rank says of its stores.
struct SurveyedStore {
  std::string node;
  store::StoreSurvey survey;
};
struct Surveyed {
  std::vector<Trouble> troubles;
  std::vector<SurveyedStore> stores;
};

// The surveys of a rank's stores.
using Surveys = std::vector<store::FileSurvey*>;

Surveys surveys_of(std::vector<SurveyedStore>& stores) {
  Surveys surveys;
  for (SurveyedStore& store : stores) {
    for (store::FileSurvey& file : store.survey.files) surveys.push_back(&file);
  }
  return surveys;
}

template <typename Each>
void for_each_record(const Surveys& surveys, const Each& each) {
  for (store::FileSurvey* const survey : surveys) {
    for (store::SharedRecord& record : survey->newest) each(record);
    for (store::SharedRecord& record : survey->prepared) each(record);
  }
}

// Collective. Surveys go from rank to rank with digests of the records that they name: this gives
// rank 0 each of these records, from the lowest rank that has it. `mine`: this rank's, as they are
// here; `all`: on rank 0, of each rank, as they came. kInternal on rank 0, where some rank's answer
// cannot be: what it named is left out.
Status complete_records(const Ranks& ranks, const Surveys& mine, const std::vector<Surveys>& all) {
  store::KnownRecords known;
  for_each_record(mine, [&](const store::SharedRecord& record) { known.add(record); });
  std::map<store::RecordDigest, std::uint32_t> lacking;
  std::uint32_t rank = 0;
  for (const Surveys& surveys : all) {
    for_each_record(surveys, [&](store::SharedRecord& record) {
      if (!known.complete(record)) lacking.emplace(record.digest(), rank);
    });
    ++rank;
  }
  using Wanted = std::vector<std::pair<store::RecordDigest, std::uint32_t>>;
  Bytes wanted = encoded(Wanted(lacking.begin(), lacking.end()));
  ranks.broadcast(wanted, 0);
  std::vector<store::CommitRecord> told;
  for (const auto& [digest, from] : decoded<Wanted>(wanted).value_or(Wanted{})) {
    if (from != static_cast<std::uint32_t>(ranks.rank())) continue;
    if (const store::SharedRecord* const record = known.find(digest)) told.push_back(*record);
  }
  for (const Bytes& bytes : ranks.gather(encoded(told))) {
    auto records = decoded<std::vector<store::CommitRecord>>(bytes);
    for (store::CommitRecord& record : records.value_or(std::vector<store::CommitRecord>{})) {
      known.add(std::move(record));
    }
  }
  std::size_t missing = 0;
  const auto is_unknown = [&](store::SharedRecord& record) { return !known.complete(record); };
  for (const Surveys& surveys : all) {
    for (store::FileSurvey* const survey : surveys) {
      missing += std::erase_if(survey->newest, is_unknown);
      missing += std::erase_if(survey->prepared, is_unknown);
    }
  }
  return missing == 0 ? Status::ok() : Status(Code::kInternal, kImpossible);
}

// The lowest rank of several that have one store acts for it.
void share_stores(const Ranks& ranks, LocalStores& local) {
  std::vector<Id128> mine;
  for (const LocalStore& store : local.stores) mine.push_back(store.store->uuid());
  std::map<Id128, std::uint32_t> table;
  std::uint32_t rank = 0;
  for (const Bytes& bytes : ranks.gather(encoded(mine))) {
    for (const Id128& uuid : decoded<std::vector<Id128>>(bytes).value_or(std::vector<Id128>{})) {
      table.emplace(uuid, rank);
    }
    ++rank;
  }
  using Speakers = std::vector<std::pair<Id128, std::uint32_t>>;
  Bytes all = encoded(Speakers(table.begin(), table.end()));
  ranks.broadcast(all, 0);
  const Speakers told = decoded<Speakers>(all).value_or(Speakers{});
  const std::map<Id128, std::uint32_t> speakers(told.begin(), told.end());
  std::erase_if(local.stores, [&](const LocalStore& store) {
    return speakers.at(store.store->uuid()) != static_cast<std::uint32_t>(ranks.rank());
  });
}

// Records call a store by the node it was on, which says more than the name of its directory.
void name_stores(Catalog& catalog) {
  std::map<Id128, std::string> names;
  std::set<store::RecordDigest> seen;
  for (const StoreRow& row : catalog.stores) {
    for (const store::FileSurvey& file : row.survey.files) {
      for (const store::SharedRecord& record : file.newest) {
        if (!seen.insert(record.digest()).second) continue;
        for (const store::StoreEntry& entry : record->stores) names[entry.uuid] = entry.node;
      }
    }
  }
  for (StoreRow& row : catalog.stores) {
    const auto it = names.find(row.survey.uuid);
    if (it != names.end()) row.node = it->second;
  }
}

std::vector<store::StoreReport> reports_of(const Catalog& catalog, const FileRow& file) {
  std::vector<store::StoreReport> reports;
  for (std::size_t s = 0; s < catalog.stores.size(); ++s) {
    const StoreRow& row = catalog.stores[s];
    store::StoreReport report;
    report.node = static_cast<NodeIndex>(s);
    report.store = row.survey.uuid;
    report.node_name = row.node;
    for (const store::Mark& mark : row.survey.marks) report.deleted.push_back(mark.identity);
    reports.push_back(std::move(report));
  }
  for (const FileOnStore& on : file.on) reports[on.store].records = on.survey.newest;
  return reports;
}

void choose(const Catalog& catalog, const store::Placeholder* named, FileRow& file) {
  const auto reports = reports_of(catalog, file);
  auto choice = named != nullptr ? store::choose_named(file.path, *named, reports)
                                 : store::choose_generation(file.path, reports);
  file.chosen_status = choice.status();
  if (choice.is_ok()) {
    file.choice = std::move(*choice);
    if (!file.choice.exists) {
      file.chosen_status = Status(
          Code::kNotFound, "identity " + file.identity.hex() + ": nothing of it is committed");
    }
  }
}

// The newest record there is says where the file should be.
const store::CommitRecord* any_record(const FileRow& file) {
  const store::CommitRecord* newest = nullptr;
  for (const FileOnStore& on : file.on) {
    for (const store::CommitRecord& record : on.survey.newest) {
      if (newest == nullptr || record.number > newest->number) newest = &record;
    }
  }
  return newest;
}

// The file's own placeholder, if it stands there.
std::optional<store::Placeholder> its_placeholder(Result<store::PathState> state,
                                                  const FileRow& file) {
  const bool is_its = state.is_ok() && state->kind == store::PathState::Kind::kPlaceholder &&
                      !state->is_copy() && state->placeholder.identity == file.identity;
  return is_its ? std::optional(std::move(state->placeholder)) : std::nullopt;
}

// Whether a plain file at its path is what some store has noted.
bool is_cached_as(const store::Stamp& plain, const Id128& attempt, const FileRow& file) {
  return std::any_of(file.on.begin(), file.on.end(), [&](const FileOnStore& on) {
    const auto& note = on.survey.write_back.cached;
    return note && note->attempt == attempt && store::is_unchanged(note->plain, plain);
  });
}

// What stands at the path of a file whose nodes share a file system there. Its placeholder in
// `placed`, if it is there.
AtPath look_at_path(const Catalog& catalog, const store::CommitRecord& record, FileRow& file,
                    std::optional<store::Placeholder>& placed) {
  using Kind = store::PathState::Kind;
  auto state = catalog.settles ? store::settle_path(file.path) : store::look_at(file.path);
  if (!state.is_ok()) {
    file.at_path_text = state.status().message();
    return AtPath::kUnreadable;
  }
  if (state->kind == Kind::kNoDirectory) return AtPath::kNoDirectory;
  const Kind kind = state->kind;
  if (kind == Kind::kPlain && is_cached_as(state->stamp, record.attempt, file)) {
    return AtPath::kCached;
  }
  placed = its_placeholder(std::move(state), file);
  if (placed) return AtPath::kPlaceholder;
  const auto directory = store::directory_id(file.path);
  if (!directory.is_ok() || *directory != record.directory) {
    file.at_path_text =
        store::fs::directory_of(file.path) + ": another directory than at the commit";
    return AtPath::kUnreadable;
  }
  return kind == Kind::kNothing ? AtPath::kNothing : AtPath::kOther;
}

// Finds the placeholder, at the path or where it was moved to.
void look_for_placeholder(const Catalog& catalog, const store::CommitRecord& record,
                          Whereabouts& whereabouts, const std::string& perhaps_at, FileRow& file,
                          std::optional<store::Placeholder>& placed) {
  file.at_path = look_at_path(catalog, record, file, placed);
  if (placed || file.at_path == AtPath::kCached) {
    file.stands_at = file.path;
    return;
  }
  if (!perhaps_at.empty()) placed = its_placeholder(store::look_at(perhaps_at), file);
  if (placed) {
    file.at_path = AtPath::kMoved;
    file.stands_at = perhaps_at;
    return;
  }
  const auto found = whereabouts.find(record);
  if (!found.is_ok()) {
    file.at_path = AtPath::kUnreadable;
    file.at_path_text = found.status().message();
  } else if (*found != nullptr) {
    file.at_path = AtPath::kMoved;
    file.stands_at = (*found)->path;
    placed = (*found)->placeholder;
  }
}

// Fills in where the placeholder stands and, as that is what decides, which generation counts.
void look_and_choose(const Catalog& catalog, Whereabouts& whereabouts,
                     const std::string& perhaps_at, FileRow& file) {
  std::optional<store::Placeholder> placed;
  if (const store::CommitRecord* const record = any_record(file); record != nullptr) {
    file.path = record->path;
    if (record->directory != store::DirectoryId{}) {
      look_for_placeholder(catalog, *record, whereabouts, perhaps_at, file, placed);
    }
  }
  choose(catalog, placed ? &*placed : nullptr, file);
}

// Those in which some file of the stores was committed, or opened.
std::set<std::string> known_directories(const Catalog& catalog) {
  std::set<std::string> known;
  for (const StoreRow& row : catalog.stores) {
    known.insert(row.survey.directories.begin(), row.survey.directories.end());
    for (const store::FileSurvey& file : row.survey.files) {
      for (const store::CommitRecord& record : file.newest) {
        if (record.directory == store::DirectoryId{}) continue;
        known.insert(store::fs::directory_of(record.path));
      }
    }
  }
  return known;
}

// What a store says of one file.
struct FileNow {
  Id128 store;
  bool is_here = false;
  bool is_marked = false;
  store::FileSurvey survey;
};

Surveys surveys_of(std::vector<FileNow>& files) {
  Surveys surveys;
  for (FileNow& file : files) surveys.push_back(&file.survey);
  return surveys;
}

Result<FileNow> look_at_file(const store::Store& store, const Id128& identity) {
  DEDUP_ASSIGN(const bool is_here, store.has_file(identity));
  DEDUP_ASSIGN(store::FileSurvey file, store::survey_file(store, identity));
  DEDUP_ASSIGN(const auto marks, store.marks());
  const bool is_marked = std::find(marks.begin(), marks.end(), identity) != marks.end();
  return FileNow{store.uuid(), is_here, is_marked, std::move(file)};
}

Status add_file(FileNow file, Catalog& catalog, FileRow& row) {
  const auto it =
      std::find_if(catalog.stores.begin(), catalog.stores.end(),
                   [&](const StoreRow& store) { return store.survey.uuid == file.store; });
  if (it == catalog.stores.end()) return {Code::kInternal, "a store that is not in the catalog"};
  auto& marks = it->survey.marks;
  std::erase_if(marks, [&](const store::Mark& mark) { return mark.identity == row.identity; });
  if (file.is_marked) {
    marks.push_back({row.identity, {}});
    row.deleted = true;
  }
  const auto place = static_cast<std::size_t>(it - catalog.stores.begin());
  if (file.is_here) row.on.push_back({place, std::move(file.survey)});
  return Status::ok();
}

Status no_such_file(const std::string& name, const std::string& why) {
  return {Code::kNoSuchFile, name + ": " + why};
}

// Generation `number` of the file.
Result<const FileRow*> find_generation(const Catalog& catalog, const FileRow& file,
                                       const std::string& name, std::uint64_t number) {
  if (file.exists() && file.record().number == number) return &file;
  for (const FileRow* const row : catalog.kept_of(file)) {
    if (row->record().kept_of.number == number) return row;
  }
  return no_such_file(name, "generation " + std::to_string(number) + " is not kept here");
}

}  // namespace

std::string_view name_of(AtPath at) {
  switch (at) {
    case AtPath::kPlaceholder:
      return "placeholder";
    case AtPath::kCached:
      return "cached";
    case AtPath::kMoved:
      return "moved";
    case AtPath::kNothing:
      return "nothing";
    case AtPath::kOther:
      return "replaced";
    case AtPath::kNoDirectory:
      return "no directory";
    case AtPath::kNotShared:
      return "not shared";
    case AtPath::kUnreadable:
      return "unreadable";
  }
  return {};
}

WrittenBack written_back(const Catalog& catalog, const FileRow& file) {
  std::vector<store::WrittenPart> parts;
  for (const FileOnStore& on : file.on) {
    const auto& newest = on.survey.newest;
    if (!file.exists() || newest.empty() || newest.front()->attempt != file.record().attempt)
      continue;
    const auto& written = on.survey.write_back.written;
    parts.insert(parts.end(), written.begin(), written.end());
  }
  WrittenBack out;
  for (const store::WrittenCopy& copy : store::by_copy(parts)) {
    if (copy.is_untouched) continue;
    out.is_begun = true;
    if (out.trouble.empty()) out.trouble = copy.trouble;
    // Whoever had no room has removed it.
    if (out.bytes == 0 && store::has_copy(catalog.place_of(file), copy.copy))
      out.bytes = copy.bytes;
  }
  return out;
}

std::string name_of(const FileRow& file) {
  if (!file.path.empty()) return file.path;
  for (const FileOnStore& on : file.on) {
    if (!on.survey.paths.empty()) return on.survey.paths.front() + " (" + file.identity.hex() + ")";
  }
  return file.identity.hex();
}

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::kHere:
      return "here";
    case Standing::kBehind:
      return "behind";
    case Standing::kMissing:
      return "missing";
  }
  return {};
}

const StoreRow* Catalog::store_of(const Id128& uuid) const {
  const auto it = std::find_if(stores.begin(), stores.end(),
                               [&](const StoreRow& row) { return row.survey.uuid == uuid; });
  return it == stores.end() ? nullptr : &*it;
}

std::vector<Standing> Catalog::standings(const FileRow& file) const {
  std::vector<Standing> standings;
  for (const store::StoreEntry& entry : file.record().stores) {
    const StoreRow* const row = store_of(entry.uuid);
    Standing standing = row == nullptr ? Standing::kMissing : Standing::kBehind;
    for (const FileOnStore& on : file.on) {
      const bool is_here = row == &stores[on.store] && on.survey.has_index &&
                           on.survey.newest.front()->attempt == file.record().attempt;
      if (is_here) standing = Standing::kHere;
    }
    standings.push_back(standing);
  }
  return standings;
}

plan::Redundancy Catalog::certain(const FileRow& file, const std::vector<Standing>& standings) {
  const auto gone = static_cast<std::uint32_t>(
      std::count_if(standings.begin(), standings.end(),
                    [](Standing standing) { return standing != Standing::kHere; }));
  return plan::Redundancy::copies(file.record().replication)
      .within(static_cast<std::uint32_t>(standings.size()))
      .after(gone);
}

const FileRow* Catalog::row_of(const Id128& identity) const {
  const auto it = std::find_if(files.begin(), files.end(),
                               [&](const FileRow& row) { return row.identity == identity; });
  return it == files.end() ? nullptr : &*it;
}

std::vector<const FileRow*> Catalog::kept_of(const FileRow& file) const {
  std::vector<const FileRow*> rows;
  if (!file.exists()) return rows;
  for (const store::KeptGeneration& one : file.record().kept) {
    const FileRow* const row = row_of(store::kept_identity(file.identity, one.attempt));
    if (row != nullptr && row->exists()) rows.push_back(row);
  }
  return rows;
}

std::string Catalog::place_of(const FileRow& file) const {
  if (file.is_kept()) {
    const store::KeptOf& of = file.record().kept_of;
    const FileRow* const newest = row_of(of.file);
    if (newest != nullptr) return store::kept_path(place_of(*newest), of.number);
  }
  return file.stands_at.empty() ? file.path : file.stands_at;
}

Result<const FileRow*> Catalog::find(const std::string& name, std::uint64_t generation) const {
  if (generation != 0) {
    DEDUP_ASSIGN(const FileRow* const file, find(name));
    return find_generation(*this, *file, name, generation);
  }
  const std::string text = without_prefix(name);
  Id128 identity;
  if (Id128::parse(text, identity)) {
    if (const FileRow* row = row_of(identity)) return row;
    return no_such_file(name, "no store has a file of this identity");
  }
  const std::string path = absolute_path(text);
  const auto state = store::look_at(path);
  if (state.is_ok() && state->kind == store::PathState::Kind::kPlaceholder) {
    if (const FileRow* row = row_of(state->placeholder.identity)) return row;
    return no_such_file(path, "no store here has " + store::describe(state->placeholder));
  }
  std::vector<const FileRow*> found;
  for (const FileRow& row : files) {
    if (row.path == path && !row.deleted && !row.is_kept()) found.push_back(&row);
  }
  // What was there before has no name.
  const auto cached = std::find_if(found.begin(), found.end(), [](const FileRow* row) {
    return row->at_path == AtPath::kCached;
  });
  if (cached != found.end()) return *cached;
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    if (const auto kept = store::parse_kept_path(text)) {
      DEDUP_ASSIGN(const FileRow* const file, find(kept->path));
      return find_generation(*this, *file, name, kept->number);
    }
    if (!state.is_ok()) return state.status();
    const bool plain = state->kind == store::PathState::Kind::kPlain;
    return no_such_file(path, plain ? "is a plain file; the stores have nothing of it"
                                    : "no store has a file of this name");
  }
  std::string text_of_all;
  for (const FileRow* row : found) text_of_all += " " + row->identity.hex();
  return Status(Code::kConflict,
                path + ": several files had this name; give one's identity:" + text_of_all);
}

bool is_as_wanted(const FileRow& file, const std::vector<Standing>& standings) {
  if (!file.exists()) return file.chosen_status.code() != Code::kConflict;
  if (file.at_path == AtPath::kCached) return true;
  const bool is_damaged = std::any_of(file.on.begin(), file.on.end(), [](const FileOnStore& on) {
    return !on.survey.damaged.empty();
  });
  return !is_damaged &&
         Catalog::certain(file, standings) >= plan::Redundancy::copies(file.record().replication) &&
         std::all_of(standings.begin(), standings.end(),
                     [](Standing standing) { return standing == Standing::kHere; });
}

Catalog make_catalog(const Ranks& ranks, LocalStores& local, const std::vector<std::string>& search,
                     bool settles) {
  share_stores(ranks, local);
  std::vector<SurveyedStore> surveys;
  for (auto it = local.stores.begin(); it != local.stores.end();) {
    auto surveyed = store::survey(*it->store);
    if (surveyed.is_ok()) {
      surveys.push_back({it->node, *std::move(surveyed)});
      ++it;
    } else {
      local.troubles.push_back({it->node, it->store->directory(), surveyed.status().message()});
      it = local.stores.erase(it);
    }
  }
  Catalog catalog;
  catalog.search = search;
  catalog.settles = settles;
  int rank = 0;
  Surveyed mine{local.troubles, std::move(surveys)};
  std::vector<std::optional<Surveyed>> all;
  for (const Bytes& bytes : ranks.gather(encoded(mine))) all.push_back(decoded<Surveyed>(bytes));
  std::vector<Surveys> by_rank;
  for (auto& theirs : all) by_rank.push_back(theirs ? surveys_of(theirs->stores) : Surveys{});
  const Status completed = complete_records(ranks, surveys_of(mine.stores), by_rank);
  if (!completed.is_ok()) catalog.troubles.push_back({"", "", completed.message()});
  for (auto& theirs : all) {
    if (theirs) {
      std::move(theirs->troubles.begin(), theirs->troubles.end(),
                std::back_inserter(catalog.troubles));
      std::uint32_t number = 0;
      for (auto& [node, survey] : theirs->stores) {
        StoreRow row;
        row.rank = rank;
        row.local = number++;
        row.node = std::move(node);
        row.survey = std::move(survey);
        catalog.stores.push_back(std::move(row));
      }
    } else {
      catalog.troubles.push_back({"of rank " + std::to_string(rank), "", kImpossible});
    }
    ++rank;
  }
  // Ranks of one node all say what is wrong with its store.
  std::sort(catalog.troubles.begin(), catalog.troubles.end(),
            [](const Trouble& a, const Trouble& b) {
              return std::tie(a.node, a.message) < std::tie(b.node, b.message);
            });
  const auto same = std::unique(catalog.troubles.begin(), catalog.troubles.end(),
                                [](const Trouble& a, const Trouble& b) {
                                  return a.node == b.node && a.message == b.message;
                                });
  catalog.troubles.erase(same, catalog.troubles.end());
  name_stores(catalog);

  std::map<Id128, FileRow> rows;
  std::set<Id128> deleted;
  for (std::size_t s = 0; s < catalog.stores.size(); ++s) {
    for (store::FileSurvey& file : catalog.stores[s].survey.files) {
      FileRow& row = rows[file.identity];
      row.identity = file.identity;
      row.on.push_back({s, file});
    }
    for (const store::Mark& mark : catalog.stores[s].survey.marks) deleted.insert(mark.identity);
  }
  Whereabouts whereabouts(known_directories(catalog), search);
  for (auto& [identity, row] : rows) {
    row.deleted = deleted.contains(identity);
    look_and_choose(catalog, whereabouts, {}, row);
    catalog.files.push_back(std::move(row));
  }
  std::stable_sort(catalog.files.begin(), catalog.files.end(),
                   [](const FileRow& a, const FileRow& b) { return a.path < b.path; });
  return catalog;
}

Result<FileRow> look_again(const Ranks& ranks, const LocalStores& local, Catalog& catalog,
                           const Id128& identity, const std::string& perhaps_at) {
  std::vector<FileNow> mine;
  Status status;
  for (const LocalStore& one : local.stores) {
    auto file = look_at_file(*one.store, identity);
    if (file.is_ok()) {
      mine.push_back(*std::move(file));
    } else if (status.is_ok()) {
      status = file.status().with_context("node " + one.node);
    }
  }
  DEDUP_TRY(ranks.agree(status));
  FileRow row;
  row.identity = identity;
  std::vector<std::optional<std::vector<FileNow>>> all;
  for (const Bytes& bytes : ranks.gather(encoded(mine))) {
    all.push_back(decoded<std::vector<FileNow>>(bytes));
  }
  std::vector<Surveys> by_rank;
  for (auto& theirs : all) by_rank.push_back(theirs ? surveys_of(*theirs) : Surveys{});
  status = complete_records(ranks, surveys_of(mine), by_rank);
  for (auto& theirs : all) {
    if (!theirs && status.is_ok()) status = Status(Code::kInternal, kImpossible);
    if (!theirs) continue;
    for (FileNow& file : *theirs) {
      if (status.is_ok()) status = add_file(std::move(file), catalog, row);
    }
  }
  DEDUP_TRY(ranks.agree(status));
  if (ranks.is_root()) {
    Whereabouts whereabouts(known_directories(catalog), catalog.search);
    look_and_choose(catalog, whereabouts, perhaps_at, row);
  }
  return row;
}

std::string without_prefix(const std::string& name) {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

std::string absolute_path(std::string_view name) {
  namespace filesystem = std::filesystem;
  const filesystem::path path(name);
  std::error_code error;
  // Where something is, all links count; else those of its directory, if that is there.
  if (const auto whole = filesystem::canonical(path, error); !error) return whole;
  const auto absolute = filesystem::absolute(path, error);
  const std::string last = absolute.filename();
  if (!last.empty() && last != "." && last != "..") {
    const auto directory = filesystem::canonical(absolute.parent_path(), error);
    if (!error) return directory / last;
  }
  return absolute.lexically_normal();
}

}  // namespace dedup::ctl
