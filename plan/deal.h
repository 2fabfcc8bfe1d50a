// Dealing: which nodes hold a chunk in the end, and who sends it to whom.
//
// After B. Nicolae (IPDPS 2015): round-robin dealing (III-B), Algorithm 2 (partners by load), with
// one difference: copies go to the next position in the order whose node is neither designated for
// the chunk nor already receives it, since fixed positions can hit a node that has it anyway. Pure:
// whoever has the same input comes to the same dealing, without a word exchanged.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/codec.h"
#include "base/types.h"
#include "plan/placement.h"
#include "plan/reduce.h"

namespace dedup::plan {

struct SendLoad {
  NodeIndex node = kNoNode;
  std::uint64_t bytes = 0;
};

// Algorithm 2: sorted by load, one heavy sender followed by K - 1 light ones, and so on. Equal
// loads stay in the order in which they are given.
std::vector<NodeIndex> order_by_load(std::vector<SendLoad> loads, unsigned copies);

// The most that a node receives if every node sends its load in equal parts to the K - 1 nodes
// after it in the order. `loads` in any order, of the same nodes.
std::uint64_t largest_receive(std::span<const NodeIndex> order, std::span<const SendLoad> loads,
                              unsigned copies);

// Deals copies of chunks to nodes in an agreed order.
class Dealer {
 public:
  struct Copy {
    NodeIndex from = kNoNode;
    NodeIndex to = kNoNode;
    bool operator==(const Copy&) const = default;
  };
  struct Deal {
    Placement placement;       // after all copies: on K nodes, or more if more hold it anyway
    std::vector<Copy> copies;  // in the order of dealing
  };

  Dealer() = default;
  // `order`: the nodes that take part, each once; `copies`: K.
  Dealer(std::vector<NodeIndex> order, unsigned copies);

  // For a chunk that is designated to `designated`, of whom those that do not hold it have its
  // data. `salt`: the same for the same chunk on all nodes; deals the copies out to the senders
  // fairly. False if there are not enough nodes that take copies. Reuses the memory of `out`.
  bool deal(std::span<const Designated> designated, std::uint64_t salt, Deal& out) const;
  // The same for a chunk outside the result, as its holder `node` sees it.
  bool deal_unique(NodeIndex node, bool held, Deal& out) const;

  const std::vector<NodeIndex>& order() const { return order_; }
  unsigned copies() const { return copies_; }
  // Whether a node takes copies, and whether it has room for its own chunks. One that has none
  // sends what it would have kept to one node more.
  bool receives(NodeIndex node) const { return at(node).receives; }
  bool keeps(NodeIndex node) const { return at(node).keeps; }
  void stop_receiving(NodeIndex node) { nodes_[node].receives = false; }
  void stop_keeping(NodeIndex node) { nodes_[node] = {nodes_[node].position, false, false}; }

  void encode(Encoder& e) const;
  static Dealer decode(Decoder& d);

 private:
  struct Node {
    std::uint32_t position = 0;
    bool receives = true;
    bool keeps = true;
  };
  const Node& at(NodeIndex node) const { return nodes_[node]; }

  std::vector<NodeIndex> order_;
  std::vector<Node> nodes_;  // by node
  unsigned copies_ = 1;
};

// What every leader is told of a node.
struct NodeState {
  NodeIndex node = kNoNode;
  std::uint64_t free_bytes = 0;
  // Chunks of the node that are not in the result and not settled: it sends each to K - 1 others.
  std::uint64_t new_chunks = 0;
  std::uint64_t new_bytes = 0;
  // Of the same kind, but in its store already.
  std::uint64_t held_chunks = 0;
  std::uint64_t held_bytes = 0;
};

struct DealingInput {
  unsigned copies = 1;               // K, at most nodes.size()
  bool ring = false;                 // order of `nodes`, whatever their load
  std::uint32_t chunk_overhead = 0;  // bytes that a chunk takes in a store beyond its data, at most
  // All nodes that take part. The order decides between equal loads.
  std::span<const NodeState> nodes;
  const FrequentSet* result = nullptr;
  // Of an earlier dump: kept if the nodes are the same and a new order would not lower the largest
  // receive by a fifth. Few orders mean few sets of nodes whose loss is fatal.
  std::span<const NodeIndex> previous_order;
};

// Chunks that one node sends to another.
struct Flow {
  NodeIndex from = kNoNode;
  NodeIndex to = kNoNode;
  std::uint64_t chunks = 0;
};

struct Dealing {
  bool feasible = false;
  Dealer dealer;
  std::vector<Flow> flows;  // sorted by (to, from)
  // If it is not feasible: what is missing on the node that lacks most, and on all nodes together.
  NodeIndex tightest = kNoNode;
  std::uint64_t tightest_short = 0;
  std::uint64_t bytes_short = 0;
};

// Finds an order, and who has to be passed over for want of room. Time and memory in
// |result| * K + nodes * K, times the number of times that nodes have to be passed over.
Dealing deal_all(const DealingInput& input);

}  // namespace dedup::plan
