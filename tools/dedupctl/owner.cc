#include "tools/dedupctl/owner.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "store/fs.h"

namespace dedup::ctl {
namespace {

struct User {
  uid_t user = 0;
  gid_t group = 0;
  std::optional<std::string> name;  // if the system knows him
};

User user_of(uid_t id, gid_t group_of_directory) {
  const passwd* const known = ::getpwuid(id);
  if (known == nullptr) return {id, group_of_directory, std::nullopt};
  return {id, known->pw_gid, known->pw_name};
}

std::string text_of(const User& user) {
  return user.name ? *user.name : "user " + std::to_string(user.user);
}

Status become(const User& user) {
  const int groups =
      user.name ? ::initgroups(user.name->c_str(), user.group) : ::setgroups(0, nullptr);
  const bool is_done = groups == 0 && ::setresgid(user.group, user.group, user.group) == 0 &&
                       ::setresuid(user.user, user.user, user.user) == 0;
  return is_done ? Status::ok() : Status::from_errno(errno, "cannot become " + text_of(user));
}

}  // namespace

Status become_owner(const std::vector<std::string>& directories) {
  if (::geteuid() != 0) return Status::ok();
  std::optional<User> owner;
  for (const std::string& directory : directories) {
    // What is not there, or no directory, is said when it is opened.
    const auto about = store::fs::info(directory);
    if (!about.is_ok() || !about->is_directory) continue;
    const User user = user_of(about->owner, about->group);
    if (owner && owner->user != user.user) {
      return {Code::kArgument, directory + " belongs to " + text_of(user) + ", and others to " +
                                   text_of(*owner) + ": one user's stores at a time (--store)"};
    }
    owner = user;
  }
  return owner && owner->user != 0 ? become(*owner) : Status::ok();
}

}  // namespace dedup::ctl
