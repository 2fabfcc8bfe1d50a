// gc: frees what nothing refers to any more, now rather than when a store runs out of room.
#include <fmt/format.h>

#include <set>
#include <string>

#include "base/text.h"
#include "tools/dedupctl/freeing.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

// On rank 0: the files without a name that the user gives up.
Result<std::set<Id128>> given_up(const Session& session) {
  const Options& options = session.options;
  if (!options.unnamed && (!options.files.empty() || options.yes)) {
    return Status(Code::kArgument, "gc takes files, or --yes, with --unnamed only");
  }
  std::set<Id128> out;
  std::set<std::string> used;
  for (const FileRow& file : session.catalog.files) {
    if (!is_unnamed(file)) continue;
    if (options.yes) out.insert(file.identity);
    for (const std::string& text : options.files) {
      const std::string name = without_prefix(text);
      if (name != file.identity.hex() && absolute_path(name) != file.path) continue;
      out.insert(file.identity);
      used.insert(text);
    }
  }
  for (const std::string& name : options.files) {
    if (!used.contains(name)) {
      return Status(Code::kNoSuchFile, name + ": no file whose placeholder is found nowhere");
    }
  }
  return out;
}

}  // namespace

ExitCode gc(Session& session) {
  if (session.is_root()) print_troubles(session);
  Result<std::set<Id128>> unnamed = std::set<Id128>();
  if (session.is_root()) unnamed = given_up(session);
  const Status arguments = session.ranks.agree(unnamed.status());
  if (!arguments.is_ok()) return fail(session, arguments);
  Freed freed;
  const Status status = free_space(session, *unnamed, freed);
  if (!session.is_root()) return kFine;
  if (session.options.json) {
    Json out = json_head(session, "gc");
    out["freed_bytes"] = freed.bytes;
    out["dropped_files"] = freed.files;
    out["moved_bytes"] = freed.moved_bytes;
    out["files_in_use"] = freed.in_use;
    out["notes"] = freed.notes;
    print(out);
  } else {
    for (const std::string& note : freed.notes) print(printable(note) + "\n");
    print(fmt::format("freed {}, dropped {} files{}\n", human(freed.bytes), freed.files,
                      freed.in_use == 0 ? "" : fmt::format(", {} are in use", freed.in_use)));
    if (freed.moved_bytes != 0) {
      print(fmt::format("moved {} to slower tiers\n", human(freed.moved_bytes)));
    }
  }
  if (!status.is_ok()) return fail(session, status);
  return session.code_of_stores();
}

}  // namespace dedup::ctl
