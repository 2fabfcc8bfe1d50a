// Getting chunks that this node lacks from the nodes that have them: a task for the executor.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "service/executor.h"
#include "service/messages/store_node.h"
#include "service/server.h"
#include "service/store_node.h"
#include "service/stripe_decoder.h"

namespace dedup::service {

// Asks all nodes that have something at the same time, each for up to 512 KiB and 16 nodes at most,
// and has each reply checked and stored while the others are under way. So the memory is 8 MiB and
// what one reply takes once more. A chunk that a node does not give is asked for at the next one
// that should have it; then it is made from the rest of its stripe, if it is in one; then it is
// asked for at every other node of the job; one that nobody gives is lost. A step takes one reply,
// or makes what is to be made of one stripe.
class RestoreTask final : public Executor::Task {
 public:
  // `self`: this node, whom nobody asks. `node` must outlive it, and is used in the loop alone.
  RestoreTask(Restore request, NodeIndex self, StoreNode& node,
              std::unique_ptr<Responder> responder);
  ~RestoreTask() override;

  Result<Executor::Progress> step(Executor::Beside& beside) override;
  void ended(const Status& outcome) override;

 private:
  struct Asked;

  Status find_lacking(Executor::Beside& beside);
  void ask_next(std::uint32_t i, const Client& services);
  void ask(Client& services);
  Status take(Executor::Beside& beside, Asked& asked);
  Status make(Executor::Beside& beside);
  Result<bool> make_unit(Executor::Beside& beside, const plan::StripeUnit& stripe,
                         const RestoreChunk& part);
  Status store(Executor::Beside& beside, const PutChunks& put);

  const Restore request_;
  const NodeIndex self_;
  StoreNode& node_;
  std::unique_ptr<Responder> responder_;
  RestoreReply reply_;

  bool begun_ = false;
  std::vector<NodeIndex> sources_;                         // memory for ask_next
  std::vector<std::uint32_t> tried_;                       // nodes, by chunk
  std::map<NodeIndex, std::deque<std::uint32_t>> to_ask_;  // chunks, by the node to ask next
  // Chunks that are to be made, by Restore::sources, of which each is a unit of a stripe.
  std::map<std::uint32_t, std::vector<std::uint32_t>> to_make_;
  std::optional<StripeDecoder> decoder_;
  std::deque<std::unique_ptr<Asked>> asked_;  // at most one of a node
};

}  // namespace dedup::service
