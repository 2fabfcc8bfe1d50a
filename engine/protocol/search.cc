#include "engine/protocol/search.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "base/fields.h"

namespace dedup::engine {
namespace {

// A donor's record is the same on all nodes: so many are asked for it.
constexpr NodeIndex kAskedForDonor = 8;

// A store that is not there must not look like a file that is not there: programs take the latter
// as leave to begin anew.
Status store_trouble(const Status& status) {
  if (status.code() != Code::kNoSuchFile) return status;
  return {Code::kIo, status.message() + " (the hint dedup_store says where stores are)"};
}

struct Answer {
  NodeIndex node = kNoNode;
  service::FindReply reply;
};

// The answers of those nodes that `mine` says are this process's to ask.
Status ask(service::Client& client, const service::Find& request,
           const std::function<bool(NodeIndex)>& mine, std::vector<Answer>& out) {
  std::vector<std::pair<NodeIndex, service::Client::Pending<service::Find>>> pending;
  for (NodeIndex n = 0; n < client.nodes(); ++n) {
    if (!mine(n)) continue;
    service::Find one = request;
    if (n >= kAskedForDonor) one.donor = {};
    pending.emplace_back(n, client.start(n, one));
  }
  Status status;
  for (auto& [node, p] : pending) {
    auto reply = p.wait();
    if (!reply.is_ok()) {
      if (status.is_ok()) status = store_trouble(reply.status());
      continue;
    }
    out.push_back({node, *std::move(reply)});
  }
  return status;
}

Status impossible() {
  return {Code::kInternal, "a rank sent a node's answer that cannot be"};
}

Result<SearchResult> put_together(const service::Client& client, std::vector<Answer> answers) {
  SearchResult result;
  result.reports.resize(client.nodes());
  result.stores.resize(client.nodes());
  result.seen.resize(client.nodes());
  for (auto& [node, reply] : answers) {
    if (node >= client.nodes()) return impossible();
    store::StoreReport& report = result.reports[node];
    report.node = node;
    report.store = reply.store.uuid;
    report.node_name = client.node_name(node);
    report.deleted = std::move(reply.deleted);
    for (const Bytes& bytes : reply.records) {
      DEDUP_ASSIGN(store::CommitRecord record, store::CommitRecord::decode(bytes));
      report.records.push_back(std::move(record));
    }
    report.cached = std::move(reply.cached);
    if (!reply.donor.empty()) {
      DEDUP_ASSIGN(store::CommitRecord record, store::CommitRecord::decode(reply.donor));
      result.donors.push_back(std::move(record));
    }
    for (const std::string& text : reply.damaged) {
      result.damaged.push_back("node " + report.node_name + ": " + text);
    }
    result.makes_kept = result.makes_kept || reply.makes_kept;
    result.stores[node] = std::move(reply.store);
    result.seen[node] = reply.seen;
  }
  return result;
}

}  // namespace

Result<SearchResult> search(service::Client& client, const Ranks& ranks,
                            const service::Find& request) {
  std::vector<Answer> mine;
  const Status status = ask(
      client, request, [&](NodeIndex n) { return ranks.speaks_for(n); }, mine);
  DEDUP_TRY(ranks.agree(status));
  std::vector<Answer> answers;
  for (const Bytes& bytes : ranks.gather(encoded(mine))) {
    auto told = decoded<std::vector<Answer>>(bytes);
    if (!told) return impossible();
    std::move(told->begin(), told->end(), std::back_inserter(answers));
  }
  if (ranks.rank() != 0) return SearchResult{};
  return put_together(client, std::move(answers));
}

Result<SearchResult> search_alone(service::Client& client, const std::string& path,
                                  const Id128& identity, const std::string& store_template) {
  std::vector<Answer> mine;
  const service::Find request{path, identity, store_template};
  DEDUP_TRY(ask(
      client, request, [](NodeIndex) { return true; }, mine));
  return put_together(client, std::move(mine));
}

void hide(SearchResult& found, const std::vector<Id128>& identities) {
  for (store::StoreReport& report : found.reports) {
    std::erase_if(report.records, [&](const store::CommitRecord& record) {
      return std::find(identities.begin(), identities.end(), record.identity) != identities.end();
    });
  }
}

Status check_stores_differ(const SearchResult& found, const std::string& store_template) {
  std::map<Id128, const store::StoreReport*> owners;
  for (const store::StoreReport& report : found.reports) {
    const auto [owner, is_new] = owners.emplace(report.store, &report);
    if (is_new) continue;
    return {Code::kInfoValue, "nodes " + owner->second->node_name + " and " + report.node_name +
                                  " have one store, " + store_template +
                                  ": set dedup_store (DEDUP_STORE) to a directory of each node's "
                                  "own; %n in it is the node's name"};
  }
  return Status::ok();
}

Result<bool> is_shared(const SearchResult& found, const std::string& path) {
  DEDUP_ASSIGN(const store::Seen mine, store::see_directory(path));
  return std::all_of(found.seen.begin(), found.seen.end(),
                     [&](const store::Seen& seen) { return store::is_shared(seen, mine); });
}

}  // namespace dedup::engine
