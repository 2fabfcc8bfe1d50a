// ls: which files the stores have. df: how much is in each store.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/select.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

// What a person should know of a file beside its figures, each a few words.
std::vector<std::string> remarks(const Session& session, const FileRow& file) {
  std::vector<std::string> out;
  const Json json = json_of(session, file);
  if (json["open"] != "no") out.push_back("open for " + json["open"].get<std::string>());
  if (const auto shared = json.value("shared_bytes", std::uint64_t{0}); shared != 0) {
    out.push_back("shares " + human(shared) + " with other files");
  }
  if (const auto kept = session.catalog.kept_of(file); !kept.empty()) {
    out.push_back(fmt::format("keeps {} older", kept.size()));
  }
  if (json.contains("written_back_bytes")) {
    const auto trouble = json.value("write_back_trouble", std::string());
    out.push_back(fmt::format("{} of {} written back{}",
                              human(json["written_back_bytes"].get<std::uint64_t>()),
                              human(file.record().size), trouble.empty() ? "" : ": " + trouble));
  }
  switch (file.at_path) {
    case AtPath::kCached:
      out.push_back("cached: it is at its path as a plain file");
      break;
    case AtPath::kMoved:
      out.push_back("stands at " + file.stands_at);
      break;
    case AtPath::kNothing:
      out.push_back("its placeholder was removed or moved");
      break;
    case AtPath::kOther:
      out.push_back("another file has its name");
      break;
    case AtPath::kNoDirectory:
      out.push_back("its directory is not there");
      break;
    case AtPath::kUnreadable:
      out.push_back(file.at_path_text);
      break;
    case AtPath::kPlaceholder:
    case AtPath::kNotShared:
      break;
  }
  return out;
}

// Stores of the record that are not as they should be: "missing: store 01… of node n1".
std::vector<std::string> absent_stores(const Session& session, const FileRow& file) {
  std::vector<std::string> out;
  const auto standings = session.catalog.standings(file);
  for (std::size_t i = 0; i < standings.size(); ++i) {
    if (standings[i] == Standing::kHere) continue;
    const store::StoreEntry& entry = file.record().stores[i];
    out.push_back(fmt::format("{}: store {} of node {}", name_of(standings[i]), entry.uuid.hex(),
                              entry.node));
  }
  return out;
}

// For how much of what is wanted is certain: "1 of 2" copies, "rs:8+2: 1 of 2" losses.
std::string kept_for_certain(const FileRow& file, const std::vector<Standing>& standings) {
  const store::CommitRecord& record = file.record();
  const std::uint32_t certain = Catalog::certain(file, standings).as_copies();
  if (record.stripes.parities == 0) return fmt::format("{} of {}", certain, record.replication);
  return certain == 0 ? fmt::format("{}: may be lost", redundancy_of(record))
                      : fmt::format("{}: {} of {} losses", redundancy_of(record), certain - 1,
                                    record.replication - 1);
}

void add_row(const Session& session, const FileRow& file, Table& table, std::string& notes) {
  const std::string name = name_of(file);
  std::uint64_t disk = 0;
  for (const FileOnStore& on : file.on) disk += on.survey.disk_bytes;
  if (!file.exists()) {
    std::vector<std::string> nodes;
    for (const FileOnStore& on : file.on) nodes.push_back(session.catalog.stores[on.store].node);
    const bool conflict = file.chosen_status.code() == Code::kConflict;
    table.add({name, "-", "-", "-", human(disk), join(nodes),
               file.deleted ? "deleted"
               : conflict   ? "conflict"
                            : "nothing is committed"});
    if (conflict) notes += "conflict: " + printable(file.chosen_status.message()) + "\n";
    return;
  }
  const store::CommitRecord& record = file.record();
  const auto standings = session.catalog.standings(file);
  std::vector<std::string> nodes;
  for (std::size_t i = 0; i < standings.size(); ++i) {
    if (standings[i] == Standing::kHere) nodes.push_back(record.stores[i].node);
  }
  table.add({name, human(record.size), std::to_string(file.generation()),
             kept_for_certain(file, standings), human(disk), join(nodes),
             join(remarks(session, file))});
  for (const std::string& text : absent_stores(session, file)) {
    notes += printable(name + ": " + text) + "\n";
  }
}

}  // namespace

ExitCode ls(Session& session) {
  if (!session.is_root()) return kFine;
  std::vector<const FileRow*> rows;
  ExitCode code = session.code_of_stores();
  // Older generations come behind the file that they are of, or by their own names.
  const auto add = [&](const FileRow& row) {
    rows.push_back(&row);
    if (!session.options.generations) return;
    const auto kept = session.catalog.kept_of(row);
    rows.insert(rows.end(), kept.begin(), kept.end());
  };
  for (const std::string& name : session.options.files) {
    const auto found = session.catalog.find(name);
    if (found.is_ok()) {
      add(**found);
    } else {
      code = worse(code, fail(session, found.status()));
    }
  }
  if (session.options.files.empty()) {
    for (const FileRow& row : session.catalog.files) {
      if (!row.is_kept()) add(row);
    }
  }
  for (const FileRow* row : rows) {
    if (!is_as_wanted(*row, session.catalog.standings(*row))) code = worse(code, kProblems);
  }
  if (session.options.json) {
    Json out = json_head(session, "ls");
    out["files"] = Json::array();
    for (const FileRow* row : rows) out["files"].push_back(json_of(session, *row));
    print(out);
    return code;
  }
  print_troubles(session);
  if (rows.empty()) return code;
  Table table({"FILE", "SIZE", "GENERATION", "COPIES", "STORED", "NODES", ""}, {1, 2, 3, 4});
  std::string notes;
  for (const FileRow* row : rows) add_row(session, *row, table, notes);
  print(table.text() + (notes.empty() ? "" : "\n" + notes));
  return code;
}

ExitCode df(Session& session) {
  if (!session.is_root()) return kFine;
  Json stores = Json::array();
  Table table({"NODE", "FILES", "LIVE", "STORED", "LOGS", "FREE", "SIZE", "STORE"},
              {1, 2, 3, 4, 5, 6});
  for (const StoreRow& row : session.catalog.stores) {
    std::uint64_t live = 0;
    std::uint64_t stored = 0;
    std::uint64_t logs = 0;
    for (const store::FileSurvey& file : row.survey.files) {
      live += file.live_bytes;
      stored += file.segment_bytes;
      logs += file.log_bytes;
    }
    table.add({row.node, std::to_string(row.survey.files.size()), human(live),
               human(row.survey.disk_bytes), human(logs), human(row.survey.free_bytes),
               human(row.survey.file_system_bytes), row.survey.directory});
    stores.push_back({{"node", row.node},
                      {"uuid", row.survey.uuid.hex()},
                      {"directory", row.survey.directory},
                      {"files", row.survey.files.size()},
                      {"live_bytes", live},
                      {"stored_bytes", stored},
                      {"disk_bytes", row.survey.disk_bytes},
                      {"log_bytes", logs},
                      {"free_bytes", row.survey.free_bytes},
                      {"file_system_bytes", row.survey.file_system_bytes}});
  }
  if (session.options.json) {
    Json out = json_head(session, "df");
    out["stores"] = std::move(stores);
    print(out);
  } else {
    print_troubles(session);
    if (!session.catalog.stores.empty()) print(table.text());
  }
  return session.code_of_stores();
}

}  // namespace dedup::ctl
