// rm: removes files from the stores, and their placeholders.
#include "base/warn.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/removal.h"
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

}  // namespace

ExitCode rm(Session& session) {
  Json done = Json::array();
  ExitCode code = session.code_of_stores();
  if (session.is_root()) print_troubles(session);
  for (const std::string& name : session.options.files) {
    const auto removal =
        remove_file(session, {name, session.options.generation, session.options.nodes});
    if (!removal.is_ok()) {
      const ExitCode failed = fail(session, removal.status());
      if (code == kFine) code = failed;
      continue;
    }
    if (!session.is_root()) continue;
    if (session.options.json) {
      done.push_back(json_of_removal(session, *removal));
      continue;
    }
    for (const Id128& left : removal->stores_left) {
      warn(removal->path + ": store " + left.hex() + " is not here; it drops the file when it is");
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
