// Leases on blocks, for whoever meets them. What they are is said in service/messages/lease.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "service/client.h"
#include "service/messages/lease.h"

namespace dedup::engine {

// Ends these leases, whoever has them: when this returns their homes know what was written under
// them. Local, three requests each; harmless for leases that have ended. kUnreachable if the node
// of a lease is lost, and with it what was written there.
Status recall(const JobFile& file, std::span<const service::Lease> leases);

// Tells the homes that the lease has ended, and what was written under it.
Status return_lease(const JobFile& file, const service::Lease& lease, std::vector<LogPiece> pieces,
                    bool recalled);

// The file's size, with what is written under leases. Local.
Result<std::uint64_t> file_size(const JobFile& file);

// Sends each node its request, and again until no lease stands in its way: for requests whose reply
// has `leases`. All are sent whatever happens to the first. Local.
template <typename Request>
Status send_past_leases(const JobFile& file, const std::map<NodeIndex, Request>& requests) {
  std::vector<std::pair<NodeIndex, const Request*>> left;
  for (const auto& [node, request] : requests) left.emplace_back(node, &request);
  Status status;
  while (!left.empty()) {
    std::vector<service::Client::Pending<Request>> pending;
    for (const auto& [node, request] : left) pending.push_back(file.client().start(node, *request));
    std::vector<std::pair<NodeIndex, const Request*>> again;
    std::vector<service::Lease> leases;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const auto reply = pending[i].wait();
      if (!reply.is_ok()) {
        if (status.is_ok()) status = reply.status();
      } else if (!reply->leases.empty()) {
        leases.insert(leases.end(), reply->leases.begin(), reply->leases.end());
        again.push_back(left[i]);
      }
    }
    DEDUP_TRY(status);
    DEDUP_TRY(recall(file, leases));
    left = std::move(again);
  }
  return status;
}

}  // namespace dedup::engine
