// heal: brings every chunk back to K copies, with a new generation of the same content.
#include "tools/dedupctl/heal.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <optional>

#include "base/fields.h"
#include "base/text.h"
#include "engine/admin.h"
#include "tools/dedupctl/check.h"
#include "tools/dedupctl/driver_file.h"
#include "tools/dedupctl/in_job.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/progress.h"
#include "tools/dedupctl/select.h"

namespace dedup::ctl {
namespace {

using Heal = decltype(&dedup_admin_heal);

// Collective.
Status heal_path(const std::string& path, unsigned replication, int flags,
                 dedup_admin_healed& healed) {
  const auto heal = reinterpret_cast<Heal>(::dlsym(RTLD_DEFAULT, "dedup_admin_heal"));
  dedup_error error{};
  const int error_class = heal(MPI_COMM_WORLD, path.c_str(), replication, flags, &healed, &error);
  return status_of_admin(error_class, error);
}

// The driver finds an older generation by its file's placeholder.
Status check_healable(const Catalog& catalog, const FileRow& row, const std::string& path) {
  const FileRow* const named = row.is_kept() ? catalog.row_of(row.record().kept_of.file) : &row;
  if (named == nullptr) {
    return {Code::kIo, path +
                           ": cannot be healed, as the file that it is of is not here; export "
                           "it (identity " +
                           row.identity.hex() + ")"};
  }
  const FileRow& file = *named;
  if (file.at_path == AtPath::kCached) {
    return {Code::kIo, path +
                           ": is a cache of the plain file at its path, which has everything: "
                           "dedupctl evict drops it"};
  }
  if (file.at_path == AtPath::kPlaceholder || file.at_path == AtPath::kNotShared ||
      path != (row.is_kept() ? row.path : file.path)) {
    return Status::ok();
  }
  return {Code::kIo,
          fmt::format("{}: cannot be healed, as its placeholder is not there ({}); export it "
                      "(identity {})",
                      file.path, name_of(file.at_path), file.identity.hex())};
}

std::string loss_text(const dedup_admin_healed& healed) {
  std::string out;
  if (healed.lost_chunks > 0) out += fmt::format("; {} CHUNKS ARE LOST", healed.lost_chunks);
  if (healed.unknown_bytes > 0) {
    out += fmt::format("; THE RECIPE OF {} BYTES IS LOST", healed.unknown_bytes);
  }
  return out + "; dedupctl check names the ranges";
}

// On rank 0: whether nothing that the catalog knows asks for a new generation. What a job writes is
// left to the driver to refuse.
bool may_be_healthy(const Session& session, std::size_t nodes, const FileRow& file) {
  const store::CommitRecord& record = file.record();
  const unsigned wanted =
      session.options.replication != 0 ? session.options.replication : record.replication;
  const bool is_written = std::any_of(file.on.begin(), file.on.end(),
                                      [](const FileOnStore& on) { return on.survey.writing; });
  // Who asks for copies gets them.
  const bool is_as_asked = session.options.replication == 0 || record.stripes.parities == 0;
  const bool is_on_all = std::min<std::size_t>(wanted, nodes) <= record.stores.size();
  return wanted == record.replication && is_as_asked && is_on_all && !is_written;
}

// Collective. The file that healing cannot make better here, on rank 0 what was found of it;
// nothing of others.
std::optional<CheckResult> find_healthy(Session& session, std::size_t nodes, bool verify,
                                        const FileRow* file) {
  std::uint64_t may_be = session.is_root() && may_be_healthy(session, nodes, *file) ? 1 : 0;
  session.ranks.sum({&may_be, 1});
  if (may_be == 0) return std::nullopt;
  auto checked = check_file(session, file, {verify, true});
  // Whether it can be healed is found by healing it.
  std::uint64_t is_sound = session.is_root() && checked.is_ok() && checked->is_sound() ? 1 : 0;
  session.ranks.sum({&is_sound, 1});
  if (is_sound == 0) return std::nullopt;
  return std::move(*checked);
}

ExitCode report_healthy(const Session& session, const FileRow& file, const std::string& path,
                        const CheckResult& result, Json& done) {
  const store::CommitRecord& record = file.record();
  const std::uint32_t lowest = result.holding.tally.lowest().as_copies();
  // Of fewer nodes than K all have all.
  const bool is_healthy = result.wanted >= plan::Redundancy::copies(record.replication);
  if (session.options.json) {
    done.push_back({{"path", path},
                    {"identity", file.identity.hex()},
                    {"healthy", is_healthy},
                    {"generation", record.number},
                    {"checked_chunks", result.chunks},
                    {"bad_chunks", 0},
                    {"copies_made", 0},
                    {"lost_chunks", 0},
                    {"unknown_bytes", 0},
                    {"lowest_copies", lowest},
                    {"wanted_copies", record.replication}});
  } else {
    print(
        fmt::format("{}: {}, left as it is: generation {}; {}{}\n", printable(path),
                    is_healthy ? "healthy" : "on as many nodes as there are", record.number,
                    result.chunks > 0 ? fmt::format("{} copies read, 0 bad; ", result.chunks) : "",
                    kept_text(result.in_stripes(record), lowest, record.replication)));
  }
  return is_healthy ? kFine : kProblems;
}

// `nodes`: of the job; those that have no store yet get one.
ExitCode heal_file(Session& session, std::size_t nodes, bool verify, const FileRow* file,
                   std::string path, Progress& progress, Json& done) {
  // Nothing is lost of what is at its path, too.
  std::uint64_t is_left =
      session.is_root() && session.options.files.empty() && file->at_path == AtPath::kCached ? 1
                                                                                             : 0;
  session.ranks.sum({&is_left, 1});
  if (is_left != 0) return kFine;
  const Status healable = session.ranks.share(
      session.is_root() ? check_healable(session.catalog, *file, path) : Status::ok(), path);
  if (!healable.is_ok()) return fail(session, healable);
  const auto healthy = find_healthy(session, nodes, verify, file);
  if (!healthy) progress.add(0);
  if (healthy) {
    return session.is_root() ? report_healthy(session, *file, path, *healthy, done) : kFine;
  }
  dedup_admin_healed healed{};
  const int flags = (verify ? DEDUP_ADMIN_VERIFY : 0) |
                    (session.options.accept_loss ? DEDUP_ADMIN_ACCEPT_LOSS : 0);
  const Status status = heal_path(path, session.options.replication, flags, healed);
  progress.hide();
  if (!status.is_ok()) return fail(session, status);
  if (!session.is_root()) return kFine;
  const std::uint64_t wanted =
      session.options.replication != 0 ? session.options.replication : file->record().replication;
  const bool has_chunks = healed.lowest_copies > 0;
  const bool is_lost = healed.lost_chunks > 0 || healed.unknown_bytes > 0;
  const bool is_whole = !is_lost && (!has_chunks || healed.lowest_copies >= wanted);
  if (session.options.json) {
    done.push_back({{"path", path},
                    {"identity", file->identity.hex()},
                    {"healthy", false},
                    {"generation", healed.generation},
                    {"checked_chunks", healed.checked},
                    {"bad_chunks", healed.bad},
                    {"copies_made", healed.copies_made},
                    {"lost_chunks", healed.lost_chunks},
                    {"unknown_bytes", healed.unknown_bytes},
                    {"lowest_copies", healed.lowest_copies},
                    {"wanted_copies", wanted}});
  } else {
    print(fmt::format(
        "{}: generation {}: {}{} copies made; {}{}\n", printable(path), healed.generation,
        verify ? fmt::format("{} copies read, {} bad; ", healed.checked, healed.bad) : "",
        healed.copies_made,
        kept_text(file->record().stripes.parities > 0, healed.lowest_copies, wanted),
        is_lost ? loss_text(healed) : ""));
  }
  return is_whole ? kFine : kProblems;
}

// A node of the job that has no store yet gets one. (Where no node has one, they are elsewhere.)
// How many.
std::size_t forget_absent_stores(Catalog& catalog) {
  if (catalog.stores.empty()) return 0;
  return std::erase_if(catalog.troubles, [](const Trouble& trouble) { return trouble.is_absent; });
}

// On rank 0: of those that are to be healed, as far as they are there.
std::uint64_t bytes_of_files(const Session& session) {
  std::uint64_t bytes = 0;
  for (const std::string& name : session.options.files) {
    const auto found = session.catalog.find(name);
    if (found.is_ok() && (*found)->exists()) bytes += (*found)->record().size;
  }
  if (!session.options.files.empty()) return bytes;
  for (const FileRow& row : session.catalog.files) {
    if (row.exists()) bytes += row.record().size;
  }
  return bytes;
}

ExitCode heal_files(Session& session, bool verify, const char* command) {
  const Status driver = check_driver();
  if (!driver.is_ok()) return fail(session, driver);
  const std::size_t absent = forget_absent_stores(session.catalog);
  const std::size_t nodes = session.catalog.stores.size() + absent;
  Json done = Json::array();
  // The driver tells nothing before a file is healed.
  Progress progress(session, "healing", session.is_root() ? bytes_of_files(session) : 0);
  const ExitCode code = for_each_file(session, [&](const FileRow* file, const std::string& path) {
    const ExitCode healed = heal_file(session, nodes, verify, file, path, progress, done);
    if (file != nullptr) progress.count(file->record().size);
    return healed;
  });
  if (session.is_root() && session.options.json) {
    Json out = json_head(session, command);
    out["files"] = std::move(done);
    print(out);
  }
  return code;
}

}  // namespace

ExitCode heal(Session& session) {
  return heal_files(session, session.options.verify, "heal");
}

ExitCode repair(Session& session) {
  return heal_files(session, true, "check");
}

}  // namespace dedup::ctl
