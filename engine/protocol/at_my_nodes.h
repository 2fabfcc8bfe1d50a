// Asks all nodes that a rank speaks for at once.
#pragma once

#include <vector>

#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "service/client.h"

namespace dedup::engine {

// The same request to each of them, sent when this is made. By one thread.
template <typename Request>
class AtMyNodes {
 public:
  AtMyNodes(const JobFile& file, const Request& request) {
    for (NodeIndex n = 0; n < file.nodes(); ++n) {
      if (file.ranks().speaks_for(n)) pending_.push_back(file.client().start(n, request));
    }
  }

  // Calls each(reply) for the nodes that succeed. The first error.
  template <typename Each>
  Status wait(const Each& each) {
    Status status;
    for (auto& p : pending_) {
      const auto reply = p.wait();
      if (reply.is_ok()) {
        each(*reply);
      } else if (status.is_ok()) {
        status = reply.status();
      }
    }
    return status;
  }
  Status wait() {
    return wait([](const auto&) {});
  }

 private:
  std::vector<service::Client::Pending<Request>> pending_;
};

// The first error; all have answered.
template <typename Request>
Status at_my_nodes(const JobFile& file, const Request& request) {
  return AtMyNodes<Request>(file, request).wait();
}

}  // namespace dedup::engine
