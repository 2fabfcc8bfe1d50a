// Dealing: which nodes hold a chunk in the end, and who sends it to whom.
//
// After B. Nicolae (IPDPS 2015): round-robin dealing (III-B), Algorithm 2 (partners by load), with
// two differences. Copies go to the next position in the order whose node is neither designated for
// the chunk nor already receives it, since fixed positions can hit a node that has it anyway. And
// the order may be cut into groups, whose members are one another's partners: what a node has to
// itself goes in equal parts to all others of its group, so that it is also read from all of them
// when the node is lost. Pure: whoever has the same input comes to the same dealing, without a word
// exchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/codec.h"
#include "base/piece.h"
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

// How an order of nodes is cut into groups: as many as there can be of at least `least` nodes, the
// first ones one larger than the others if they do not come out even.
class Groups {
 public:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;  // behind the last
    std::size_t size() const { return end - begin; }
  };

  Groups() = default;
  Groups(std::size_t nodes, std::size_t least);

  std::size_t count() const { return count_; }
  Range of(std::size_t position) const;   // the group that a position is in
  Range range(std::size_t number) const;  // 0 … count() - 1

 private:
  std::size_t nodes_ = 0;
  std::size_t count_ = 1;
};

struct Member {
  NodeIndex node = kNoNode;
  std::uint64_t bytes = 0;   // that it sends
  std::uint32_t domain = 0;  // that it is lost with; 0: not known
};

// An order for groups of at least `least` nodes: those of a failure domain are dealt out to the
// groups, so that a group has as many domains as it can; and as far as that allows the heavier ones
// go to the groups that have less. Equal loads stay in the order in which they are given, and so
// are far from each other.
std::vector<NodeIndex> order_in_groups(std::vector<Member> members, std::size_t least);

// The most that a node receives if every node sends its load in equal parts to the others of its
// group.
std::uint64_t largest_receive_in_groups(std::span<const NodeIndex> order,
                                        std::span<const SendLoad> loads, std::size_t least);

// Deals copies of chunks to nodes in an agreed order.
class Dealer {
 public:
  struct Copy {
    NodeIndex from = kNoNode;
    NodeIndex to = kNoNode;
    bool operator==(const Copy&) const = default;
  };
  struct Deal {
    Placement placement;  // after all copies: on K nodes, or more if more hold it anyway; see also
                          // stop_copying()
    std::vector<Copy> copies;  // in the order of dealing
  };

  Dealer() = default;
  // `order`: the nodes that take part, each once; `copies`: K. Partners are those that come next.
  Dealer(std::vector<NodeIndex> order, unsigned copies);
  // Partners are the members of groups.
  struct Grouping {
    unsigned least = 0;                  // nodes of a group, but K at least
    std::uint32_t turn = 0;              // another one has parts begin with other partners
    std::vector<std::uint32_t> domains;  // by node; none: not known
  };
  Dealer(std::vector<NodeIndex> order, unsigned copies, Grouping grouping);

  // For a chunk that is designated to `designated`, of whom those that do not hold it have its
  // data. `salt`: the same for the same chunk on all nodes; deals the copies out to the senders
  // fairly. False if there are not enough nodes that take copies. Reuses the memory of `out`.
  bool deal(std::span<const Designated> designated, std::uint64_t salt, Deal& out) const;
  // The same for a chunk outside the result, as its holder `node` sees it. `part`: below parts().
  bool deal_unique(NodeIndex node, bool held, std::uint32_t part, Deal& out) const;
  // Into how many parts `chunks` such chunks of a node are cut, one behind the other and each for
  // other partners; and which of `parts` the one is in that has `index` others before it. One if
  // there are no groups.
  std::uint32_t parts(NodeIndex node, std::uint64_t chunks) const;
  static std::uint32_t part_of(std::uint64_t index, std::uint64_t chunks, std::uint32_t parts) {
    return static_cast<std::uint32_t>(index * parts / chunks);
  }

