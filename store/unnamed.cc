#include "store/unnamed.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "store/real_path.h"

namespace dedup::store {
namespace {

// Placeholders' identities by directory; none where the directory cannot be relied on.
class Directories {
 public:
  const std::optional<std::set<Id128>>& names_beside(const CommitRecord& record) {
    const auto slash = record.path.rfind('/');
    const auto [it, is_new] =
        known_.try_emplace({record.path.substr(0, slash), record.directory}, std::nullopt);
    if (is_new) {
      const auto found = identities_beside(record.path, record.directory);
      if (found.is_ok()) it->second.emplace(found->begin(), found->end());
    }
    return it->second;
  }

 private:
  std::map<std::pair<std::string, DirectoryId>, std::optional<std::set<Id128>>> known_;
};

// How many files are locked at once: each takes a descriptor for itself and each generation.
constexpr std::size_t kAtOnce = 64;

bool is_unnamed(const Store& store, const Id128& identity, Directories& directories) {
  const auto attempts = store.attempts(identity);
  if (!attempts.is_ok() || attempts->committed.empty() || !attempts->damaged.empty()) return false;
  const auto& records = attempts->committed;
  return std::all_of(records.begin(), records.end(), [&](const CommitRecord& record) {
    if (record.directory == DirectoryId{}) return false;
    const auto& names = directories.names_beside(record);
    return names && !names->contains(identity);
  });
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
  Directories directories;
  std::size_t dropped = 0;
  for (auto& [identity, lock] : locked) {
    if (!is_unnamed(store, identity, directories)) continue;
    DEDUP_TRY(store.drop_file(identity, std::move(lock)).status());
    ++dropped;
  }
  return dropped;
}

}  // namespace

Result<std::size_t> drop_unnamed(Store& store, const std::vector<Id128>& own) {
  DEDUP_ASSIGN(std::vector<Id128> found, store.identities());
  Directories directories;
  std::erase_if(found, [&](const Id128& identity) {
    const bool is_own = std::find(own.begin(), own.end(), identity) != own.end();
    return is_own || !is_unnamed(store, identity, directories);
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
