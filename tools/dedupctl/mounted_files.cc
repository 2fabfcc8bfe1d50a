#include "tools/dedupctl/mounted_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "base/warn.h"
#include "store/fs.h"
#include "store/kept.h"
#include "store/real_path.h"

namespace dedup::ctl {
namespace {

constexpr std::size_t kRangesSaid = 16;  // of an open file
constexpr int kTries = 5;                // to open what jobs replace meanwhile

Status not_there(const std::string& path) {
  return {Code::kNotFound, path + ": no such file"};
}

// As `dedupctl export --all` has it: of a file whose placeholder is found nowhere, or whose path
// something else has taken, its user has removed it.
bool is_shown(const FileRow& file) {
  return file.exists() && !file.deleted && !file.is_kept() && file.at_path != AtPath::kNothing &&
         file.at_path != AtPath::kOther;
}

std::set<Id128> uuids_of(const LocalStores& local) {
  std::set<Id128> uuids;
  for (const LocalStore& one : local.stores) uuids.insert(one.store->uuid());
  return uuids;
}

// What of a path is within kGenerations; none if nothing is.
std::optional<std::string> within_generations(const std::string& path) {
  if (!path.starts_with(MountedFiles::kGenerations)) return std::nullopt;
  std::string rest = path.substr(MountedFiles::kGenerations.size());
  return rest.empty() || rest.front() == '/' ? std::optional(std::move(rest)) : std::nullopt;
}

// `file` is what `row` is, or an older generation of it.
ShownFile shown(const FileRow& file, const FileRow& row) {
  ShownFile shown;
  shown.identity = file.identity;
  shown.attempt = file.record().attempt;
  shown.size = file.record().size;
  shown.time = file.record().time;
  shown.permissions = S_IRUSR;
  shown.owner = ::geteuid();
  shown.group = ::getegid();
  if (row.stands_at.empty()) return shown;
  const auto placeholder = store::fs::open_read(row.stands_at);
  if (!placeholder.is_ok()) return shown;
  if (const auto info = store::fs::info(*placeholder); info.is_ok()) {
    shown.permissions = info->permissions & (S_IRUSR | S_IRGRP | S_IROTH);
    shown.owner = info->owner;
    shown.group = info->group;
  }
  return shown;
}

}  // namespace

// ---- OpenFile -----------------------------------------------------------------------------------

Status OpenFile::read(std::uint64_t offset, std::span<std::byte> out) {
  const auto lost = reader_.read(offset, out);
  DEDUP_TRY(lost.status().with_context(path_));
  for (const ByteRange& range : *lost) {
    const bool is_said = std::any_of(said_.begin(), said_.end(), [&](const ByteRange& said) {
      return said.offset <= range.offset && range.end() <= said.end();
    });
    if (is_said || said_.size() > kRangesSaid) continue;
    said_.push_back(range);
    say_error(printable(
        said_.size() > kRangesSaid
            ? fmt::format("{}: more of it is lost; dedupctl check lists all ranges", path_)
            : fmt::format("{}: {} {} to {}; missing: {}", path_,
                          reader_.asks_others()
                              ? "the stores here and the job's services do not have bytes"
                              : "the stores here do not have bytes",
                          range.offset, range.end() - 1, reader_.generation().missing_text())));
  }
  return lost->empty() ? Status::ok() : Status(Code::kIo, path_ + ": data is lost");
}

// ---- MountedFiles -------------------------------------------------------------------------------

MountedFiles::MountedFiles(const Ranks& ranks, std::function<LocalStores()> find_stores,
                           std::vector<std::string> search, FindElsewhere find_elsewhere)
    : ranks_(ranks),
      find_stores_(std::move(find_stores)),
      search_(std::move(search)),
      find_elsewhere_(std::move(find_elsewhere)) {
  scan();
}

void MountedFiles::scan() {
  const auto begin = Clock::now();
  const auto stores = std::make_shared<Upkeep>(Upkeep{ranks_, find_stores_(), {}});
  found_ = uuids_of(stores->local);
  stores->catalog = make_catalog(ranks_, stores->local, search_);
  names_ = {};
  generations_ = {};
  const Catalog& catalog = stores->catalog;
  for (const Trouble& trouble : catalog.troubles) say_once(trouble.message);
  for (const FileRow& file : catalog.files) {
    if (!file.exists() && !file.deleted && file.chosen_status.code() != Code::kNotFound) {
      say_once(file.chosen_status.message());
    }
    if (!is_shown(file)) continue;
    add_name(names_, catalog.place_of(file));
    for (const FileRow* const kept : catalog.kept_of(file)) {
      add_name(generations_, catalog.place_of(*kept));
    }
  }
  stores_ = stores;
  scanned_ = Clock::now();
  scan_took_ = scanned_ - begin;
}

bool MountedFiles::scan_if_old() {
  const auto age = std::max<Clock::duration>(std::chrono::seconds(1), 10 * scan_took_);
  const bool is_old = Clock::now() - scanned_ >= age;
  if (is_old) scan();
  return is_old;
}

bool MountedFiles::scan_if_stores_changed() {
  const bool changed = uuids_of(find_stores_()) != found_;
  if (changed) scan();
  return changed;
}

void MountedFiles::add_name(NameTree& tree, const std::string& path) {
  const Status status = within_generations(path)
                            ? Status(Code::kBadFile, path + ": older generations have its place")
                            : tree.add(path);
  if (!status.is_ok()) say_once("not shown: " + status.message());
}

void MountedFiles::say_once(const std::string& text) {
  if (said_.insert(text).second) warn(printable(text));
}

Result<NameTree::Entries> MountedFiles::list(const std::string& path) {
  scan_if_old();
  const auto within = within_generations(path);
  const NameTree::Entries* const entries =
      within ? generations_.directory(*within) : names_.directory(path);
  return entries == nullptr ? Result<NameTree::Entries>(not_there(path)) : *entries;
}

bool MountedFiles::is_directory(const std::string& path) const {
  const auto within = within_generations(path);
  return (within ? generations_.directory(*within) : names_.directory(path)) != nullptr;
}

Result<std::optional<ShownFile>> MountedFiles::look(const std::string& path) {
  auto found = look_once(path);
  if (found.is_ok() || found.status().code() == Code::kConflict) return found;
  if (found.status().code() != Code::kNotFound) {
    // A store that cannot be read any more is left out from then on.
    scan();
    return look_once(path);
  }
  // It may be the first file of a directory, or of a node.
  const std::string real = within_generations(path).value_or(path);
  const auto info = store::fs::info(real);
  bool scanned = false;
  if (info.is_ok() && info->is_directory) {
    scan();
    scanned = true;
  } else {
    const bool is_named = info.is_ok() && store::is_placeholder_at(real);
    scanned = (is_named && scan_if_stores_changed()) || scan_if_old();
  }
  return scanned ? look_once(path) : found;
}

Result<std::optional<ShownFile>> MountedFiles::look_once(const std::string& path) {
  if (is_directory(path)) return std::optional<ShownFile>();
  if (const auto within = within_generations(path)) {
    DEDUP_ASSIGN(ShownFile kept, look_at_kept(*within));
    return std::optional(kept);
  }
  DEDUP_ASSIGN(const FileRow row, row_at(path));
  return std::optional(shown(row, row));
}

Result<ShownFile> MountedFiles::look_at_kept(const std::string& path) {
  const auto name = store::parse_kept_path(path);
  if (!name) return not_there(path);
  DEDUP_ASSIGN(const FileRow newest, row_at(name->path));
  for (const store::KeptGeneration& kept : newest.record().kept) {
    if (kept.number != name->number) continue;
    DEDUP_ASSIGN(const FileRow file,
                 row_of(store::kept_identity(newest.identity, kept.attempt), path));
    return file.exists() ? Result(shown(file, newest)) : not_there(path);
  }
  return not_there(path);
}

// The file that is shown there.
Result<FileRow> MountedFiles::row_at(const std::string& path) {
  DEDUP_ASSIGN(const std::vector<Id128> identities, identities_at(path));
  std::optional<FileRow> found;
  for (const Id128& identity : identities) {
    DEDUP_ASSIGN(FileRow row, row_of(identity, path));
    if (row.chosen_status.code() == Code::kConflict) return row.chosen_status;
    if (!is_shown(row) || stores_->catalog.place_of(row) != path) continue;
    if (found) {
      return Status(Code::kConflict, path + ": two files have this name: identities " +
                                         found->identity.hex() + " and " + identity.hex());
    }
    found = std::move(row);
  }
  return found ? Result(*std::move(found)) : not_there(path);
}

// Of all files that may be there: by the placeholder, or as the stores have it.
Result<std::vector<Id128>> MountedFiles::identities_at(const std::string& path) const {
  const auto state = store::look_at(path);
  if (state.is_ok() && state->kind == store::PathState::Kind::kPlaceholder) {
    return std::vector{state->placeholder.identity};
  }
  std::set<Id128> identities;
  for (const LocalStore& local : stores_->local.stores) {
    DEDUP_ASSIGN(const auto entry, local.store->find(path));
    for (const store::CommitRecord& record : entry.records) identities.insert(record.identity);
  }
  return std::vector(identities.begin(), identities.end());
}

// As it is now, if it is at this path.
Result<FileRow> MountedFiles::row_of(const Id128& identity, const std::string& path) {
  return look_again(ranks_, stores_->local, stores_->catalog, identity, path);
}

Result<std::shared_ptr<OpenFile>> MountedFiles::open(const std::string& path,
                                                     const ShownFile& file) {
  std::erase_if(open_, [](const auto& entry) { return entry.second.expired(); });
  const std::pair key(file.identity, file.attempt);
  if (const auto it = open_.find(key); it != open_.end()) {
    if (auto open = it->second.lock()) return open;
  }
  DEDUP_ASSIGN(auto generation, open_generation(path, file));
  for (const Problem& problem : generation->problems()) {
    say_once(path + ": node " + problem.node + ": " + problem.text);
  }
  auto elsewhere = find_elsewhere_ ? find_elsewhere_(generation->record()) : nullptr;
  auto open = std::make_shared<OpenFile>(path, stores_, std::move(generation), cache_,
                                         std::move(elsewhere));
  open_[key] = open;
  return open;
}

Result<std::unique_ptr<Generation>> MountedFiles::open_generation(const std::string& path,
                                                                  const ShownFile& file) {
  for (int i = 0; i < kTries; ++i) {
    DEDUP_ASSIGN(const FileRow row, row_of(file.identity, path));
    if (!row.exists() || row.record().attempt != file.attempt) {
      return Status(Code::kNotFound, "another generation by now");
    }
    const auto standings = stores_->catalog.standings(row);
    const bool lacks =
        std::find(standings.begin(), standings.end(), Standing::kMissing) != standings.end();
    if (lacks && scan_if_stores_changed()) continue;
    DEDUP_ASSIGN(auto generation, Generation::open(ranks_, stores_->local, stores_->catalog, &row));
    const auto here = std::count(standings.begin(), standings.end(), Standing::kHere);
    // What a store had a moment ago is gone: a job has just replaced it.
    if (generation->parts().size() >= static_cast<std::size_t>(here)) return generation;
  }
  return Status(Code::kFileInUse, path + ": jobs commit to the file all the time");
}

}  // namespace dedup::ctl
