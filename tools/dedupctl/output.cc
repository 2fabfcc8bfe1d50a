#include "tools/dedupctl/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/warn.h"
#include "hints/hints.h"
#include "tools/dedupctl/duration.h"

namespace dedup::ctl {

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

Json json_head(const Session& session, const std::string& command) {
  Json stores = Json::array();
  for (const StoreRow& row : session.catalog.stores) {
    stores.push_back(
        {{"node", row.node}, {"uuid", row.survey.uuid.hex()}, {"directory", row.survey.directory}});
  }
  Json unreadable = Json::array();
  for (const Trouble& trouble : session.catalog.troubles) {
    unreadable.push_back(
        {{"node", trouble.node}, {"directory", trouble.directory}, {"message", trouble.message}});
  }
  return {{"command", command},
          {"version", 1},
          {"stores", std::move(stores)},
          {"unreadable_stores", std::move(unreadable)}};
}

void print_files(const Session& session, const std::string& command, Json files,
                 const std::string& text) {
  if (!session.options.json) return print(text);
  Json out = json_head(session, command);
  out["files"] = std::move(files);
  print(out);
}

std::string redundancy_of(const store::CommitRecord& record) {
  hints::Hints hints;
  hints.stripe_data = record.stripes.data;
  hints.stripe_parities = record.stripes.parities;
  return hints::find("dedup_redundancy")->print(hints);
}

std::string kept_text(bool in_stripes, std::uint64_t lowest, std::uint64_t wanted) {
  if (!in_stripes) {
    return fmt::format("every chunk is on {} stores at least, {} wanted", lowest, wanted);
  }
  return fmt::format("{} may be lost, {} wanted",
                     lowest <= 1 ? "no store" : fmt::format("any {} stores", lowest - 1),
                     wanted - 1);
}

Json json_of(const Session& session, const FileRow& file) {
  Json out = {{"path", file.path}, {"identity", file.identity.hex()}};
  if (!file.exists()) {
    out["state"] = file.deleted                                   ? "deleted"
                   : file.chosen_status.code() == Code::kConflict ? "conflict"
                                                                  : "uncommitted";
    out["message"] = file.chosen_status.message();
    return out;
  }
  const store::CommitRecord& record = file.record();
  const auto standings = session.catalog.standings(file);
  out["state"] = "committed";
  out["at_path"] = name_of(file.at_path);
  if (!file.stands_at.empty()) out["stands_at"] = file.stands_at;
  out["size"] = record.size;
  out["generation"] = file.generation();
  if (file.is_kept()) out["kept_of"] = record.kept_of.file.hex();
  if (const auto kept = session.catalog.kept_of(file); !kept.empty()) {
    out["kept"] = Json::array();
    for (const FileRow* const one : kept) out["kept"].push_back(one->generation());
  }
  out["attempt"] = record.attempt.hex();
  out["time"] = utc(record.time);
  out["replication"] = record.replication;
  out["redundancy"] = redundancy_of(record);
  out["certain_copies"] = Catalog::certain(file, standings).as_copies();
  out["chunk_size"] = record.chunk_size;
  out["fingerprint"] = record.fingerprint;
  std::uint64_t stored = 0;
  std::uint64_t shared = 0;
  std::uint64_t disk = 0;
  bool writing = false;
  bool reading = false;
  for (const FileOnStore& on : file.on) {
    stored += on.survey.segment_bytes;
    shared += on.survey.shared_bytes;
    disk += on.survey.disk_bytes;
    writing = writing || on.survey.writing;
    reading = reading || on.survey.reading;
  }
  out["stored_bytes"] = stored;
  out["shared_bytes"] = shared;
  out["disk_bytes"] = disk;
  out["open"] = writing ? "writing" : reading ? "reading" : "no";
  if (const WrittenBack written = written_back(session.catalog, file); written.is_begun) {
    out["written_back_bytes"] = written.bytes;
    if (!written.trouble.empty()) out["write_back_trouble"] = written.trouble;
  }
  Json stores = Json::array();
  for (std::size_t i = 0; i < standings.size(); ++i) {
    stores.push_back({{"node", record.stores[i].node},
                      {"uuid", record.stores[i].uuid.hex()},
                      {"state", name_of(standings[i])}});
  }
  out["stores"] = std::move(stores);
  return out;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print(const Json& json) {
  // Names of files need not be UTF-8.
  print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_troubles(const Session& session) {
  for (const Trouble& trouble : session.catalog.troubles) {
    warn("node " + trouble.node + ": " + trouble.message);
  }
}

ExitCode fail(const Session& session, const Status& status) {
  if (session.is_root()) say_error(status.message());
  switch (status.code()) {
    case Code::kNoSuchFile:
    case Code::kNotFound:
      // Perhaps it is on a store that cannot be read.
      return session.catalog.troubles.empty() ? kNoFile : kNoStore;
    case Code::kFileInUse:
      return kInUse;
    case Code::kConflict:
    case Code::kCorrupt:
      return kProblems;
    case Code::kArgument:
      return kUsage;
    default:
      return kFailed;
  }
}

}  // namespace dedup::ctl
