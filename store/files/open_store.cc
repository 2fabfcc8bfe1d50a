#include "store/files/open_store.h"

#include "base/codec.h"
#include "store/files/open_tiers.h"
#include "store/files/private_directory.h"
#include "store/format.h"
#include "store/fs.h"
#include "store/may_be_store.h"

namespace dedup::store {
namespace {

// What makes the store's own names last. While it has no file everybody does it: who made them may
// have been killed before.
Status flush_names(const Layout& layout) {
  DEDUP_ASSIGN(const auto files, fs::list(layout.files()));
  if (!files.empty()) return Status::ok();
  DEDUP_TRY(fs::sync_directory(layout.root));
  return sync_above(fs::directory_of(layout.root));
}

Bytes encode_store_file(const Id128& uuid) {
  Encoder out;
  format::put_start(out, format::kStore);
  out.put(std::uint32_t{0});
  out.put(uuid);
  format::put_checksum(out);
  return out.take();
}

Result<Id128> read_store_file(const Layout& layout) {
  const std::string path = layout.store_file();
  DEDUP_ASSIGN(const Bytes bytes, fs::read_file(path));
  Decoder in(bytes);
  DEDUP_TRY(format::check_start(in, format::kStore, path));
  in.get<std::uint32_t>();
  const Id128 uuid = in.get_id();
  std::span<const std::byte> all = bytes;
  if (!format::take_checksum(all) || !in.ok() || in.left() != sizeof(std::uint64_t)) {
    return format::corrupt(path, "damaged: its checksum does not hold");
  }
  return uuid;
}

// Several processes may do this at once: the first one's stands.
Status create_store_file(const Layout& layout) {
  DEDUP_ASSIGN(const fs::File turn, fs::open_directory(layout.root));
  DEDUP_TRY(fs::lock_exclusively(turn));
  DEDUP_ASSIGN(const bool had_files, fs::exists(layout.files()));
  DEDUP_ASSIGN(const bool is_there, fs::exists(layout.store_file()));
  if (is_there) return Status::ok();
  if (had_files) {
    return format::corrupt(layout.root,
                           "the file STORE of this store is missing; remove the directory if its "
                           "content is not needed");
  }
  return fs::write_file_atomically(layout.store_file(), encode_store_file(Id128::random()));
}

// A name with colons and equals signs in it that was meant for one directory.
Status check_tiers_are_meant(const StorePlace& place) {
  const std::string& one = place.as_one_directory();
  if (one.empty()) return Status::ok();
  const auto about = fs::info(one);
  if (!about.is_ok() || !about->is_directory) return Status::ok();
  return refuse(one,
                "is there, but colons stand between tiers in dedup_store, and an equals sign "
                "before a tier's limit: write %: and %= for those in a name, or remove the "
                "directory if tiers are meant");
}

Status make_directories(const Layout& layout) {
  for (const auto& path : {layout.paths(), layout.marks(), layout.files()}) {
    DEDUP_TRY(fs::make_directory(path).status());
  }
  return flush_names(layout);
}

}  // namespace

Result<OpenedStore> open_store_directory(const StorePlace& place, bool create) {
  OpenedStore store{place, {}, {}};
  for (StoreTier& tier : store.place.tiers()) {
    DEDUP_ASSIGN(tier.directory, absolute(tier.directory));
  }
  DEDUP_TRY(check_tiers_are_meant(store.place));
  DEDUP_TRY(check_tiers_differ(store.place));
  const Layout layout{store.place.directory()};
  DEDUP_ASSIGN(const bool is_here, is_there(layout.root));
  if (!is_here) {
    if (!create) return Status(Code::kNoSuchFile, "no store at " + layout.root);
    DEDUP_TRY(make_private(layout.root));
  }
  DEDUP_TRY(check_private(layout.root, layout.store_file()));
  DEDUP_ASSIGN(const bool is_store, fs::exists(layout.store_file()));
  if (!is_store) {
    DEDUP_TRY(check_no_tier(layout));
    if (!create) return Status(Code::kNoSuchFile, "no store at " + layout.root);
    DEDUP_TRY(create_store_file(layout));
  }
  DEDUP_ASSIGN(store.uuid, read_store_file(layout));
  if (create) DEDUP_TRY(make_directories(layout));
  DEDUP_ASSIGN(store.tiers, open_tiers(store.place, store.uuid, create));
  return store;
}

bool may_be_store(const std::string& directory) {
  const Layout layout{directory};
  for (const std::string& path : {layout.store_file(), layout.files()}) {
    const auto is_there = fs::exists(path);
    if (!is_there.is_ok() || *is_there) return true;
  }
  return false;
}

}  // namespace dedup::store
