// export: a file out of the stores, as a plain file. cat: the same on standard output.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>

#include "base/fields.h"
#include "base/text.h"
#include "base/warn.h"
#include "store/real_path.h"
#include "store/replacement.h"
#include "tools/dedupctl/content.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/progress.h"
#include "tools/dedupctl/select.h"

namespace dedup::ctl {
namespace {

namespace filesystem = std::filesystem;

struct Exported {
  std::string path;
  std::uint64_t lost_bytes = 0;
};

// Collective: the ranks that see the directory of `path` as rank 0 does.
std::vector<int> ranks_that_see(const Ranks& ranks, const std::string& path) {
  // Whoever cannot look at it has no part in it.
  const auto seen = store::see_directory(path);
  const store::Seen here = seen.is_ok() ? *seen : store::Seen{};
  std::vector<std::uint32_t> seers;
  std::uint32_t rank = 0;
  for (const Bytes& bytes : ranks.gather(encoded(here))) {
    const auto theirs = decoded<store::Seen>(bytes);
    if (rank == 0 || (theirs && store::is_shared(*theirs, here))) seers.push_back(rank);
    ++rank;
  }
  Bytes all = encoded(seers);
  ranks.broadcast(all, 0);
  seers = decoded<std::vector<std::uint32_t>>(all).value_or(std::vector<std::uint32_t>{0});
  return {seers.begin(), seers.end()};
}

// Whether it is the file's own placeholder: the one thing that is replaced unasked.
bool is_its_placeholder(const store::PathState& state, const Generation& generation) {
  return state.kind == store::PathState::Kind::kPlaceholder && !state.is_copy() &&
         state.placeholder.identity == generation.record().identity &&
         state.placeholder.attempt == generation.record().attempt;
}

// On rank 0: whether `path` may be written.
Status check_target(const std::string& path, const Generation& generation, bool force) {
  const auto state = store::look_at(path);
  if (!state.is_ok() && state.status().code() == Code::kBadFile) return state.status();
  using Kind = store::PathState::Kind;
  if (state.is_ok() && state->kind == Kind::kNoDirectory) {
    return {Code::kIo, path + ": its directory is not there"};
  }
  const bool is_free = state.is_ok() && state->kind == Kind::kNothing;
  const bool is_its_own = state.is_ok() && is_its_placeholder(*state, generation);
  if (is_free || force || is_its_own) return Status::ok();
  return {Code::kFileExists, path + ": is there already; --force replaces it"};
}

// On rank 0. What stands there may have changed since it was checked.
Status put(store::Replacement& file, const std::string& path, const Generation& generation,
           bool force) {
  const auto state = store::settle_path(path);
  // Damaged, say.
  if (!state.is_ok()) return force ? file.put() : state.status();
  if (state->kind == store::PathState::Kind::kNothing) return file.put_new();
  if (force || is_its_placeholder(*state, generation)) return file.put_after(*state);
  return {Code::kFileExists, path + ": is there already; --force replaces it"};
}

// Collective. Writes the generation to a temporary file beside `path`, and renames that.
Result<std::uint64_t> write_plain_file(Session& session, Generation& generation,
                                       const std::string& path) {
  const Ranks& ranks = session.ranks;
  const bool force = session.options.force;
  Status status;
  if (ranks.is_root()) status = check_target(path, generation, force);
  DEDUP_TRY(ranks.agree(status));
  const std::vector<int> writers = ranks_that_see(ranks, path);
  const bool writes = std::find(writers.begin(), writers.end(), ranks.rank()) != writers.end();
  std::unique_ptr<store::Replacement> file;
  if (ranks.is_root()) {
    auto begun = store::Replacement::begin(path, Id128::random(), 0666);
    status = begun.status();
    if (status.is_ok()) file = std::move(*begun);
    if (status.is_ok()) status = file->resize(generation.record().size);
  }
  DEDUP_TRY(ranks.agree(status));
  Id128 id = file ? file->id() : Id128();
  ranks.broadcast(id);
  if (writes && !ranks.is_root()) {
    auto joined = store::Replacement::join(path, id);
    status = joined.status();
    if (status.is_ok()) file = std::move(*joined);
  }
  DEDUP_TRY(ranks.agree(status));
  Progress progress(session, path, generation.record().size);
  DEDUP_ASSIGN(const Moved moved, move_content(
                                      generation, writers, session.options.incomplete,
                                      [&](std::uint64_t offset, std::span<const std::byte> bytes) {
                                        return file->write_sparse(offset, bytes);
                                      },
                                      [&](std::uint64_t bytes) { progress.add(bytes); }));
  if (writes) status = file->flush();
  DEDUP_TRY(ranks.agree(status));
  if (ranks.is_root()) status = put(*file, path, generation, force);
  DEDUP_TRY(ranks.agree(status));
  return moved.lost_bytes;
}

// Of all files, those are left out that were removed, or replaced by others, and not freed yet, as
// far as one can tell.
bool is_skipped(const Session& session, const FileRow& file) {
  if (session.options.all && file.is_kept()) return true;
  const bool is_there = file.at_path == AtPath::kCached && session.options.path.empty();
  if (session.options.all && is_there) return true;
  const bool is_removed = file.at_path == AtPath::kNothing || file.at_path == AtPath::kOther;
  if (!session.options.all || !is_removed) return false;
  warn(
      fmt::format("{}: left out: its placeholder was here last, and is found nowhere (identity "
                  "{}); if it was moved, --search the directory",
                  file.path, file.identity.hex()));
  return true;
}

// What was exported, on rank 0.
struct Done {
  std::set<std::string> paths;
  Json rows = Json::array();
};

// On rank 0: where a file goes.
Result<std::string> target_of(const Session& session, const FileRow& file, Done& done) {
  const Options& options = session.options;
  if (!options.all) {
    std::string path = absolute_path(options.path);
    std::error_code error;
    if (filesystem::is_directory(path, error)) {
      path += "/" + filesystem::path(file.path).filename().string();
    }
    return path;
  }
  if (options.path.empty()) {
    if (!file.stands_at.empty()) return file.stands_at;
    return Status(Code::kIo,
                  fmt::format("{}: its placeholder was here last, and is not there ({}); "
                              "--search where it may be, or name a directory to export "
                              "it to",
                              file.path, name_of(file.at_path)));
  }
  const std::string& name = file.stands_at.empty() ? file.path : file.stands_at;
  const std::string path = absolute_path(options.path) + name;
  if (!done.paths.insert(path).second) {
    return Status(
        Code::kFileExists,
        fmt::format("{}: another file of this name was exported there; export this one by "
                    "its identity, {}",
                    path, file.identity.hex()));
  }
  std::error_code error;
  filesystem::create_directories(filesystem::path(path).parent_path(), error);
  if (error) return Status::from_errno(error.value(), "cannot make the directory of " + path);
  return path;
}

ExitCode export_file(Session& session, const FileRow* file, Done& done) {
  std::string path;
  Status status;
  if (session.is_root() && !is_skipped(session, *file)) {
    auto target = target_of(session, *file, done);
    status = target.status();
    if (status.is_ok()) path = std::move(*target);
  }
  status = session.ranks.share(status, path);
  if (!status.is_ok()) return fail(session, status);
  if (path.empty()) return kFine;
  auto generation = Generation::open(session.ranks, session.local, session.catalog, file);
  if (!generation.is_ok()) return fail(session, generation.status());
  const auto lost = write_plain_file(session, **generation, path);
  if (!lost.is_ok()) return fail(session, lost.status());
  if (!session.is_root()) return kFine;
  Json row = json_of(session, *file);
  row["exported_to"] = path;
  row["lost_bytes"] = *lost;
  done.rows.push_back(std::move(row));
  if (*lost > 0) {
    warn(fmt::format("{}: {} of {} are lost, and zeros in it", path, human(*lost), file->path));
  }
  return *lost > 0 ? kProblems : kFine;
}

// Zeros, until `at` is `end`.
Status write_zeros(std::uint64_t& at, std::uint64_t end) {
  static const std::vector<char> kZeros(std::size_t{1} << 20);
  while (at < end) {
    const std::size_t size = std::min<std::uint64_t>(kZeros.size(), end - at);
    if (std::fwrite(kZeros.data(), 1, size, stdout) != size) {
      return Status::from_errno(errno, "cannot write to standard output");
    }
    at += size;
  }
  return Status::ok();
}

ExitCode cat_file(Session& session, const FileRow* file) {
  auto generation = Generation::open(session.ranks, session.local, session.catalog, file);
  if (!generation.is_ok()) return fail(session, generation.status());
  std::uint64_t at = 0;
  // What is written to the terminal is not to be written over.
  std::optional<Progress> progress;
  if (isatty(STDOUT_FILENO) == 0) {
    progress.emplace(session, (*generation)->record().path, (*generation)->record().size);
  }
  const auto moved = move_content(
      **generation, {0}, session.options.incomplete,
      [&](std::uint64_t offset, std::span<const std::byte> bytes) -> Status {
        DEDUP_TRY(write_zeros(at, offset));
        if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) {
          return Status::from_errno(errno, "cannot write to standard output");
        }
        at += bytes.size();
        return Status::ok();
      },
      [&](std::uint64_t bytes) {
        if (progress) progress->add(bytes);
      });
  if (!moved.is_ok()) return fail(session, moved.status());
  if (!session.is_root()) return kFine;
  const Status rest = write_zeros(at, (*generation)->record().size);
  if (!rest.is_ok()) return fail(session, rest);
  return moved->lost_bytes > 0 ? kProblems : kFine;
}

}  // namespace

ExitCode export_files(Session& session) {
  const Options& options = session.options;
  if (options.all ? !options.files.empty() : options.files.empty() || options.path.empty()) {
    return fail(session, Status(Code::kArgument, "export takes FILE and PATH, or --all"));
  }
  Done done;
  const ExitCode code = for_each_file(session, [&](const FileRow* file, const std::string&) {
    return export_file(session, file, done);
  });
  if (session.is_root() && options.json) {
    Json out = json_head(session, "export");
    out["files"] = std::move(done.rows);
    print(out);
  }
  return code;
}

ExitCode cat(Session& session) {
  return for_each_file(
      session, [&](const FileRow* file, const std::string&) { return cat_file(session, file); });
}

}  // namespace dedup::ctl
