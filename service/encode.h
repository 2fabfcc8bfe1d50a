// Making the parities of stripes out of units that other nodes have: a task for the executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/status.h"
#include "plan/stripe_content.h"
#include "service/executor.h"
#include "service/messages/store_node.h"
#include "service/server.h"
#include "service/store_node.h"

namespace dedup::service {

// One stripe a step, for which it asks all nodes of units at the same time, and already those of
// the next ones, as long as they fit into 16 MiB; each chunk is checked by its seal before it goes
// into a parity. A stripe of which a node does not give its unit whole is not made, nor one of
// which a node does not take its parity. Memory: those 16 MiB, or one stripe's units, and its
// parities.
class EncodeTask final : public Executor::Task {
 public:
  // `self`: this node. `node` must outlive it, and is used in the loop alone.
  EncodeTask(EncodeStripes request, NodeIndex self, StoreNode& node,
             std::unique_ptr<Responder> responder);
  ~EncodeTask() override;

  Result<Executor::Progress> step(Executor::Beside& beside) override;
  void ended(const Status& outcome) override;

 private:
  struct Asked;

  void ask_ahead(Client& services);
  // False if it is not made.
  Result<bool> encode(Executor::Beside& beside, Asked& asked);
  Result<bool> store(Executor::Beside& beside, const NewStripe& stripe, const Bytes& table,
                     const std::vector<Bytes>& parities);

  const EncodeStripes request_;
  const NodeIndex self_;
  StoreNode& node_;
  std::unique_ptr<Responder> responder_;
  EncodeReply reply_;
  std::size_t next_ = 0;  // stripe whose units were not asked for yet
  std::deque<std::unique_ptr<Asked>> asked_;
};

}  // namespace dedup::service
