#include "store/files/file_store.h"

#include <algorithm>

#include "base/codec.h"
#include "store/files/open_store.h"
#include "store/files/path_entries.h"
#include "store/flush.h"
#include "store/format.h"

namespace dedup::store {
namespace {

// What is left of a file that was renamed to be dropped, here or by a process that died since.
Status finish_drop(const Layout& layout, const Id128& identity, std::uint64_t* freed = nullptr) {
  const std::string directory = layout.dropped(identity);
  DEDUP_ASSIGN(const auto names, list_if_there(directory));
  for (const auto& name : names) {
    if (!name.starts_with(kPathMarkPrefix)) continue;
    DEDUP_TRY(remove_from_path_entry(layout, name.substr(kPathMarkPrefix.size()), identity));
  }
  return fs::remove_tree(directory, freed);
}

Status finish_drops(const Layout& layout) {
  DEDUP_ASSIGN(const auto names, list_if_there(layout.files()));
  for (const auto& name : names) {
    if (const auto identity = parse_id_name(name, kDroppedPrefix)) {
      DEDUP_TRY(finish_drop(layout, *identity));
    }
  }
  return Status::ok();
}

Result<fs::File> lock_marks(const Layout& layout) {
  DEDUP_ASSIGN(fs::File directory, fs::open_directory(layout.marks()));
  DEDUP_TRY(fs::lock_exclusively(directory));
  return directory;
}

// What processes left that died while they put a mark.
Status remove_half_marks(const Layout& layout) {
  const auto is_half = [](const std::string& name) { return !parse_id_name(name); };
  DEDUP_ASSIGN(auto names, list_if_there(layout.marks()));
  if (std::none_of(names.begin(), names.end(), is_half)) return Status::ok();
  DEDUP_ASSIGN(const fs::File turn, lock_marks(layout));
  DEDUP_ASSIGN(names, fs::list(layout.marks()));
  for (const auto& name : names) {
    if (is_half(name)) DEDUP_TRY(fs::remove_file(layout.marks() + "/" + name));
  }
  return Status::ok();
}

Bytes encode_mark(const Id128& identity, const std::vector<Id128>& stores_left) {
  Encoder out;
  format::put_start(out, format::kMark);
  out.put(identity);
  out.put(static_cast<std::uint32_t>(stores_left.size()));
  for (const auto& store : stores_left) out.put(store);
  format::put_checksum(out);
  return out.take();
}

// By who has the turn of the marks. None are left: no mark.
Status write_mark(const Layout& layout, const Id128& identity,
                  const std::vector<Id128>& stores_left) {
  const std::string path = layout.mark(identity);
  if (!stores_left.empty()) {
    return fs::write_file_atomically(path, encode_mark(identity, stores_left));
  }
  DEDUP_TRY(fs::remove_file(path));
  return fs::sync_directory(layout.marks());
}

Result<std::vector<Id128>> decode_mark(std::span<const std::byte> bytes, const std::string& path,
                                       const Id128& identity) {
  Decoder start(bytes);
  DEDUP_TRY(format::check_start(start, format::kMark, path));
  if (!format::take_checksum(bytes) || bytes.size() < format::kStartSize) {
    return format::corrupt(path, "damaged: its checksum does not hold");
  }
  Decoder in(bytes.subspan(format::kStartSize));
  if (in.get_id() != identity) return format::corrupt(path, "mark of another file");
  std::vector<Id128> stores(in.get_count(16));
  for (auto& store : stores) store = in.get_id();
  if (!in.ok() || !in.at_end()) return format::corrupt(path, "damaged");
  return stores;
}

}  // namespace

Result<std::vector<std::string>> list_if_there(const std::string& path) {
  auto names = fs::list(path);
  if (names.status().code() == Code::kNoSuchFile) return std::vector<std::string>{};
  return names;
}

Result<std::unique_ptr<fs::File>> lock_path(const std::string& path, bool exclusive) {
  auto opened = fs::open_read(path);
  if (opened.status().code() == Code::kNoSuchFile) {
    return Status(Code::kNotFound, path + ": not there");
  }
  DEDUP_TRY(opened.status());
  DEDUP_ASSIGN(const bool locked, fs::try_lock(*opened, exclusive));
  DEDUP_ASSIGN(const fs::Info held, fs::info(*opened));
  const auto named = fs::info(path);
  if (named.status().code() == Code::kNoSuchFile ||
      (named.is_ok() && (named->inode != held.inode || named->device != held.device))) {
    return Status(Code::kNotFound, path + ": removed meanwhile");
  }
  DEDUP_TRY(named.status());
  if (!locked) return Status(Code::kFileInUse, path + ": locked by another job");
  return std::make_unique<fs::File>(std::move(*opened));
}

namespace {

class FileLock final : public Store::Lock {
 public:
  FileLock() = default;
  explicit FileLock(std::unique_ptr<fs::File> file) { add(std::move(file)); }
  void add(std::unique_ptr<fs::File> file) { files_.push_back(std::move(file)); }

