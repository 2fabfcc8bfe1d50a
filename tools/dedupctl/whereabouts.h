// Where the placeholders of moved files stand: a walk of the directories that the stores know, and
// of those that the user names.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/commit_record.h"
#include "store/placed.h"

namespace dedup::ctl {

class Whereabouts {
 public:
  // `known`: directories in which some file was committed or opened; they are looked at, and those
  // one level above and below them. `search`: all that is below these is.
  Whereabouts(std::set<std::string> known, const std::vector<std::string>& search)
      : known_(std::move(known)), search_(search) {}

  // The placeholder of the record's file, the newest if there are several; null if it is in none of
  // the directories. An error if it was not found, and one of them cannot be looked at as a whole
  // or has a replacement that would be one.
  // The first call does the walk. Copies do not count: the original may stand somewhere.
  Result<const store::Placed*> find(const store::CommitRecord& record);

 private:
  void walk();
  void add(const std::string& directory);
  // What the user may not read has nothing that he moved there.
  void add_beside(const std::string& directory);
  void add_all_below(const std::string& directory);

  std::set<std::string> known_;
  std::vector<std::string> search_;
  bool is_walked_ = false;
  store::Directories looks_;
  std::map<Id128, const store::Placed*> placed_;
  std::set<Id128> to_be_placed_;
  Status whole_;  // why something may not have been seen
};

}  // namespace dedup::ctl
