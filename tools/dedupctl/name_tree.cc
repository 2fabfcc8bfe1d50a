#include "tools/dedupctl/name_tree.h"

#include <algorithm>
#include <climits>
#include <vector>

namespace dedup::ctl {
namespace {

// A name, and the directory that it is in.
struct Step {
  std::string directory;
  std::string name;
};

bool can_be_shown(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= NAME_MAX &&
         name.find('\0') == std::string_view::npos;
}

Result<std::vector<Step>> steps_of(const std::string& path) {
  if (!path.starts_with('/')) return Status(Code::kBadFile, path + ": is not an absolute path");
  std::vector<Step> steps;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin + 1), path.size());
    std::string name = path.substr(begin + 1, end - begin - 1);
    if (!can_be_shown(name)) {
      return Status(Code::kBadFile, path + ": no directory can have such names");
    }
    steps.push_back({path.substr(0, begin), std::move(name)});
    begin = end;
  }
  return steps;
}

}  // namespace

Status NameTree::add(const std::string& path) {
  DEDUP_ASSIGN(const std::vector<Step> steps, steps_of(path));
  const auto place = [&](const Step& step) -> const Kind* {
    const Entries* const entries = directory(step.directory);
    const auto entry = entries == nullptr ? Entries::const_iterator() : entries->find(step.name);
    return entries == nullptr || entry == entries->end() ? nullptr : &entry->second;
  };
  for (const Step& step : steps) {
    const Kind* const taken = place(step);
    if (taken == nullptr || (*taken == Kind::kDirectory && &step != &steps.back())) continue;
    return {Code::kBadFile, path + ": " + step.directory + "/" + step.name + " has its place"};
  }
  for (const Step& step : steps) {
    const bool is_last = &step == &steps.back();
    directories_[step.directory].emplace(step.name, is_last ? Kind::kFile : Kind::kDirectory);
  }
  return Status::ok();
}

const NameTree::Entries* NameTree::directory(std::string_view path) const {
  const auto it = directories_.find(path);
  return it == directories_.end() ? nullptr : &it->second;
}

}  // namespace dedup::ctl
