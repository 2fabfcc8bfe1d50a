#include "store/files/path_entries.h"

#include <algorithm>

#include "base/codec.h"
#include "store/format.h"
#include "store/fs.h"

namespace dedup::store {
namespace {

struct Entry {
  std::string path;
  std::vector<Id128> identities;
};

Bytes encode(const Entry& entry) {
  Encoder out;
  format::put_start(out, format::kPathEntry);
  out.put(std::string_view(entry.path));
  out.put(static_cast<std::uint32_t>(entry.identities.size()));
  for (const auto& identity : entry.identities) out.put(identity);
  format::put_checksum(out);
  return out.take();
}

// `file` names the entry in messages.
Result<Entry> decode(std::span<const std::byte> bytes, const std::string& file) {
  Decoder start(bytes);
  DEDUP_TRY(format::check_start(start, format::kPathEntry, file));
  if (!format::take_checksum(bytes) || bytes.size() < format::kStartSize) {
    return format::corrupt(file, "damaged: its checksum does not hold");
  }
  Decoder in(bytes.subspan(format::kStartSize));
  Entry entry;
  entry.path = in.get_string();
  entry.identities.resize(in.get_count(16));
  for (auto& identity : entry.identities) identity = in.get_id();
  if (!in.ok() || !in.at_end()) return format::corrupt(file, "damaged");
  return entry;
}

// kNotFound if there is none.
Result<Entry> load(const Layout& layout, const std::string& key) {
  const std::string file = layout.path_entry(key);
  const auto bytes = fs::read_file(file);
  if (!bytes.is_ok()) {
    if (bytes.status().code() != Code::kNoSuchFile) return bytes.status();
    return Status(Code::kNotFound, file + ": no such path entry");
  }
  DEDUP_ASSIGN(Entry entry, decode(*bytes, file));
  if (path_key(entry.path) != key) return format::corrupt(file, "entry of another path");
  return entry;
}

// What the files say for a path whose entry is damaged.
Result<std::vector<Id128>> search(const Layout& layout, const std::string& key) {
  std::vector<Id128> identities;
  DEDUP_ASSIGN(const auto names, fs::list(layout.files()));
  for (const auto& name : names) {
    const auto identity = parse_id_name(name);
    if (!identity) continue;
    DEDUP_ASSIGN(const bool named, fs::exists(layout.path_mark(*identity, key)));
    if (named) identities.push_back(*identity);
  }
  return identities;
}

Result<fs::File> lock_entries(const Layout& layout) {
  DEDUP_ASSIGN(fs::File directory, fs::open_directory(layout.paths()));
  DEDUP_TRY(fs::lock_exclusively(directory));
  return directory;
}

}  // namespace

std::string path_key(std::string_view path) {
  const Digest digest = format::sha256(std::as_bytes(std::span(path)));
  return hex_string(digest.data(), digest.size());
}

Result<std::vector<Id128>> read_path_entry(const Layout& layout, const std::string& path) {
  const std::string key = path_key(path);
  auto entry = load(layout, key);
  if (entry.is_ok()) return std::move(entry->identities);
  if (entry.status().code() == Code::kNotFound) return std::vector<Id128>{};
  if (entry.status().code() == Code::kCorrupt) return search(layout, key);
  return entry.status();
}

Result<std::vector<std::string>> paths_of(const Layout& layout, const Id128& identity) {
  std::vector<std::string> paths;
  const auto names = fs::list(layout.file(identity));
  if (names.status().code() == Code::kNoSuchFile) return paths;
  DEDUP_TRY(names.status());
  for (const std::string& name : *names) {
    if (!name.starts_with(kPathMarkPrefix)) continue;
    auto entry = load(layout, name.substr(kPathMarkPrefix.size()));
    if (entry.is_ok()) paths.push_back(std::move(entry->path));
  }
  return paths;
}

Result<std::vector<std::string>> list_paths(const Layout& layout) {
  std::vector<std::string> paths;
  DEDUP_ASSIGN(const auto keys, fs::list(layout.paths()));
  for (const std::string& key : keys) {
    auto entry = load(layout, key);
    if (entry.is_ok()) paths.push_back(std::move(entry->path));
  }
  return paths;
}

Status add_to_path_entry(const Layout& layout, const std::string& path, const Id128& identity) {
  DEDUP_ASSIGN(const fs::File lock, lock_entries(layout));
  DEDUP_ASSIGN(auto identities, read_path_entry(layout, path));
  const std::string key = path_key(path);
  const bool sound = load(layout, key).is_ok();
  const bool listed = std::find(identities.begin(), identities.end(), identity) != identities.end();
  if (listed && sound) return fs::remove_file(fs::temporary_for(layout.path_entry(key)));
  if (!listed) identities.push_back(identity);
  return fs::replace_file(layout.path_entry(key), encode({path, identities}));
}

Status remove_from_path_entry(const Layout& layout, const std::string& key, const Id128& identity) {
  DEDUP_ASSIGN(const fs::File lock, lock_entries(layout));
  auto entry = load(layout, key);
  if (!entry.is_ok()) {
    // A damaged entry is searched for in the files, where this one is no more.
    const Code code = entry.status().code();
    return code == Code::kNotFound || code == Code::kCorrupt ? Status::ok() : entry.status();
  }
  std::erase(entry->identities, identity);
  const std::string file = layout.path_entry(key);
  if (!entry->identities.empty()) return fs::write_file_atomically(file, encode(*entry));
  DEDUP_TRY(fs::remove_file(file));
  return fs::sync_directory(layout.paths());
}

}  // namespace dedup::store
