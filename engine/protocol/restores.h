// Having nodes get chunks that they lack from the nodes that have them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/job_file.h"
#include "plan/placement.h"
#include "service/client.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

// The nodes' executors do it (service/restore.h), all at the same time, while the caller goes on. A
// request is sent when a node is to get 1 MiB, or when somebody waits for it. One thread. Memory:
// 64 bytes a chunk that is under way, and at most 64 requests.
class Restores {
 public:
  explicit Restores(JobFile& file) : file_(file) {}
  // Waits for what is under way: a request that nobody waits for closes its connection, on which
  // the job may have locks.
  ~Restores();
  Restores(const Restores&) = delete;
  Restores& operator=(const Restores&) = delete;

  // A chunk that some nodes are to get.
  struct Chunk {
    Fingerprint fingerprint;
    std::uint32_t targets = 0;
    std::uint32_t waiting = 0;  // of them, not known yet
    std::uint32_t lost = 0;     // could not get it from anybody

    bool is_done() const { return waiting == 0; }
    bool is_lost() const { return is_done() && targets > 0 && lost == targets; }
  };

  // `targets`: nodes that get the chunk; `sources`: how it should be kept now (whoever else has it
  // is asked after these nodes); `after`: how it is kept then.
  Result<std::shared_ptr<const Chunk>> begin(const Fingerprint& fingerprint, std::uint32_t length,
                                             const plan::Placement& sources,
                                             const plan::Placement& after,
                                             std::span<const NodeIndex> targets);
  // One that nobody is asked for, since it is known to be lost.
  static std::shared_ptr<const Chunk> lost(const Fingerprint& fingerprint);
  // Until it is done. The error of any request that was waited for: then nobody needs to go on.
  Status finish(const Chunk& chunk);

  std::uint64_t copies_made() const { return copies_made_; }

 private:
  using Waiting = std::vector<std::shared_ptr<Chunk>>;
  // Not sent yet.
  struct Batch {
    service::Restore request;
    std::map<plan::Placement, std::uint32_t> sources;  // their numbers in the request
    std::map<plan::Placement, std::uint32_t> placements;
    std::map<Fingerprint, std::uint32_t> positions;
    std::vector<Waiting> waiting;  // for each chunk of the request
    std::size_t bytes = 0;
  };
  struct Sent {
    NodeIndex node;
    std::vector<Waiting> waiting;
    service::Client::Pending<service::Restore> pending;
  };

  Status send(NodeIndex node, Batch batch);
  Status take_first();

  JobFile& file_;
  std::map<NodeIndex, Batch> batches_;
  std::deque<Sent> sent_;
  std::uint64_t copies_made_ = 0;
};

}  // namespace dedup::engine
