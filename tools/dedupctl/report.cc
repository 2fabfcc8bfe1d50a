// report: files' history, by what the driver has told of commits and what the stores have now; as a
// table, JSON, or a page with pictures.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>

#include "base/text.h"
#include "tools/dedupctl/duration.h"
#include "tools/dedupctl/holding.h"
#include "tools/dedupctl/node_load.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/page.h"
#include "tools/dedupctl/select.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

// On rank 0: the files that are meant, with what the report tells of them; all of it, if none is
// named.
Result<std::vector<FileHistory>> histories(const Options& options) {
  std::vector<FileHistory> files;
  std::map<std::string, std::size_t> place;
  const auto file_at = [&](const std::string& path) -> FileHistory& {
    const auto [it, is_new] = place.try_emplace(path, files.size());
    if (is_new) files.push_back({path, {}, {}});
    return files[it->second];
  };
  for (const std::string& name : options.files) file_at(absolute_path(without_prefix(name)));
  if (options.report.empty()) return files;
  DEDUP_ASSIGN(const std::vector<ReportedCommit> commits, read_report(options.report));
  for (const ReportedCommit& commit : commits) {
    if (options.files.empty() || place.contains(commit.file)) {
      file_at(commit.file).commits.push_back(commit);
    }
  }
  return files;
}

// Collective; what it says counts on rank 0.
Result<StoredNow> look_at_stores(const Session& session, const FileRow* file) {
  DEDUP_ASSIGN(const auto generation,
               Generation::open(session.ranks, session.local, session.catalog, file));
  DEDUP_ASSIGN(const Holding holding, measure(*generation, generation->wanted()));
  StoredNow now;
  if (!session.is_root()) return now;
  const store::CommitRecord& record = generation->record();
  now.generation = record.number;
  now.time = record.time;
  now.size = record.size;
  now.lost = holding.tally.lost_bytes();
  const plan::LossOdds odds = loss_odds(*generation, holding);
  now.losses_survived = odds.survived();
  for (const plan::Odds& one : odds.beyond_survived(plan::kLossesTold)) {
    now.loss_odds.push_back(one.probability);
  }
  for (const NodeLoad& load : loads(session, *file)) {
    now.nodes.push_back({load.node, load.state, load.stored_bytes, load.live_bytes});
  }
  return now;
}

// Which of the files the stores have is looked up there; all of these, if no file is known yet.
std::vector<std::string> names_in_stores(const Session& session,
                                         const std::vector<FileHistory>& files) {
  std::vector<std::string> names;
  for (const FileHistory& file : files) {
    const auto found = session.catalog.find(file.path);
    const bool is_there = found.is_ok() && (*found)->exists();
    // What nothing was reported of is asked for, so that it is said if it is not there.
    if (is_there || file.commits.empty()) names.push_back(file.path);
  }
  return names;
}

std::string text_of(const FileHistory& file) {
  std::string out = printable(file.path) + "\n";
  if (file.now) {
    out += fmt::format("  now: generation {}, {}, survives the loss of any {} node{}\n",
                       file.now->generation, human(file.now->size), file.now->losses_survived,
                       file.now->losses_survived == 1 ? "" : "s");
  }
  if (file.commits.empty()) return out;
  Table table({"GENERATION", "COMMITTED", "WRITTEN", "STORED", "SENT", "SAVED", "TIME", "COPIES",
               "SURVIVES"},
              {2, 3, 4, 5, 6, 7, 8});
  const auto bytes = [](double number) { return human(static_cast<std::uint64_t>(number)); };
  for (const ReportedCommit& commit : file.commits) {
    const auto saved = saved_share(commit);
    table.add({std::to_string(commit.generation), commit.time == 0 ? "-" : utc(commit.time),
               bytes(commit.written.total), bytes(commit.stored.total), bytes(commit.sent.total),
               saved ? fmt::format("{:.1f} %", 100 * *saved) : "-",
               commit.seconds > 0 ? duration_text(commit.seconds) : "-",
               fmt::format("{} of {}", commit.lowest_copies, commit.replication),
               std::to_string(commit.losses_survived)});
  }
  return out + table.text();
}

Json json_of(const FileHistory& file) {
  Json out = {{"path", file.path}};
  if (file.now) {
    const StoredNow& now = *file.now;
    Json nodes = Json::array();
    for (const NodePart& part : now.nodes) {
      nodes.push_back({{"node", part.node},
                       {"state", part.state},
                       {"stored_bytes", part.stored},
                       {"live_bytes", part.live}});
    }
    out["now"] = {{"generation", now.generation},
                  {"time", utc(now.time)},
                  {"size", now.size},
                  {"lost_bytes", now.lost},
                  {"losses_survived", now.losses_survived},
                  {"loss_odds", now.loss_odds},
                  {"nodes", std::move(nodes)}};
  }
  out["commits"] = Json::array();
  for (const ReportedCommit& commit : file.commits) {
    Json row = {{"generation", commit.generation},
                {"written_bytes", commit.written.total},
                {"stored_bytes", commit.stored.total},
                {"sent_bytes", commit.sent.total},
                {"seconds", commit.seconds},
                {"lowest_copies", commit.lowest_copies},
                {"losses_survived", commit.losses_survived},
                {"loss_odds", commit.loss_odds}};
    if (commit.time != 0) row["time"] = utc(commit.time);
    if (const auto saved = saved_share(commit)) row["saved"] = *saved;
    out["commits"].push_back(std::move(row));
  }
  return out;
}

Status write_page(const std::string& path, const std::vector<FileHistory>& files) {
  std::ofstream page(path, std::ios::binary | std::ios::trunc);
  if (!page) return Status::from_errno(errno, "cannot write " + path);
  page << page_of(files);
  page.close();
  return page ? Status::ok() : Status(Code::kIo, "cannot write all of " + path);
}

ExitCode answer(const Session& session, const std::vector<FileHistory>& files, ExitCode code) {
  if (!session.options.html.empty()) {
    const Status written = write_page(session.options.html, files);
    return written.is_ok() ? code : worse(code, fail(session, written));
  }
  Json rows = Json::array();
  std::string text;
  for (const FileHistory& file : files) {
    if (session.options.json) {
      rows.push_back(json_of(file));
    } else {
      text += (text.empty() ? "" : "\n") + text_of(file);
    }
  }
  print_files(session, "report", std::move(rows), text);
  return code;
}

}  // namespace

ExitCode report(Session& session) {
  std::vector<FileHistory> files;
  std::vector<std::string> names;
  Status status;
  if (session.is_root()) {
    auto found = histories(session.options);
    status = found.status();
    if (status.is_ok()) files = std::move(*found);
    names = names_in_stores(session, files);
  }
  // A report alone may be of files that no store has any more.
  std::uint64_t is_to_look = !names.empty() || session.options.report.empty() ? 1 : 0;
  status = session.ranks.share(status, is_to_look);
  if (!status.is_ok()) return fail(session, status);
  ExitCode code = kFine;
  if (is_to_look != 0) {
    code =
        for_each_file(session, names, [&](const FileRow* row, const std::string& path) -> ExitCode {
          auto now = look_at_stores(session, row);
          if (!now.is_ok()) return fail(session, now.status());
          if (!session.is_root()) return kFine;
          auto file = std::ranges::find(files, path, &FileHistory::path);
          if (file == files.end()) file = files.insert(files.end(), {path, {}, {}});
          file->now = std::move(*now);
          return file->now->lost > 0 ? kProblems : kFine;
        });
  }
  return session.is_root() ? answer(session, files, code) : code;
}

}  // namespace dedup::ctl