 private:
  std::vector<std::unique_ptr<fs::File>> files_;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& directory, bool create) {
  DEDUP_ASSIGN(OpenedStore opened, open_store_directory(directory, create));
  if (create) {
    DEDUP_TRY(finish_drops(opened.layout));
    DEDUP_TRY(remove_half_marks(opened.layout));
  }
  return std::unique_ptr<Store>(std::make_unique<FileStore>(std::move(opened.layout), opened.uuid));
}

const std::string& FileStore::directory() const {
  return layout_.root;
}
const Id128& FileStore::uuid() const {
  return uuid_;
}

Result<FileStore::PathEntry> FileStore::find(const std::string& path, const Id128& identity) const {
  PathEntry found;
  DEDUP_ASSIGN(auto identities, read_path_entry(layout_, path));
  const bool listed = std::find(identities.begin(), identities.end(), identity) != identities.end();
  if (!identity.is_zero() && !listed) identities.push_back(identity);
  for (const auto& one : identities) {
    DEDUP_ASSIGN(auto records, records(one));
    std::move(records.newest.begin(), records.newest.end(), std::back_inserter(found.records));
    std::move(records.damaged.begin(), records.damaged.end(), std::back_inserter(found.damaged));
  }
  DEDUP_ASSIGN(found.deleted, marks());
  return found;
}

Result<std::vector<CommitRecord>> FileStore::list() const {
  std::vector<CommitRecord> all;
  DEDUP_ASSIGN(const auto all_identities, identities());
  for (const Id128& identity : all_identities) {
    DEDUP_ASSIGN(auto records, records(identity));
    std::move(records.newest.begin(), records.newest.end(), std::back_inserter(all));
  }
  return all;
}

Result<std::vector<std::string>> FileStore::paths(const Id128& identity) const {
  return paths_of(layout_, identity);
}

Result<std::set<std::string>> FileStore::directories() const {
  std::set<std::string> directories;
  DEDUP_ASSIGN(const auto paths, list_paths(layout_));
  for (const std::string& path : paths) directories.insert(fs::directory_of(path));
  return directories;
}

Result<std::vector<Id128>> FileStore::identities() const {
  std::vector<Id128> found;
  DEDUP_ASSIGN(const auto names, list_if_there(layout_.files()));
  for (const auto& name : names) {
    if (const auto identity = parse_id_name(name)) found.push_back(*identity);
  }
  return found;
}

Result<bool> FileStore::has_file(const Id128& identity) const {
  return fs::exists(layout_.file(identity));
}

Status FileStore::create_file(const Id128& identity, const std::string& path) {
  for (const auto& directory : {layout_.file(identity), layout_.segments(identity),
                                layout_.logs(identity), layout_.generations(identity)}) {
    DEDUP_TRY(fs::make_directory(directory).status());
  }
  DEDUP_TRY(fs::open_or_create(layout_.file_lock(identity)).status());
  const std::string key = path_key(path);
  DEDUP_TRY(fs::open_or_create(layout_.path_mark(identity, key)).status());
  unflushed_names_[identity].insert(key);
  return add_to_path_entry(layout_, path, identity);
}

Status FileStore::add_path(const Id128& identity, const std::string& path) {
  const std::string key = path_key(path);
  const std::string mark = layout_.path_mark(identity, key);
  DEDUP_ASSIGN(const bool is_known, fs::exists(mark));
  if (is_known) return Status::ok();
  DEDUP_TRY(fs::open_or_create(mark).status());
  DEDUP_TRY(add_to_path_entry(layout_, path, identity));
  return flush_together({layout_.path_entry(key)}, {layout_.file(identity), layout_.paths()});
}

Result<std::uint64_t> FileStore::drop_file(const Id128& identity, std::unique_ptr<Lock>) {
  close_readers(identity);
  unflushed_names_.erase(identity);
  DEDUP_ASSIGN(const auto attempts, attempt_ids(identity));
  for (const Id128& attempt : attempts) remove_copies(layout_, identity, attempt);
  std::uint64_t freed = 0;
  DEDUP_TRY(finish_drop(layout_, identity, &freed));
  const Status renamed = fs::rename(layout_.file(identity), layout_.dropped(identity));
  if (renamed.code() == Code::kNoSuchFile) return freed;
  DEDUP_TRY(renamed);
  DEDUP_TRY(fs::sync_directory(layout_.files()));
  DEDUP_TRY(finish_drop(layout_, identity, &freed));
  return freed;
}

Result<std::uint64_t> FileStore::drop_file(const Id128& identity) {
  auto lock = lock_whole(identity, nullptr);
  if (lock.status().code() != Code::kNoSuchFile) {
    DEDUP_TRY(lock.status());
    return drop_file(identity, std::move(*lock));
  }
  std::uint64_t freed = 0;
  DEDUP_TRY(finish_drop(layout_, identity, &freed));
  return freed;
}

Status FileStore::put_mark(const Id128& identity, const std::vector<Id128>& stores_left) {
  DEDUP_ASSIGN(const fs::File turn, lock_marks(layout_));
  return write_mark(layout_, identity, stores_left);
}

Result<std::vector<Id128>> FileStore::marks() const {
  std::vector<Id128> identities;
  DEDUP_ASSIGN(const auto names, list_if_there(layout_.marks()));
  for (const auto& name : names) {
    if (const auto identity = parse_id_name(name)) identities.push_back(*identity);
  }
  return identities;
}

Result<std::vector<Id128>> FileStore::mark_stores(const Id128& identity) const {
  const std::string path = layout_.mark(identity);
  const auto bytes = fs::read_file(path);
  if (bytes.status().code() == Code::kNoSuchFile) {
    return Status(Code::kNotFound, path + ": no such mark");
  }
  DEDUP_TRY(bytes.status());
  return decode_mark(*bytes, path, identity);
}

Status FileStore::shorten_mark(const Id128& identity,
                               const std::function<bool(const Id128&)>& is_done) {
  DEDUP_ASSIGN(const fs::File turn, lock_marks(layout_));
  auto left = mark_stores(identity);
  if (left.status().code() == Code::kNotFound) return Status::ok();
  DEDUP_TRY(left.status());
  if (std::erase_if(*left, is_done) == 0) return Status::ok();
  return write_mark(layout_, identity, *left);
}

Result<std::unique_ptr<Store::Lock>> FileStore::lock_for_writing(const Id128& identity) {
  const std::string path = layout_.file_lock(identity);
  auto lock = lock_path(path, true);
  if (lock.status().code() == Code::kNotFound) {
    // A loss of power may leave the directory of a file that was being created without it.
    const auto made = fs::open_or_create(path);
    if (made.status().code() == Code::kNoSuchFile) {
      return Status(Code::kNoSuchFile, layout_.file(identity) + ": no such file in the store");
    }
    DEDUP_TRY(made.status());
    lock = lock_path(path, true);
  }
  if (lock.status().code() == Code::kNotFound) {
    return Status(Code::kNoSuchFile, layout_.file(identity) + ": no such file in the store");
  }
  DEDUP_TRY(lock.status());
  return std::unique_ptr<Lock>(std::make_unique<FileLock>(std::move(*lock)));
}

Result<std::unique_ptr<Store::Lock>> FileStore::lock_whole(const Id128& identity,
                                                           std::unique_ptr<Lock> writing) {
  // Who creates a file has the turn until it has locked it.
  DEDUP_ASSIGN(const fs::File turn, fs::open_directory(layout_.files()));
  DEDUP_TRY(fs::lock_exclusively(turn));
  DEDUP_ASSIGN(const bool is_there, fs::exists(layout_.file(identity)));
  if (!is_there) {
    return Status(Code::kNoSuchFile, layout_.file(identity) + ": no such file in the store");
  }
  std::vector<std::string> paths;
  if (!writing) paths.push_back(layout_.file_lock(identity));
  DEDUP_ASSIGN(const auto attempts, attempt_ids(identity));
  for (const auto& attempt : attempts) paths.push_back(layout_.generation_lock(identity, attempt));
  if (!writing) writing = std::make_unique<FileLock>();
  auto& whole = static_cast<FileLock&>(*writing);
  for (const auto& path : paths) {
    auto lock = lock_path(path, true);
    // No lock file: of a creation that died half-way, nobody can use it.
    if (lock.status().code() == Code::kNotFound) continue;
    DEDUP_TRY(lock.status());
    whole.add(std::move(*lock));
  }
  return writing;
}

Result<std::unique_ptr<Store::Lock>> FileStore::create_for_writing(const Id128& identity,
                                                                   const std::string& path,
                                                                   const std::vector<Id128>& own,
                                                                   bool by_path) {
  DEDUP_ASSIGN(const fs::File turn, fs::open_directory(layout_.files()));
  DEDUP_TRY(fs::lock_exclusively(turn));
  DEDUP_ASSIGN(const auto identities, read_path_entry(layout_, path));
  for (const auto& other : identities) {
    if (other == identity || std::find(own.begin(), own.end(), other) != own.end()) continue;
    DEDUP_ASSIGN(const auto records, records(other));
    if (by_path && !records.newest.empty()) {
      return Status(Code::kFileExists, path + ": another job committed the file meanwhile");
    }
    const auto free = lock_path(layout_.file_lock(other), true);
    if (free.status().code() == Code::kFileInUse) {
      return Status(Code::kFileInUse, path + ": another job is just creating the file");
    }
    if (free.status().code() != Code::kNotFound) DEDUP_TRY(free.status());
  }
  DEDUP_TRY(create_file(identity, path));
  return lock_for_writing(identity);
}

Result<std::unique_ptr<Store::Lock>> FileStore::lock_generation(const Id128& identity,
                                                                const Id128& attempt) {
  DEDUP_ASSIGN(auto lock, lock_path(layout_.generation_lock(identity, attempt), false));
  return std::unique_ptr<Lock>(std::make_unique<FileLock>(std::move(lock)));
}

}  // namespace dedup::store
