// rm: removes files from the stores, and their placeholders; or what is too many or too old.
#include <fmt/format.h>

#include <ctime>

#include "base/fields.h"
#include "base/text.h"
#include "base/warn.h"
#include "tools/dedupctl/duration.h"
#include "tools/dedupctl/expiry.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/removal.h"
#include "tools/dedupctl/select.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

Json json_of_removal(const Session& session, const Removal& removal) {
  Json nodes = Json::array();
  for (const Id128& store : removal.stores) nodes.push_back(session.catalog.store_of(store)->node);
  Json left = Json::array();
  for (const Id128& store : removal.stores_left) left.push_back(store.hex());
  return {{"path", removal.path},
          {"identity", removal.identity.hex()},
          {"removed_from", std::move(nodes)},
          {"stores_left", std::move(left)}};
}

// Collective. `rows`: what --json shows.
ExitCode remove_one(Session& session, const RemovalRequest& request, Json& rows) {
  const auto removal = remove_file(session, request);
  if (!removal.is_ok()) return fail(session, removal.status());
  if (!session.is_root()) return kFine;
  if (session.options.json) {
    rows.push_back(json_of_removal(session, *removal));
    return kFine;
  }
  for (const Id128& left : removal->stores_left) {
    warn(removal->path + ": store " + left.hex() + " is not here; it drops the file when it is");
  }
  return kFine;
}

Expiry expiry_of(const Options& options) {
  Expiry expiry;
  expiry.keep = options.keep;
  if (!options.older_than.empty()) expiry.older_than = parse_age(options.older_than);
  return expiry;
}

// On rank 0: what goes of a file.
std::vector<const FileRow*> expired_of(const Session& session, const FileRow& file,
                                       std::uint64_t now) {
  const Catalog& catalog = session.catalog;
  // With its file; without that, gc finds out whether it is kept.
  if (session.options.files.empty() && file.is_kept()) return {};
  const std::vector<const FileRow*> kept = catalog.kept_of(file);
  std::vector<std::uint64_t> times;
  for (const FileRow* const one : kept) times.push_back(one->record().time);
  const Expired goes = expired(expiry_of(session.options), now, file.record().time, times);
  std::vector<const FileRow*> rows;
  if (goes.whole) rows.push_back(&file);
  for (const std::size_t i : goes.kept) rows.push_back(kept[i]);
  return rows;
}

// The name that leads to the file, or to none if several have it: then its identity does.
std::string name_to_remove(const Catalog& catalog, const FileRow& file, const std::string& path) {
  const auto found = catalog.find(path);
  return found.is_ok() && *found == &file ? path : file.identity.hex();
}

// Collective: what is too many or too old of one file.
ExitCode remove_expired(Session& session, const FileRow* file, const std::string& path,
                        std::uint64_t now, Json& rows) {
  std::vector<std::string> names;
  if (session.is_root()) {
    for (const FileRow* const row : expired_of(session, *file, now)) {
      const std::string place = row == file ? path : session.catalog.place_of(*row);
      if (!session.options.dry_run) {
        names.push_back(name_to_remove(session.catalog, *row, place));
      } else if (session.options.json) {
        rows.push_back(json_of(session, *row));
      } else {
        print(fmt::format("would remove {}, committed {}\n", printable(place),
                          utc(row->record().time)));
      }
    }
  }
  const Status shared = session.ranks.share(Status::ok(), names);
  if (!shared.is_ok()) return fail(session, shared);
  ExitCode code = kFine;
  for (const std::string& name : names) {
    code = worse(code, remove_one(session, {name}, rows));
  }
  return code;
}

// Whether the arguments go together.
Status check_arguments(const Options& options) {
  const bool is_by_rule = expiry_of(options).is_given();
  if (!is_by_rule && (options.all || options.dry_run)) {
    return {Code::kArgument, "rm takes --all, or --dry-run, with --keep or --older-than only"};
  }
  if (options.all != options.files.empty()) {
    return {Code::kArgument, "rm takes files, or with --keep or --older-than --all"};
  }
  return Status::ok();
}

}  // namespace

ExitCode rm(Session& session) {
  const Status arguments = check_arguments(session.options);
  if (!arguments.is_ok()) return fail(session, arguments);
  Json rows = Json::array();
  ExitCode code = session.code_of_stores();
  if (expiry_of(session.options).is_given()) {
    const auto now = static_cast<std::uint64_t>(std::time(nullptr));
    code = for_each_file(session, [&](const FileRow* file, const std::string& path) {
      return remove_expired(session, file, path, now, rows);
    });
  } else {
    if (session.is_root()) print_troubles(session);
    for (const std::string& name : session.options.files) {
      const RemovalRequest request{name, session.options.generation, session.options.nodes};
      code = worse(code, remove_one(session, request, rows));
    }
  }
  if (session.is_root() && session.options.json) {
    Json out = json_head(session, "rm");
    if (session.options.dry_run) out["dry_run"] = true;
    out["files"] = std::move(rows);
    print(out);
  }
  return code;
}

}  // namespace dedup::ctl
