#include "engine/protocol/search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "base/fields.h"

namespace dedup::engine {
namespace {

// A donor's record is the same on all nodes: so many are asked for it.
constexpr NodeIndex kAskedForDonor = 8;

// Another job may commit between a node's answer and the question for its record.
constexpr int kTimesAsked = 5;

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

// The answers of these nodes. With records the one of `whole`: what all have is told once.
Status ask(service::Client& client, const service::Find& request, std::span<const NodeIndex> nodes,
           NodeIndex whole, std::vector<Answer>& out) {
  std::vector<std::pair<NodeIndex, service::Client::Pending<service::Find>>> pending;
  for (const NodeIndex n : nodes) {
    service::Find one = request;
    if (n >= kAskedForDonor) one.donor = {};
    one.whole = n == whole;
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

// By one process: what all nodes have answered, and the records that they tell of, each of which is
// got from one node.
class Findings {
 public:
  Findings(service::Client& client, const service::Find& request)
      : client_(client), request_(request), replies_(client.nodes()) {}

  // Later answers of a node replace earlier ones.
  Status add(std::vector<Answer> answers) {
    for (auto& [node, reply] : answers) {
      if (node >= replies_.size()) return impossible();
      for (store::CommitRecord& record : reply.whole) known_.add(std::move(record));
      reply.whole.clear();
      replies_[node] = std::move(reply);
    }
    return Status::ok();
  }

  // Gets the records that are not known. A node that has another one by now is asked anew.
  Status complete() {
    for (int i = 0; i < kTimesAsked; ++i) {
      std::vector<NodeIndex> changed;
      for (NodeIndex node = 0; node < replies_.size(); ++node) {
        DEDUP_ASSIGN(const bool is_complete, complete(node));
        if (!is_complete) changed.push_back(node);
      }
      if (changed.empty()) return Status::ok();
      std::vector<Answer> answers;
      DEDUP_TRY(ask(client_, request_, changed, kNoNode, answers));
      DEDUP_TRY(add(std::move(answers)));
    }
    return {Code::kFileInUse, request_.path + ": other jobs commit to the file all the time"};
  }

  // When they are complete.
  SearchResult take() {
    SearchResult result;
    result.reports.resize(replies_.size());
    std::set<store::RecordDigest> donors;
    for (NodeIndex node = 0; node < replies_.size(); ++node) {
      service::FindReply& reply = replies_[node];
      store::StoreReport& report = result.reports[node];
      report.node = node;
      report.store = reply.store.uuid;
      report.node_name = client_.node_name(node);
      report.deleted = std::move(reply.deleted);
      report.records = std::move(reply.records);
      report.cached = std::move(reply.cached);
      for (store::SharedRecord& donor : reply.donor) {
        result.donor_stores[donor->attempt].insert(reply.store.uuid);
        if (donors.insert(donor.digest()).second) result.donors.push_back(std::move(donor));
      }
      for (const std::string& text : reply.damaged) {
        result.damaged.push_back("node " + report.node_name + ": " + text);
      }
      result.makes_kept = result.makes_kept || reply.makes_kept;
      result.stores.push_back(std::move(reply.store));
      result.seen.push_back(reply.seen);
    }
    return result;
  }

 private:
  // False if it does not have them any more.
  Result<bool> complete(NodeIndex node) {
    for (auto* const records : {&replies_[node].records, &replies_[node].donor}) {
      for (store::SharedRecord& record : *records) {
        if (known_.complete(record)) continue;
        auto reply =
            client_.call(node, service::GetRecord{request_.store_template, record.digest()});
        if (!reply.is_ok()) return store_trouble(reply.status());
        if (!reply->record) return false;
        known_.add(*std::move(reply->record));
        if (!known_.complete(record)) return impossible();
      }
    }
    return true;
  }

  service::Client& client_;
  const service::Find& request_;
  std::vector<service::FindReply> replies_;  // by node
  store::KnownRecords known_;
};

Result<SearchResult> put_together(service::Client& client, const service::Find& request,
                                  std::vector<std::vector<Answer>> answers) {
  Findings findings(client, request);
  for (std::vector<Answer>& some : answers) DEDUP_TRY(findings.add(std::move(some)));
  DEDUP_TRY(findings.complete());
  return findings.take();
}

}  // namespace

Result<SearchResult> search(service::Client& client, const Ranks& ranks,
                            const service::Find& request) {
  std::vector<NodeIndex> nodes;
  for (NodeIndex n = 0; n < client.nodes(); ++n) {
    if (ranks.speaks_for(n)) nodes.push_back(n);
  }
  std::vector<Answer> mine;
  const NodeIndex whole = ranks.is_root() && !nodes.empty() ? nodes.front() : kNoNode;
  const Status status = ask(client, request, nodes, whole, mine);
  std::vector<std::vector<Answer>> answers;
  DEDUP_ASSIGN(std::vector<Bytes> all, ranks.gather_if_all_ok(status, encoded(mine)));
  for (Bytes& bytes : all) {
    auto told = decoded<std::vector<Answer>>(bytes);
    bytes = {};  // there are as many as nodes
    if (!told) return impossible();
    answers.push_back(*std::move(told));
  }
  if (ranks.rank() != 0) return SearchResult{};
  return put_together(client, request, std::move(answers));
}

Result<SearchResult> search_alone(service::Client& client, const std::string& path,
                                  const Id128& identity, const std::string& store_template) {
  const service::Find request{path, identity, store_template};
  std::vector<NodeIndex> nodes(client.nodes());
  std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
  std::vector<Answer> answers;
  DEDUP_TRY(ask(client, request, nodes, client.self(), answers));
  return put_together(client, request, {std::move(answers)});
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
