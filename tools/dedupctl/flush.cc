// flush: finishes what is to be written back (dedup_flush).
#include <fmt/format.h>

#include "base/text.h"
#include "tools/dedupctl/driver_file.h"
#include "tools/dedupctl/in_job.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/select.h"

namespace dedup::ctl {
namespace {

// Why nothing can be put at a file's path; empty: it can.
std::string hindrance(const FileRow& file) {
  if (file.is_kept()) return "is an older generation; dedupctl export writes it elsewhere";
  switch (file.at_path) {
    case AtPath::kPlaceholder:
    case AtPath::kMoved:
      return {};
    case AtPath::kNotShared:
      return "its nodes share no file system at its path; dedupctl export writes it elsewhere";
    case AtPath::kCached:
      return "is at its path already";
    case AtPath::kNothing:
    case AtPath::kOther:
    case AtPath::kNoDirectory:
    case AtPath::kUnreadable:
      break;
  }
  return fmt::format("its placeholder is not there ({}); dedupctl export writes it elsewhere",
                     name_of(file.at_path));
}

// Collective. Opening and closing a file that is to be written back does that, from where whoever
// was at it before has stopped.
Status write_back(const std::string& path) {
  DEDUP_ASSIGN(const auto file, DriverFile::open(path, MPI_MODE_RDWR, {{"dedup_flush", "close"}}));
  return file->close();
}

// Whether something that was begun is to be finished; not of a file whose name leads elsewhere now.
bool is_pending(const Session& session, const FileRow& file) {
  const bool is_gone = file.at_path == AtPath::kNothing || file.at_path == AtPath::kOther;
  return !is_gone && written_back(session.catalog, file).is_begun;
}

ExitCode flush_file(Session& session, const FileRow* file, std::string path, Json& done) {
  const bool is_named = !session.options.files.empty();
  bool is_wanted = false;
  Status status;
  if (session.is_root()) {
    is_wanted = is_named || is_pending(session, *file);
    const std::string why = is_wanted ? hindrance(*file) : std::string();
    if (!why.empty()) status = Status(Code::kIo, path + ": " + why);
  }
  std::pair<bool, std::string> told{is_wanted, path};
  status = session.ranks.share(status, told);
  if (status.is_ok() && !told.first) return kFine;
  if (status.is_ok()) status = write_back(told.second);
  if (!status.is_ok()) return fail(session, status);
  if (!session.is_root()) return kFine;
  const std::uint64_t size = file->record().size;
  if (session.options.json) {
    done.push_back({{"path", path}, {"identity", file->identity.hex()}, {"size", size}});
  } else {
    print(fmt::format("{}: written back, {}\n", printable(path), human(size)));
  }
  return kFine;
}

}  // namespace

ExitCode flush(Session& session) {
  const Status driver = check_driver();
  if (!driver.is_ok()) return fail(session, driver);
  Json done = Json::array();
  const ExitCode code = for_each_file(session, [&](const FileRow* file, const std::string& path) {
    return flush_file(session, file, path, done);
  });
  if (session.is_root() && session.options.json) {
    Json out = json_head(session, "flush");
    out["files"] = std::move(done);
    print(out);
  }
  return code;
}

}  // namespace dedup::ctl
