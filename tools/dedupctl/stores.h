// The stores that this process looks after.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace dedup::ctl {

struct LocalStore {
  std::string node;
  std::unique_ptr<store::Store> store;
};

// A store that should be there and cannot be used.
struct Trouble {
  std::string node;
  std::string directory;
  std::string message;
  bool is_absent = false;  // there is none
};

struct LocalStores {
  std::vector<LocalStore> stores;
  std::vector<Trouble> troubles;
};

// Where the stores of open_stores() and their tiers are, or should be, outside a job.
std::vector<std::string> store_directories(const std::vector<std::string>& templates,
                                           const std::string& node);

// Opens the stores of `templates` (the hint dedup_store if there are none), with %n replaced by
// `node`, this process's. A directory that is no store but has stores in it stands for these: in a
// job for this node's, otherwise for all of them, each that of the node of its name.
LocalStores open_stores(const std::vector<std::string>& templates, const std::string& node,
                        bool in_job);

// By which other nodes may find theirs of the stores that open_stores() takes for `templates`: as a
// job has them (hints/hints.h), several for each.
std::vector<std::string> templates_of_nodes(const std::vector<std::string>& templates);

// The template by which all nodes of a job find the stores that open_stores() takes for `text`.
std::string template_of_job(const std::string& text, const std::string& node);

// What open_stores() was asked for, made absolute: for DEDUP_STORE.
Result<std::string> absolute_template(const std::string& text);

}  // namespace dedup::ctl
