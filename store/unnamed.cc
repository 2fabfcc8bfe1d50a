#include "store/unnamed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
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

}  // namespace

Result<std::size_t> drop_unnamed(Store& store, const std::vector<Id128>& own) {
  DEDUP_ASSIGN(const std::vector<CommitRecord> records, store.list());
  Directories directories;
  std::size_t dropped = 0;
  for (const CommitRecord& record : records) {
    const bool is_own = std::find(own.begin(), own.end(), record.identity) != own.end();
    if (is_own || record.directory == DirectoryId{}) continue;
    const auto& names = directories.names_beside(record);
    if (!names || names->contains(record.identity)) continue;
    const Status status = store.drop_file(record.identity);
    if (status.code() == Code::kFileInUse) continue;
    DEDUP_TRY(status);
    ++dropped;
  }
  return dropped;
}

}  // namespace dedup::store
