// gc: frees what nothing refers to any more, now rather than when a store runs out of room.
#include <fmt/format.h>

#include "tools/dedupctl/freeing.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {

ExitCode gc(Session& session) {
  if (session.is_root()) print_troubles(session);
  Freed freed;
  const Status status = free_space(session, session.options.unnamed, freed);
  if (!session.is_root()) return kFine;
  if (session.options.json) {
    Json out = json_head(session, "gc");
    out["freed_bytes"] = freed.bytes;
    out["dropped_files"] = freed.files;
    out["files_in_use"] = freed.in_use;
    out["notes"] = freed.notes;
    print(out);
  } else {
    for (const std::string& note : freed.notes) print(note + "\n");
    print(fmt::format("freed {}, dropped {} files{}\n", human(freed.bytes), freed.files,
                      freed.in_use == 0 ? "" : fmt::format(", {} are in use", freed.in_use)));
  }
  if (!status.is_ok()) return fail(session, status);
  return session.code_of_stores();
}

}  // namespace dedup::ctl
