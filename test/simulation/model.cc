#include "test/simulation/model.h"

#include <algorithm>

namespace dedup::simulation {

std::shared_ptr<const Version> File::find(const Content& content) const {
  if (last->content == content) return last;
  for (const auto& version : later) {
    if (version->content == content) return version;
  }
  return nullptr;
}

bool File::may_be(const Content& content) const {
  return find(content) != nullptr;
}

void Model::put(NodeIndex node, const std::shared_ptr<const Version>& version) {
  held_[node].insert(version);
}

void Model::doubt(NodeIndex node, const std::shared_ptr<const Version>& version) {
  held_[node].erase(version);
}

void Model::take(NodeIndex node, const File& file) {
  const auto doubt_all = [&](const std::shared_ptr<const Version>& version) {
    doubt(node, version);
    doubt(node, version->before);
  };
  doubt_all(file.last);
  for (const auto& version : file.later) doubt_all(version);
}

bool Model::is_available(const Version& version, const std::vector<NodeIndex>& nodes) const {
  if (version.is_damaged) return false;
  unsigned missing = 0;
  for (const NodeIndex n : version.nodes) {
    const bool there = std::find(nodes.begin(), nodes.end(), n) != nodes.end();
    const bool held = std::any_of(held_[n].begin(), held_[n].end(),
                                  [&](const auto& v) { return v.get() == &version; });
    if (!there || !held) ++missing;
  }
  const auto count = static_cast<unsigned>(version.nodes.size());
  return missing < std::max(1u, std::min(version.copies, count));
}

bool Model::must_read(const File& file, const std::vector<NodeIndex>& nodes) const {
  return is_available(*file.last, nodes) &&
         std::all_of(file.later.begin(), file.later.end(),
                     [&](const auto& version) { return is_available(*version, nodes); });
}

}  // namespace dedup::simulation
