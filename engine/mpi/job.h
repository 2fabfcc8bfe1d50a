// The job: the nodes of MPI_COMM_WORLD, their services, and this process's way to them.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "base/types.h"
#include "service/client.h"

namespace dedup::engine {

// One per process, from dedup_job_begin to dedup_job_end. A node is what DEDUP_NODE or
// DEDUP_NODES names (hints/node.h) or, by default, the ranks that share memory. Its lowest rank
// runs the service.
class Job {
 public:
  // Collective over MPI_COMM_WORLD. Costs an allgather over nodes of about 400 bytes each and a few
  // communicator splits.
  static void begin();
  // Collective: a barrier, then the service and all connections end.
  static void end();
  // The job, or why there is none. Not between begin and end: kUnsupported.
  static Result<Job*> get();

  // Random, the same on all ranks of the job, different for every job.
  const Id128& id() const { return id_; }
  service::Client& client() { return *client_; }
  NodeIndex nodes() const { return client_->nodes(); }
  NodeIndex my_node() const { return client_->self(); }
  const std::string& node_name(NodeIndex node) const { return client_->node_name(node); }

  ~Job();

 private:
  Job();
  Status start();

  struct Private;
  std::unique_ptr<Private> p_;
  Id128 id_;
  std::unique_ptr<service::Client> client_;
};

}  // namespace dedup::engine
