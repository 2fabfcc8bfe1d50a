// The services that ranks of the job have told this process of (service/job_services.h).
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/types.h"
#include "service/client.h"
#include "service/job_services.h"

namespace dedup::ctl {

// Thread-safe.
class KnownServices {
 public:
  // `teller`: the connection of who told.
  void add(int teller, const service::JobServices& services);
  // What that one told holds no longer. Nothing if it told nothing.
  void remove(int teller);

  // The way to each job's, the one that was told last first: a program may begin others, and after
  // a node is lost it has a job of those that are left.
  std::vector<std::shared_ptr<service::Client>> all() const;

 private:
  struct Told {
    int teller = -1;
    Id128 job;
    std::shared_ptr<service::Client> client;  // the same for all who told of a job
  };
  mutable std::mutex mutex_;
  std::vector<Told> told_;
};

}  // namespace dedup::ctl
