#include "tools/dedupctl/whereabouts.h"

#include "store/fs.h"
#include "tools/dedupctl/catalog.h"

namespace dedup::ctl {

Result<const store::Placed*> Whereabouts::find(const store::CommitRecord& record) {
  if (!is_walked_) walk();
  is_walked_ = true;
  const auto it = placed_.find(record.identity);
  if (it != placed_.end()) return it->second;
  if (to_be_placed_.contains(record.identity)) {
    return Status(Code::kConflict,
                  "a job is just about to put its placeholder there, or was killed "
                  "when it was: dedupctl gc settles that");
  }
  DEDUP_TRY(whole_);
  return nullptr;
}

void Whereabouts::walk() {
  for (const std::string& directory : known_) {
    add(directory);
    add_beside(store::fs::directory_of(directory));
    for (const std::string& below : looks_.look_in(directory).directories) add_beside(below);
  }
  for (const std::string& directory : search_) add_all_below(absolute_path(directory));
}

void Whereabouts::add(const std::string& directory) {
  const store::DirectoryLook& look = looks_.look_in(directory);
  if (whole_.is_ok()) whole_ = look.whole;
  to_be_placed_.insert(look.to_be_placed.begin(), look.to_be_placed.end());
  for (const store::Placed& placed : look.placeholders) {
    if (placed.is_copy) continue;
    const store::Placed*& known = placed_[placed.placeholder.identity];
    if (known == nullptr || known->placeholder.number < placed.placeholder.number) known = &placed;
  }
}

void Whereabouts::add_beside(const std::string& directory) {
  if (looks_.look_in(directory).whole.code() != Code::kAccess) add(directory);
}

void Whereabouts::add_all_below(const std::string& directory) {
  add(directory);
  for (const std::string& below : looks_.look_in(directory).directories) add_all_below(below);
}

}  // namespace dedup::ctl
