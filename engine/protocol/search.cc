#include "engine/protocol/search.h"

#include <algorithm>
#include <functional>

#include "base/fields.h"
#include "service/messages/store_node.h"

namespace dedup::engine {
namespace {

// A store that is not there must not look like a file that is not there: programs take the latter
// as leave to begin anew.
Status store_trouble(const Status& status) {
  if (status.code() != Code::kNoSuchFile) return status;
  return {Code::kIo, status.message() + " (the hint dedup_store says where stores are)"};
}

// The encoded replies of those nodes that `mine` says are this process's to ask: node, then reply.
Status ask(service::Client& client, const std::string& path, const Id128& identity,
           const std::string& store_template, const std::function<bool(NodeIndex)>& mine,
           Encoder& out) {
  std::vector<std::pair<NodeIndex, service::Client::Pending<service::Find>>> pending;
  for (NodeIndex n = 0; n < client.nodes(); ++n) {
    if (mine(n))
      pending.emplace_back(n, client.start(n, service::Find{path, identity, store_template}));
  }
  Status status;
  for (auto& [node, p] : pending) {
    const auto reply = p.wait();
    if (!reply.is_ok()) {
      if (status.is_ok()) status = store_trouble(reply.status());
      continue;
    }
    out.put(node);
    put_fields(out, *reply);
  }
  return status;
}

Result<SearchResult> decode(const service::Client& client, const std::vector<Bytes>& encoded) {
  SearchResult result;
  result.reports.resize(client.nodes());
  result.stores.resize(client.nodes());
  result.seen.resize(client.nodes());
  for (const Bytes& bytes : encoded) {
    Decoder decoder(bytes);
    while (!decoder.at_end()) {
      const auto node = decoder.get<NodeIndex>();
      auto reply = get_fields<service::FindReply>(decoder);
      if (!decoder.ok() || node >= client.nodes()) {
        return Status(Code::kInternal, "a rank sent a node's answer that cannot be");
      }
      store::StoreReport& report = result.reports[node];
      report.node = node;
      report.store = reply.store.uuid;
      report.node_name = client.node_name(node);
      report.deleted = std::move(reply.deleted);
      for (const Bytes& record : reply.records) {
        DEDUP_ASSIGN(store::CommitRecord decoded, store::CommitRecord::decode(record));
        report.records.push_back(std::move(decoded));
      }
      for (const std::string& text : reply.damaged) {
        result.damaged.push_back("node " + report.node_name + ": " + text);
      }
      result.stores[node] = std::move(reply.store);
      result.seen[node] = reply.seen;
    }
  }
  return result;
}

}  // namespace

Result<SearchResult> search(service::Client& client, const Ranks& ranks, const std::string& path,
                            const Id128& identity, const std::string& store_template) {
  Encoder mine;
  const Status status = ask(
      client, path, identity, store_template, [&](NodeIndex n) { return ranks.speaks_for(n); },
      mine);
  DEDUP_TRY(ranks.agree(status));
  const std::vector<Bytes> all = ranks.gather(mine.bytes());
  if (ranks.rank() != 0) return SearchResult{};
  return decode(client, all);
}

Result<SearchResult> search_alone(service::Client& client, const std::string& path,
                                  const Id128& identity, const std::string& store_template) {
  Encoder mine;
  DEDUP_TRY(ask(
      client, path, identity, store_template, [](NodeIndex) { return true; }, mine));
  return decode(client, {mine.take()});
}

void hide(SearchResult& found, const std::vector<Id128>& identities) {
  for (store::StoreReport& report : found.reports) {
    std::erase_if(report.records, [&](const store::CommitRecord& record) {
      return std::find(identities.begin(), identities.end(), record.identity) != identities.end();
    });
  }
}

Result<bool> is_shared(const SearchResult& found, const std::string& path) {
  DEDUP_ASSIGN(const store::Seen mine, store::see_directory(path));
  return std::all_of(found.seen.begin(), found.seen.end(),
                     [&](const store::Seen& seen) { return store::is_shared(seen, mine); });
}

}  // namespace dedup::engine
