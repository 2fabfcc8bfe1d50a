// evict: drops from the stores what is at its path as a plain file (dedup_flushed=keep).
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "store/kept.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/select.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

// Collective: the bytes that all stores have freed.
Result<std::uint64_t> drop_cached(Session& session, const Id128& identity) {
  std::uint64_t freed = 0;
  Change change;
  change.identity = identity;
  change.decide = [](const FileRow& now) {
    return now.at_path == AtPath::kCached ? Status::ok() : changed_meanwhile();
  };
  change.apply = [&](LocalStore& local, std::unique_ptr<store::Store::Lock> lock) -> Status {
    DEDUP_ASSIGN(const std::uint64_t bytes,
                 store::drop_with_kept(*local.store, identity, std::move(lock)));
    freed += bytes;
    return Status::ok();
  };
  const Status status = carry_out(session, change);
  session.ranks.sum({&freed, 1});
  DEDUP_TRY(status);
  return freed;
}

ExitCode evict_file(Session& session, const FileRow* file, const std::string& path, Json& rows) {
  const bool is_named = !session.options.files.empty();
  Id128 identity;  // zero: it is left alone
  Status status;
  // Its older generations are nowhere else.
  const bool is_alone = session.is_root() && session.catalog.kept_of(*file).empty();
  if (session.is_root() && file->at_path == AtPath::kCached && (is_named || is_alone)) {
    identity = file->identity;
  } else if (session.is_root() && is_named) {
    status = Status(Code::kIo, path +
                                   ": is not at its path as a plain file: dedupctl flush writes it "
                                   "there, and dedupctl rm removes it from the stores");
  }
  status = session.ranks.share(status, identity);
  if (!status.is_ok()) return fail(session, status);
  if (identity.is_zero()) return kFine;
  const auto freed = drop_cached(session, identity);
  if (!freed.is_ok()) return fail(session, freed.status().with_context(path));
  if (!session.is_root()) return kFine;
  if (session.options.json) {
    rows.push_back({{"path", path}, {"identity", identity.hex()}, {"freed_bytes", *freed}});
  } else {
    print(fmt::format("{}: evicted, {} freed\n", printable(path), human(*freed)));
  }
  return kFine;
}

}  // namespace

ExitCode evict(Session& session) {
  Json rows = Json::array();
  const ExitCode code = for_each_file(session, [&](const FileRow* file, const std::string& path) {
    return evict_file(session, file, path, rows);
  });
  if (session.is_root() && session.options.json) {
    Json out = json_head(session, "evict");
    out["files"] = std::move(rows);
    print(out);
  }
  return code;
}

}  // namespace dedup::ctl
