#include "store/unnamed.h"

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "store/fs.h"
#include "store/kept.h"
#include "store/placed.h"

namespace dedup::store {
namespace {

bool may_have(const DirectoryLook& look, const Id128& identity) {
  const auto& soon = look.to_be_placed;
  return !look.whole.is_ok() || std::find(soon.begin(), soon.end(), identity) != soon.end() ||
         std::any_of(look.placeholders.begin(), look.placeholders.end(),
                     [&](const Placed& placed) { return placed.placeholder.identity == identity; });
}

// Tells of which files no placeholder is found. Looks at each directory once.
class Names {
 public:
  static Result<Names> of(const Store& store) {
    DEDUP_ASSIGN(std::set<std::string> known, store.directories());
    return Names(std::move(known));
  }

  bool has_none(const CommitRecord& record) {
    if (record.directory == DirectoryId{}) return false;
    const std::string directory = fs::directory_of(record.path);
    const DirectoryLook& look = looks_.look_in(directory);
    if (look.id != record.directory || may_have(look, record.identity)) return false;
    const auto is_in = [&](const std::string& other) {
      return may_have(looks_.look_in(other), record.identity);
    };
    // What the user may not read has nothing that he moved there.
    const auto is_beside = [&](const std::string& other) {
      return looks_.look_in(other).whole.code() != Code::kAccess && is_in(other);
    };
    return !std::any_of(known_.begin(), known_.end(), is_in) &&
           !is_beside(fs::directory_of(directory)) &&
           !std::any_of(look.directories.begin(), look.directories.end(), is_beside);
  }

 private:
  explicit Names(std::set<std::string> known) : known_(std::move(known)) {}

  std::set<std::string> known_;
  Directories looks_;
};

// How many files are locked at once: each takes a descriptor for itself and each generation.
constexpr std::size_t kAtOnce = 64;

bool is_unnamed(const Store& store, const Id128& identity, Names& names) {
  const auto attempts = store.generations(identity);
  if (!attempts.is_ok() || attempts->committed.empty() || !attempts->damaged.empty()) return false;
  const auto& records = attempts->committed;
  return std::all_of(records.begin(), records.end(),
                     [&](const CommitRecord& record) { return names.has_none(record); });
}

// Those of `found` that still are, now that nobody can commit them.
Result<std::size_t> drop_batch(Store& store, std::span<const Id128> found) {
  std::vector<std::pair<Id128, std::unique_ptr<Store::Lock>>> locked;
  for (const Id128& identity : found) {
    auto lock = store.lock_whole(identity);
    const Code code = lock.status().code();
    if (code == Code::kFileInUse || code == Code::kNoSuchFile) continue;
    DEDUP_TRY(lock.status());
    locked.emplace_back(identity, std::move(*lock));
  }
  DEDUP_ASSIGN(Names names, Names::of(store));
  std::size_t dropped = 0;
  for (auto& [identity, lock] : locked) {
    if (!is_unnamed(store, identity, names)) continue;
    DEDUP_TRY(drop_with_kept(store, identity, std::move(lock)).status());
    ++dropped;
  }
  return dropped;
}

}  // namespace

Result<std::size_t> drop_unnamed(Store& store, const std::vector<Id128>& own) {
  DEDUP_ASSIGN(std::vector<Id128> found, store.identities());
  DEDUP_ASSIGN(Names names, Names::of(store));
  std::erase_if(found, [&](const Id128& identity) {
    const bool is_own = std::find(own.begin(), own.end(), identity) != own.end();
    return is_own || !is_unnamed(store, identity, names);
  });
  std::size_t dropped = 0;
  for (std::size_t at = 0; at < found.size(); at += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, found.size() - at);
    DEDUP_ASSIGN(const std::size_t more, drop_batch(store, std::span(found).subspan(at, count)));
    dropped += more;
  }
  return dropped;
}

}  // namespace dedup::store
