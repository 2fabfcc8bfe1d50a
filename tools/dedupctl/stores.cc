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
  std::string directory;
};

std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

std::vector<Found> stores_below(const std::string& directory) {
  std::vector<Found> found;
  const auto names = store::fs::list(directory);
  if (!names.is_ok()) return found;
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    const auto about = store::fs::info(path);
    if (about.is_ok() && about->is_directory && store::may_be_store(path))
      found.push_back({name, path});
  }
  return found;
}

bool has_node(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '%') continue;
    if (text[i + 1] == 'n') return true;
    ++i;
  }
  return false;
}

// One template, on this node.
std::vector<Found> find_stores(const std::string& text, const std::string& node, bool in_job) {
  const std::string directory = hints::expand_store(text, node);
  if (store::may_be_store(directory)) return {{node, directory}};
  if (in_job) return {{node, hints::expand_store(template_of_job(text, node), node)}};
  const std::string_view any_node = "/%n";
  const bool all = text.ends_with(any_node);
  const std::string parent =
      all ? hints::expand_store(text.substr(0, text.size() - any_node.size()), node) : directory;
  std::vector<Found> found = stores_below(parent);
  if (found.empty()) found.push_back({node, all ? parent : directory});
  return found;
}

std::vector<Found> find_all(const std::vector<std::string>& templates, const std::string& node,
                            bool in_job) {
  std::vector<std::string> texts = templates;
  if (texts.empty()) {
    const char* hint = std::getenv("DEDUP_STORE");
    texts.push_back(hint != nullptr && *hint != '\0' ? hint : hints::default_store());
  }
  std::vector<Found> found;
  for (const std::string& text : texts) {
    std::vector<Found> more = find_stores(text, node, in_job);
    // Several directories of one host are several nodes' stores.
    if (texts.size() > 1 && more.size() == 1) more[0].node = last_part(more[0].directory);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

}  // namespace

std::string template_of_job(const std::string& text, const std::string& node) {
  if (has_node(text)) return text;
  const bool below = !store::may_be_store(hints::expand_store(text, node)) &&
                     store::may_be_store(hints::expand_store(text + "/%n", node));
  return below ? text + "/%n" : text;
}

Result<std::string> absolute_template(const std::string& text) {
  if (text.starts_with('/')) return text;
  DEDUP_ASSIGN(const std::string here, store::fs::current_directory());
  std::string escaped;
  for (const char c : here) escaped += c == '%' ? "%%" : std::string(1, c);
  return escaped + "/" + text;
}

std::vector<std::string> store_directories(const std::vector<std::string>& templates,
                                           const std::string& node) {
  std::vector<std::string> directories;
  for (Found& one : find_all(templates, node, false)) {
    directories.push_back(std::move(one.directory));
  }
  return directories;
}

LocalStores open_stores(const std::vector<std::string>& templates, const std::string& node,
                        bool in_job) {
  const std::vector<Found> found = find_all(templates, node, in_job);
  LocalStores out;
  for (const Found& one : found) {
    auto opened = store::Store::open(one.directory, false);
    if (!opened.is_ok()) {
      out.troubles.push_back({one.node, one.directory, opened.status().message(),
                              opened.status().code() == Code::kNoSuchFile});
      continue;
    }
    const auto same = std::find_if(out.stores.begin(), out.stores.end(), [&](const LocalStore& s) {
      return s.store->uuid() == (*opened)->uuid();
    });
    if (same == out.stores.end()) {
      out.stores.push_back({one.node, std::move(*opened)});
    } else if (same->store->directory() != (*opened)->directory()) {
      out.troubles.push_back({one.node, one.directory,
                              "store directory " + one.directory + " is a copy of " +
                                  same->store->directory() + ": both have the UUID " +
                                  same->store->uuid().hex()});
    }
  }
  return out;
}

}  // namespace dedup::ctl
