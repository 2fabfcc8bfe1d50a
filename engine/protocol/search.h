// Asking the nodes' stores which generations of a path they have.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ranks.h"
#include "base/status.h"
#include "service/client.h"
#include "service/messages/file_info.h"
#include "service/messages/store_node.h"
#include "store/choose.h"

namespace dedup::engine {

struct SearchResult {
  std::vector<store::StoreReport> reports;  // one for each node of the job, in order
  std::vector<service::StoreRef> stores;    // likewise
  std::vector<store::Seen> seen;            // likewise: the path's directory
  std::vector<std::string> damaged;         // what could not be read, for a warning
  bool makes_kept = false;                  // see FindReply
  std::vector<store::SharedRecord> donors;  // the newest of the donor that was asked for, each once
  std::map<Id128, std::set<Id128>> donor_stores;  // of these, by attempt, as far as was asked
};

// What the stores have of what `request` names, and the first few of its donor. Collective: the
// speaker of each node asks it, and rank 0 gets each record that they tell of from one of them. The
// result, or what went wrong on whichever rank, is on rank 0; others have an empty one.
Result<SearchResult> search(service::Client& client, const Ranks& ranks,
                            const service::Find& request);

// The same by one process alone, without a donor.
Result<SearchResult> search_alone(service::Client& client, const std::string& path,
                                  const Id128& identity, const std::string& store_template);

// Takes these files out of it: they are not to be found any more.
void hide(SearchResult& found, const std::vector<Id128>& identities);

// kInfoValue, saying what to do, if two nodes have one store: each needs its own to write to.
Status check_stores_differ(const SearchResult& found, const std::string& store_template);

// Whether all nodes see the directory of `path` as this process does.
Result<bool> is_shared(const SearchResult& found, const std::string& path);

}  // namespace dedup::engine
