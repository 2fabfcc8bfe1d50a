#include "tools/dedupctl/stores.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "hints/hints.h"
#include "store/fs.h"
#include "store/may_be_store.h"

namespace dedup::ctl {
namespace {

struct Found {
  std::string node;
  StorePlace place;
};

constexpr std::string_view kBelow = "/%n";

std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

// With a directory for each node below those that are named.
std::string below(const std::string& text) {
  return hints::change_tiers(
      text, [](std::string_view directory) { return std::string(directory).append(kBelow); });
}

std::vector<std::string> names_of_stores(const std::string& directory) {
  std::vector<std::string> found;
  const auto names = store::fs::list(directory);
  if (!names.is_ok()) return found;
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    const auto about = store::fs::info(path);
    if (about.is_ok() && about->is_directory && store::may_be_store(path)) found.push_back(name);
  }
  return found;
}

// One template, on this node.
std::vector<Found> find_stores(const std::string& text, const std::string& node, bool in_job) {
  const StorePlace here = hints::expand_store(text, node);
  if (store::may_be_store(here.directory())) return {{node, here}};
  if (in_job) return {{node, hints::expand_store(template_of_job(text, node), node)}};
  const std::string_view last = hints::tiers_of(text).back().directory;
  const bool all = last.ends_with(kBelow);
  const std::string each = all ? text : below(text);
  const std::string parent =
      all ? hints::expand_store(last.substr(0, last.size() - kBelow.size()), node).directory()
          : here.directory();
  std::vector<Found> found;
  for (const std::string& name : names_of_stores(parent)) {
    Found& one = found.emplace_back(Found{name, hints::expand_store(each, name)});
    // Whatever would have become of its name.
    one.place.tiers().back().directory = parent + "/" + name;
    one.place.set_as_one_directory(here.as_one_directory());
  }
  if (found.empty()) {
    found.push_back({node, here});
    if (all) found.back().place.tiers().back().directory = parent;
  }
  return found;
}

// Those that are given, or what a job goes by.
std::vector<std::string> given_or_jobs(const std::vector<std::string>& templates) {
  if (!templates.empty()) return templates;
  const char* hint = std::getenv("DEDUP_STORE");
  return {hint != nullptr && *hint != '\0' ? hint : hints::default_store()};
}

std::vector<Found> find_all(const std::vector<std::string>& templates, const std::string& node,
                            bool in_job) {
  const std::vector<std::string> texts = given_or_jobs(templates);
  std::vector<Found> found;
  for (const std::string& text : texts) {
    std::vector<Found> more = find_stores(text, node, in_job);
    // Several directories of one host are several nodes' stores.
    if (texts.size() > 1 && more.size() == 1) more[0].node = last_part(more[0].place.directory());
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

}  // namespace

std::string template_of_job(const std::string& text, const std::string& node) {
  if (hints::has_node_name(text)) return text;
  const bool is_below = !store::may_be_store(hints::expand_store(text, node).directory()) &&
                        store::may_be_store(hints::expand_store(below(text), node).directory());
  return is_below ? below(text) : text;
}

std::vector<std::string> templates_of_nodes(const std::vector<std::string>& templates) {
  std::vector<std::string> of_nodes;
  for (const std::string& text : given_or_jobs(templates)) {
    of_nodes.push_back(text);
    if (!hints::has_node_name(text)) of_nodes.push_back(below(text));
  }
  return of_nodes;
}

Result<std::string> absolute_template(const std::string& text) {
  const std::vector<hints::TierText> tiers = hints::tiers_of(text);
  const bool all = std::all_of(tiers.begin(), tiers.end(), [](const hints::TierText& tier) {
    return tier.directory.starts_with('/');
  });
  if (all) return text;
  DEDUP_ASSIGN(const std::string here, store::fs::current_directory());
  const std::string above = StorePlace(here).text() + "/";
  return hints::change_tiers(text, [&](std::string_view directory) {
    return directory.starts_with('/') ? std::string(directory) : above + std::string(directory);
  });
}

std::vector<std::string> store_directories(const std::vector<std::string>& templates,
                                           const std::string& node) {
  std::vector<std::string> directories;
  for (const Found& one : find_all(templates, node, false)) {
    for (const StoreTier& tier : one.place.tiers()) directories.push_back(tier.directory);
  }
  return directories;
}

LocalStores open_stores(const std::vector<std::string>& templates, const std::string& node,
                        bool in_job) {
  const std::vector<Found> found = find_all(templates, node, in_job);
  LocalStores out;
  for (const Found& one : found) {
    auto opened = store::Store::open(one.place, false);
    if (!opened.is_ok()) {
      out.troubles.push_back({one.node, one.place.directory(), opened.status().message(),
                              opened.status().code() == Code::kNoSuchFile});
      continue;
    }
    const auto same = std::find_if(out.stores.begin(), out.stores.end(), [&](const LocalStore& s) {
      return s.store->uuid() == (*opened)->uuid();
    });
    if (same == out.stores.end()) {
      out.stores.push_back({one.node, std::move(*opened)});
    } else if (same->store->directory() != (*opened)->directory()) {
      out.troubles.push_back({one.node, one.place.directory(),
                              "store directory " + one.place.directory() + " is a copy of " +
                                  same->store->directory() + ": both have the UUID " +
                                  same->store->uuid().hex()});
    }
  }
  return out;
}

}  // namespace dedup::ctl
