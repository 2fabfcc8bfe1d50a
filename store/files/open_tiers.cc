#include "store/files/open_tiers.h"

#include <algorithm>
#include <string>

#include "base/codec.h"
#include "store/files/private_directory.h"
#include "store/format.h"
#include "store/fs.h"

namespace dedup::store {
namespace {

// What TIER says.
struct TierMark {
  Id128 store;
  std::string directory;  // where that was when the tier was made
};

Bytes encode_mark(const TierMark& mark) {
  Encoder out;
  format::put_start(out, format::kTier);
  out.put(mark.store);
  out.put(std::string_view(mark.directory));
  format::put_checksum(out);
  return out.take();
}

Bytes encode_list(const std::vector<std::string>& directories) {
  Encoder out;
  format::put_start(out, format::kTiers);
  out.put(static_cast<std::uint32_t>(directories.size()));
  for (const std::string& directory : directories) out.put(std::string_view(directory));
  format::put_checksum(out);
  return out.take();
}

// What is behind the start and before the checksum of a file.
Result<Bytes> read_checked(const std::string& path, const format::Kind& kind) {
  DEDUP_ASSIGN(Bytes bytes, fs::read_file(path));
  Decoder start(bytes);
  DEDUP_TRY(format::check_start(start, kind, path));
  std::span<const std::byte> all = bytes;
  if (!format::take_checksum(all) || all.size() < format::kStartSize) {
    return format::corrupt(path, "damaged: its checksum does not hold");
  }
  all = all.subspan(format::kStartSize);
  return Bytes(all.begin(), all.end());
}

Result<TierMark> read_mark(const Layout& tier) {
  DEDUP_ASSIGN(const Bytes bytes, read_checked(tier.tier_file(), format::kTier));
  Decoder in(bytes);
  TierMark mark;
  mark.store = in.get_id();
  mark.directory = in.get_string();
  if (!in.ok() || !in.at_end()) return format::corrupt(tier.tier_file(), "damaged");
  return mark;
}

// None if there is no such file.
Result<std::vector<std::string>> read_list(const Layout& store) {
  const std::string path = store.tiers_file();
  const auto bytes = read_checked(path, format::kTiers);
  std::vector<std::string> directories;
  if (bytes.status().code() == Code::kNoSuchFile) return directories;
  DEDUP_TRY(bytes.status());
  Decoder in(*bytes);
  directories.resize(in.get_count(sizeof(std::uint32_t)));
  for (std::string& directory : directories) directory = in.get_string();
  if (!in.ok() || !in.at_end()) return format::corrupt(path, "damaged");
  return directories;
}

// Several processes may do this at once: what each adds and takes away counts.
Status change_list(const Layout& store, const std::vector<std::string>& added,
                   const std::vector<std::string>& gone) {
  DEDUP_ASSIGN(const fs::File turn, fs::open_directory(store.root));
  DEDUP_TRY(fs::lock_exclusively(turn));
  DEDUP_ASSIGN(std::vector<std::string> directories, read_list(store));
  const std::vector<std::string> before = directories;
  std::erase_if(directories, [&](const std::string& directory) {
    return std::find(gone.begin(), gone.end(), directory) != gone.end();
  });
  for (const std::string& directory : added) {
    if (std::find(directories.begin(), directories.end(), directory) == directories.end()) {
      directories.push_back(directory);
    }
  }
  if (directories == before) return Status::ok();
  return fs::write_file_atomically(store.tiers_file(), encode_list(directories));
}

Status tier_of_another(const Layout& tier, const TierMark& mark) {
  return refuse(tier.root, "is a faster tier of the store at " + mark.directory +
                               ": a tier is of one store alone; with %n in its name each node "
                               "has its own");
}

Status check_no_store(const Layout& tier) {
  DEDUP_ASSIGN(const bool is_store, fs::exists(tier.store_file()));
  if (!is_store) return Status::ok();
  return refuse(tier.root,
                "is a store of its own and cannot be a faster tier of another: dedup_store names "
                "tiers fastest first, and the one that is the store last");
}

// The first one's stands.
Status create_tier_file(const Layout& tier, const TierMark& mark) {
  DEDUP_ASSIGN(const fs::File turn, fs::open_directory(tier.root));
  DEDUP_TRY(fs::lock_exclusively(turn));
  DEDUP_ASSIGN(const bool is_there, fs::exists(tier.tier_file()));
  if (is_there) return Status::ok();
  DEDUP_ASSIGN(const bool had_files, fs::exists(tier.files()));
  if (had_files) {
    return format::corrupt(tier.root,
                           "the file TIER of this tier is missing; remove the directory if its "
                           "content is not needed");
  }
  return fs::write_file_atomically(tier.tier_file(), encode_mark(mark));
}

// Whether it is there, as a tier of this store.
Result<bool> open_tier(const Layout& tier, const TierMark& mark, bool create) {
  DEDUP_ASSIGN(const bool is_here, is_there(tier.root));
  if (!is_here) {
    if (!create) return false;
    DEDUP_TRY(make_private(tier.root));
  }
  DEDUP_TRY(check_private(tier.root, tier.tier_file()));
  DEDUP_TRY(check_no_store(tier));
  DEDUP_ASSIGN(const bool is_tier, fs::exists(tier.tier_file()));
  if (!is_tier) {
    if (!create) return false;
    DEDUP_TRY(create_tier_file(tier, mark));
  }
  DEDUP_ASSIGN(const TierMark found, read_mark(tier));
  if (found.store != mark.store) return tier_of_another(tier, found);
  // Where it could not be made whole nothing is put.
  if (!create) return fs::exists(tier.files());
  DEDUP_TRY(fs::make_directory(tier.files()).status());
  return true;
}

// While it has nothing everybody does it: who made it may have been killed before.
Status flush_if_empty(const Layout& tier) {
  DEDUP_ASSIGN(const auto files, fs::list(tier.files()));
  if (!files.empty()) return Status::ok();
  DEDUP_TRY(fs::sync_directory(tier.root));
  return sync_above(fs::directory_of(tier.root));
}

// Whether one that the place does not name is still there. What cannot be looked at may be.
Result<bool> is_still_there(const Layout& tier, const Id128& store) {
  const auto mark = read_mark(tier);
  if (mark.status().code() == Code::kNoSuchFile) return false;
  DEDUP_TRY(mark.status());
  return mark->store == store;
}

Status check_other_directory(const Layout& a, const Layout& b) {
  DEDUP_ASSIGN(const fs::Info one, fs::info(a.root));
  DEDUP_ASSIGN(const fs::Info other, fs::info(b.root));
  if (one.device != other.device || one.inode != other.inode) return Status::ok();
  return {Code::kArgument, "store directories " + a.root + " and " + b.root +
                               " are the same: dedup_store is to name each tier once"};
}

}  // namespace

Status check_tiers_differ(const StorePlace& place) {
  const std::vector<StoreTier>& tiers = place.tiers();
  for (const StoreTier& one : tiers) {
    for (const StoreTier& other : tiers) {
      if (&one == &other) continue;
      if (one.directory == other.directory) {
        return {Code::kArgument,
                "store directory " + one.directory + " is named twice in dedup_store"};
      }
      if (one.directory.starts_with(other.directory == "/" ? "/" : other.directory + "/")) {
        return {Code::kArgument, "store directory " + one.directory + " is within " +
                                     other.directory +
                                     ": tiers in dedup_store are directories of their own"};
      }
    }
  }
  return Status::ok();
}

Status check_no_tier(const Layout& layout) {
  const auto mark = read_mark(layout);
  if (mark.status().code() == Code::kNoSuchFile) return Status::ok();
  DEDUP_TRY(mark.status());
  return refuse(layout.root, "is a faster tier of the store at " + mark->directory +
                                 ": name it before that one in dedup_store, which has tiers "
                                 "fastest first and the store itself last");
}

Result<std::vector<Tiers::Tier>> open_tiers(const StorePlace& place, const Id128& uuid,
                                            bool create) {
  const Layout store{place.directory()};
  const TierMark mark{uuid, store.root};
  std::vector<Tiers::Tier> tiers;
  std::vector<std::string> named;
  for (std::size_t i = 0; i + 1 < place.tiers().size(); ++i) {
    const StoreTier& one = place.tiers()[i];
    const Layout layout{one.directory};
    const auto is_here = open_tier(layout, mark, create);
    // One that cannot even be made for want of room is no reason to fail while there are others:
    // nothing is put into it, and what it has is read as of one that is not named.
    if (fs::is_out_of_room(is_here.status())) continue;
    DEDUP_TRY(is_here.status());
    if (!*is_here) continue;
    if (create) DEDUP_TRY(flush_if_empty(layout));
    DEDUP_TRY(check_other_directory(layout, store));
    for (const Tiers::Tier& other : tiers) DEDUP_TRY(check_other_directory(layout, other.layout));
    tiers.push_back({layout, one.limit, false});
    named.push_back(one.directory);
  }
  DEDUP_ASSIGN(const std::vector<std::string> known, read_list(store));
  std::vector<std::string> gone;
  std::vector<Tiers::Tier> leaving;
  for (const std::string& directory : known) {
    if (std::find(named.begin(), named.end(), directory) != named.end()) continue;
    const Layout layout{directory};
    DEDUP_ASSIGN(const bool is_here, is_still_there(layout, uuid));
    if (is_here) {
      leaving.push_back({layout, std::nullopt, true});
    } else {
      gone.push_back(directory);
    }
  }
  const bool all_known = std::all_of(named.begin(), named.end(), [&](const std::string& one) {
    return std::find(known.begin(), known.end(), one) != known.end();
  });
  // Before anything is put into a new one.
  if (create && (!all_known || !gone.empty())) DEDUP_TRY(change_list(store, named, gone));
  tiers.insert(tiers.begin(), leaving.begin(), leaving.end());
  tiers.push_back({store, place.tiers().back().limit, false});
  return tiers;
}

}  // namespace dedup::store
