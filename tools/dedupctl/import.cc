// import: a plain file into the stores.
#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/warn.h"
#include "engine/admin.h"
#include "store/fs.h"
#include "store/real_path.h"
#include "tools/dedupctl/driver_file.h"
#include "tools/dedupctl/in_job.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/progress.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

constexpr std::uint64_t kAtOnce = std::uint64_t{8} << 20;

// What the driver is asked for.
std::vector<std::pair<std::string, std::string>> hints_of(const Options& options) {
  std::vector<std::pair<std::string, std::string>> hints;
  if (options.replication != 0) {
    hints.emplace_back("dedup_replication", std::to_string(options.replication));
  }
  if (!options.redundancy.empty()) hints.emplace_back("dedup_redundancy", options.redundancy);
  return hints;
}

// On rank 0, what is to be imported must be a plain file with data.
Result<std::uint64_t> size_of_source(const std::string& path) {
  DEDUP_ASSIGN(const store::PathState state, store::look_at(path));
  using Kind = store::PathState::Kind;
  if (state.kind == Kind::kPlaceholder) {
    return Status(Code::kFileExists, path + ": is in the stores already");
  }
  if (state.kind != Kind::kPlain) return Status(Code::kNoSuchFile, path + ": no such file");
  if (state.stamp.size == 0) {
    return Status(Code::kIo, path + ": is empty; there is nothing to put into the stores");
  }
  return state.stamp.size;
}

Status is_there_already(const std::string& path) {
  return {Code::kFileExists, path + ": is there already; --force replaces it"};
}

// What is there is replaced by the commit of what takes its place, and not before. Without --force
// the driver looks once more, when nobody else can come between.
Result<std::unique_ptr<DriverFile>> open_target(const Options& options, const std::string& path) {
  const int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY | (options.force ? 0 : MPI_MODE_EXCL);
  auto file = DriverFile::open(path, mode, hints_of(options));
  if (file.status().code() == Code::kFileExists) return is_there_already(path);
  if (file.is_ok() && options.force) DEDUP_TRY((*file)->clear());
  return file;
}

// The empty file that opening made, for which another attempt would have to be forced.
void remove_made(const std::string& path) {
  const auto state = store::look_at(path);
  if (!state.is_ok() || state->kind != store::PathState::Kind::kPlain) return;
  if (state->stamp.size == 0) static_cast<void>(store::fs::remove_file(path));
}

// Ends the job, as closing the file would commit the part of it that was written.
[[noreturn]] void give_up(Session& session, const std::string& path, const Status& status) {
  if (session.is_root() && !session.options.force) remove_made(path);
  const ExitCode code = fail(session, status);
  wait_until_read();
  MPI_Barrier(MPI_COMM_WORLD);  // so that it is said before anybody ends the job
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();
}

// Collective. Each rank reads and writes a contiguous part.
Status copy(Session& session, const std::string& from, std::uint64_t size, DriverFile& to) {
  const Ranks& ranks = session.ranks;
  auto source = store::fs::open_read(from);
  DEDUP_TRY(ranks.agree(source.status()));
  const std::uint64_t pieces = (size + kAtOnce - 1) / kAtOnce;
  const auto count = static_cast<std::uint64_t>(ranks.size());
  const std::uint64_t each = (pieces + count - 1) / count;
  const std::uint64_t first = static_cast<std::uint64_t>(ranks.rank()) * each;
  Progress progress(session, from, size);
  Bytes buffer;
  for (std::uint64_t i = 0; i < each; ++i) {
    const std::uint64_t begin = std::min(size, (first + i) * kAtOnce);
    buffer.resize(std::min(kAtOnce, size - begin));
    Status status;
    if (!buffer.empty()) status = store::fs::read_at(*source, begin, buffer);
    DEDUP_TRY(ranks.agree(status));
    DEDUP_TRY(ranks.agree(to.write_all(begin, buffer)));
    progress.add(kAtOnce * count);
  }
  return Status::ok();
}

Status import_in_place(Session& session, const std::string& path) {
  DEDUP_ASSIGN(const auto file, DriverFile::open(path, MPI_MODE_RDWR, hints_of(session.options)));
  DEDUP_TRY(session.ranks.agree(session.is_root() ? file->touch() : Status::ok()));
  return file->sync();
}

Status import_cached(const std::string& path) {
  const auto fetch =
      reinterpret_cast<decltype(&dedup_admin_fetch)>(::dlsym(RTLD_DEFAULT, "dedup_admin_fetch"));
  dedup_error error{};
  const int error_class = fetch(MPI_COMM_WORLD, path.c_str(), &error);
  return status_of_admin(error_class, error);
}

Status import_as(Session& session, const std::string& from, std::uint64_t size,
                 const std::string& path) {
  {
    DEDUP_ASSIGN(const auto file, open_target(session.options, path));
    Status written = copy(session, from, size, *file);
    if (written.is_ok()) written = file->sync();
    if (!written.is_ok()) give_up(session, path, written);
  }
  if (!session.is_root()) return Status::ok();
  namespace filesystem = std::filesystem;
  std::error_code error;
  const auto mode = filesystem::status(from, error).permissions();
  // Where the nodes share no file system there is no placeholder to have it.
  if (!error && filesystem::exists(path, error)) filesystem::permissions(path, mode, error);
  return error ? Status::from_errno(error.value(), "cannot set the permissions of " + path)
               : Status::ok();
}

}  // namespace

ExitCode import_file(Session& session) {
  const Status driver = check_driver();
  if (!driver.is_ok()) return fail(session, driver);
  const Options& options = session.options;
  const std::string from = absolute_path(options.path);
  const std::string to =
      options.files.empty() ? from : absolute_path(without_prefix(options.files[0]));
  std::uint64_t size = 0;
  Status status;
  if (session.is_root()) {
    const auto found = size_of_source(from);
    status = found.status();
    if (status.is_ok()) size = *found;
  }
  status = session.ranks.agree(status);
  session.ranks.sum({&size, 1});
  if (status.is_ok() && options.cache && from != to) {
    status = Status(Code::kArgument, "import --cache takes no FILE: the plain file stays at PATH");
  }
  if (status.is_ok() && options.cache &&
      (options.replication != 0 || !options.redundancy.empty())) {
    status = Status(Code::kArgument,
                    "import --cache takes this from DEDUP_REPLICATION and DEDUP_REDUNDANCY");
  }
  if (status.is_ok() && options.cache) {
    status = import_cached(from);
  } else if (status.is_ok()) {
    status = from == to ? import_in_place(session, from) : import_as(session, from, size, to);
  }
  status = session.ranks.agree(status);
  if (!status.is_ok()) return fail(session, status);
  if (session.is_root() && options.json) {
    Json out = json_head(session, "import");
    out["imported"] = from;
    out["path"] = to;
    out["size"] = size;
    print(out);
  }
  return kFine;
}

}  // namespace dedup::ctl
