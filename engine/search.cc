#include "engine/search.h"

#include <algorithm>
#include <functional>

#include "engine/agreement.h"

namespace dedup::engine {
namespace {

// A store that is not there must not look like a file that is not there: programs take the latter
// as leave to begin anew.
Status store_trouble(const Status& status) {
  if (status.code() != Code::kNoSuchFile) return status;
  return {Code::kIo, status.message() + " (the hint dedup_store says where stores are)"};
}

// The encoded replies of those nodes that `mine` says are this process's to ask: node, then reply.
Status ask(Job& job, const std::string& path, const Id128& identity,
           const std::string& store_template, const std::function<bool(NodeIndex)>& mine,
           Encoder& out) {
  std::vector<std::pair<NodeIndex, service::Client::Pending<service::Find>>> pending;
  for (NodeIndex n = 0; n < job.nodes(); ++n) {
    if (mine(n))
      pending.emplace_back(n, job.client().start(n, service::Find{path, identity, store_template}));
  }
  Status status;
  for (auto& [node, p] : pending) {
    const auto reply = p.wait();
    if (!reply.is_ok()) {
      if (status.is_ok()) status = store_trouble(reply.status());
      continue;
    }
    out.put(node);
    reply->encode(out);
  }
  return status;
}

Result<SearchResult> decode(Job& job, const std::vector<Bytes>& encoded) {
  SearchResult result;
  result.reports.resize(job.nodes());
  result.stores.resize(job.nodes());
  result.seen.resize(job.nodes());
  for (const Bytes& bytes : encoded) {
    Decoder decoder(bytes);
    while (!decoder.at_end()) {
      const auto node = decoder.get<NodeIndex>();
      service::FindReply reply = service::FindReply::decode(decoder);
      if (!decoder.ok() || node >= job.nodes()) {
        return Status(Code::kInternal, "a rank sent a node's answer that cannot be");
      }
      plan::StoreReport& report = result.reports[node];
      report.node = node;
      report.store = reply.store.uuid;
      report.node_name = job.node_name(node);
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

Result<SearchResult> search(Job& job, const Topology& topology, const std::string& path,
                            const Id128& identity, const std::string& store_template) {
  Encoder mine;
  const Status status = ask(
      job, path, identity, store_template,
      [&](NodeIndex n) { return topology.speaker_for(n) == topology.rank(); }, mine);
  DEDUP_TRY(agree(topology.comm(), status));
  const std::vector<Bytes> all = gather(topology.comm(), mine.bytes());
  if (topology.rank() != 0) return SearchResult{};
  return decode(job, all);
}

Result<SearchResult> search_alone(Job& job, const std::string& path, const Id128& identity,
                                  const std::string& store_template) {
  Encoder mine;
  DEDUP_TRY(ask(
      job, path, identity, store_template, [](NodeIndex) { return true; }, mine));
  return decode(job, {mine.take()});
}

void hide(SearchResult& found, const std::vector<Id128>& identities) {
  for (plan::StoreReport& report : found.reports) {
    std::erase_if(report.records, [&](const store::CommitRecord& record) {
      return std::find(identities.begin(), identities.end(), record.identity) != identities.end();
    });
  }
}

bool is_shared(const SearchResult& found, const std::string& path) {
  const store::Seen mine = store::see_directory(path);
  return std::all_of(found.seen.begin(), found.seen.end(),
                     [&](const store::Seen& seen) { return store::is_shared(seen, mine); });
}

}  // namespace dedup::engine