  const std::vector<NodeIndex>& order() const { return order_; }
  unsigned copies() const { return copies_; }
  // Whether a node takes copies, and whether it has room for its own chunks. One that has none
  // sends what it would have kept to one node more.
  bool receives(NodeIndex node) const { return at(node).receives; }
  bool keeps(NodeIndex node) const { return at(node).keeps; }
  // Whether one that a chunk is designated to is to store what it has of it, dealt like that.
  bool stores(const Designated& designated, const Placement& placement) const {
    return !designated.held && keeps(designated.node) && placement.is_on(designated.node);
  }
  void stop_receiving(NodeIndex node) { nodes_[node].receives = false; }
  void stop_keeping(NodeIndex node) { nodes_[node] = {nodes_[node].position, false, false}; }
  // From now on no copies are made: a chunk that K nodes have, or more, stays on `left_alone` of
  // them, 1 to K; any other on one, for a stripe to take care of. 0: they are made.
  void stop_copying(unsigned left_alone) { left_alone_ = left_alone; }
  // From now on there is one part of each node's chunks: what each node receives can be told
  // exactly.
  void stop_parting() { is_parted_ = false; }
  bool is_parted() const { return is_parted_; }

  void encode(Encoder& e) const;
  static Dealer decode(Decoder& d);

 private:
  struct Node {
    std::uint32_t position = 0;
    bool receives = true;
    bool keeps = true;
  };
  const Node& at(NodeIndex node) const { return nodes_[node]; }
  std::uint32_t domain_of(NodeIndex node) const;
  bool deal_from(std::span<const Designated> designated, std::uint64_t salt, std::uint64_t part,
                 Deal& out) const;
  static NodeSet choose(std::size_t count, std::span<const Designated> designated,
                        std::uint64_t salt, const Placement& placement);
  // Who takes the `copy`-th of the copies that the node at `position` has to send of a chunk.
  NodeIndex partner(std::size_t position, std::uint64_t part, std::size_t copy,
                    const Placement& placement) const;

  std::vector<NodeIndex> order_;
  std::vector<Node> nodes_;  // by node
  unsigned copies_ = 1;
  Grouping grouping_;  // least: 0 if there are no groups
  Groups groups_;
  bool is_parted_ = false;
  unsigned left_alone_ = 0;  // 0: copies are made
};

// What a node, or a part of its ranks, does with chunks in the result, as a dealer has it.
struct SharedPart {
  struct Sent {
    NodeIndex to = kNoNode;
    std::uint64_t chunks = 0;
    std::uint64_t bytes = 0;
  };

  NodeIndex node = kNoNode;
  bool dealt = true;        // false: not enough nodes take copies
  std::uint64_t own = 0;    // bytes of its own that it has to store, with what they take beside
  std::vector<Sent> sends;  // by node

  std::uint64_t bytes_sent() const;
  // Those of two parts of a node together.
  void add(const SharedPart& other);
};

// What `node` does with the chunks of a result that has all in which it has a part. `overhead`: see
// DealingInput::chunk_overhead.
SharedPart shared_part(const FrequentSet& result, NodeIndex node, const Dealer& dealer,
                       std::uint32_t overhead);

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
  std::uint32_t domain = 0;  // see LiveNodes
  // Of chunks in the result, if these are not in DealingInput::result: bytes that it sends, whoever
  // takes them.
  std::uint64_t shared_sent = 0;
};

struct DealingInput {
  unsigned copies = 1;               // K, at most nodes.size()
  bool ring = false;                 // order of `nodes`, whatever their load
  std::uint32_t chunk_overhead = 0;  // bytes that a chunk takes in a store beyond its data, at most
  // All nodes that take part. The order decides between equal loads.
  std::span<const NodeState> nodes;
  const FrequentSet* result = nullptr;  // the whole result; or null, and `shared` is given
  // Of an earlier dump: kept if the nodes are the same and a new order would not lower the largest
  // receive by a fifth. Few orders mean few sets of nodes whose loss is fatal.
  std::span<const NodeIndex> previous_order;
  unsigned group = 0;      // least number of nodes of a group; 0, or `ring`: there are none
  std::uint32_t turn = 0;  // see Dealer::Grouping
  // No chunk is longer: what a part of a node's chunks takes at most goes by it.
  std::uint32_t longest_chunk = kMaxChunkSize;
  unsigned left_alone = 0;  // see Dealer::stop_copying(); 0: copies are made
  // Where nobody has the whole result: every node's part of it, as a dealer has it. Asked for each
  // dealer that is tried, after the first, which is known by NodeState::shared_sent.
  std::function<std::vector<SharedPart>(const Dealer&)> shared = nullptr;
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
// |result| * K (or what all parts send) + nodes * K * (parts of a node's chunks), times the number
// of times that nodes have to be passed over. Where room is short there is one part.
Dealing deal_all(const DealingInput& input);

}  // namespace dedup::plan
