// How a chunk is kept: which nodes have it, whether these are enough, whom to ask for it, and what
// is to be done when nodes are gone.
//
// A value, and pure functions of it: whoever asks the same of the same placement gets the same
// answer, without a word exchanged. There are two kinds: copies on nodes, and units of stripes,
// which have parities on other nodes (plan/stripes.h). They answer the same questions; so nobody
// else counts copies. What is asked of a placement does not depend on the chunk, but for who is
// chosen among equals: many chunks share a placement, so it is asked once for all of them. All
// const functions are thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "base/codec.h"
#include "base/types.h"

namespace dedup::plan {

// The nodes that are there, of at most 65535: a bit each to ask for one, and a list, 2 bytes each,
// to choose from.
class LiveNodes {
 public:
  LiveNodes() = default;  // none
  // 0 … nodes - 1, as in a job. `domains`: of each of them, equal numbers for those that are likely
  // to be lost together, 0 if it is not known; empty: it is of none.
  explicit LiveNodes(NodeIndex nodes, std::vector<std::uint32_t> domains = {});
  explicit LiveNodes(std::span<const NodeIndex> nodes);  // these, in any order

  // Time linear in the number of nodes.
  void erase(NodeIndex node);

  bool contains(NodeIndex node) const {
    return node / 64u < bits_.size() && (bits_[node / 64u] >> node % 64u & 1) != 0;
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(list_.size()); }
  std::uint32_t domain_of(NodeIndex node) const {
    return node < domains_.size() ? domains_[node] : 0;
  }
  // Whether none of `others` is known to be in the same domain as `node`.
  bool is_apart(NodeIndex node, std::span<const NodeIndex> others) const;
  // Ascending.
  const std::vector<NodeIndex>& list() const { return list_; }

 private:
  std::vector<std::uint64_t> bits_;
  std::vector<NodeIndex> list_;
  std::vector<std::uint32_t> domains_;
};

// How well a chunk is kept, or is to be: how many nodes must be lost, at least, before it can be.
class Redundancy {
 public:
  constexpr Redundancy() = default;  // of what is lost
  // Of a chunk that is on `nodes` nodes as a whole.
  static constexpr Redundancy copies(std::uint32_t nodes) { return Redundancy(nodes); }
  // Of no chunk at all: no loss is fatal.
  static constexpr Redundancy boundless() { return Redundancy(0xffffffff); }

  // What of it can be had if there are only so many nodes.
  constexpr Redundancy within(std::uint32_t nodes) const {
    return Redundancy(fatal_ < nodes ? fatal_ : nodes);
  }
  // What is left of it after that many losses, at worst.
  constexpr Redundancy after(std::uint32_t losses) const {
    return Redundancy(fatal_ > losses ? fatal_ - losses : 0);
  }
  // Of `nodes` nodes that keep something this well among them, how many must be there, at least,
  // so that the others cannot have all of it.
  constexpr std::uint32_t quorum(std::uint32_t nodes) const {
    return nodes - within(nodes).fatal_ + 1;
  }
  constexpr bool is_lost() const { return fatal_ == 0; }
  constexpr bool is_boundless() const { return fatal_ == 0xffffffff; }
  // What users are told: it is kept as well as by whole copies on that many nodes. To be shown, not
  // to be compared with anything.
  constexpr std::uint32_t as_copies() const { return fatal_; }
  auto operator<=>(const Redundancy&) const = default;

  // For messages.
  void encode(Encoder& e) const { e.put(fatal_); }
  static Redundancy decode(Decoder& d) { return Redundancy(d.get<std::uint32_t>()); }

 private:
  constexpr explicit Redundancy(std::uint32_t fatal) : fatal_(fatal) {}

  // The loss of that many nodes can be the loss of the chunk, that of fewer cannot: K if K nodes
  // have copies.
  std::uint32_t fatal_ = 0;
};

// Where a unit of a stripe is, and what else there is of the stripe.
struct StripeUnit {
  static constexpr unsigned kMostNodes = 64;  // of a stripe
  static constexpr unsigned kMostParities = 8;

  Id128 stripe;
  std::uint8_t unit = 0;         // which of its units of data
  std::uint8_t data = 0;         // k: how many units of data it has
  std::vector<NodeIndex> nodes;  // of these, then of the parities; kNoNode: its part is gone

  // What its node keeps of it: the unit's chunks, with a list of them, or a parity.
  bool is_parity(unsigned slot) const { return slot >= data; }
  // Whether there can be such a one: 1 to kMostParities parities, no node twice.
  bool possible() const;
  auto operator<=>(const StripeUnit&) const = default;
};

struct Repair;

class Placement {
 public:
  // As the format numbers them (doc/format.md, "Block").
  enum class Kind : std::uint16_t { kCopies = 0, kStripe = 1 };

  // Copies on no node: the chunk is lost.
  Placement() = default;
  // `nodes`: in any order; one that is named twice counts once.
  static Placement copies_on(NodeSet nodes);
  // unit.possible().
  static Placement in_stripe(StripeUnit unit);

  Kind kind() const { return kind_; }
  // The nodes that have the whole chunk, ascending: those that have to know that it is referred to.
  // How well it is kept cannot be told from their number.
  const NodeSet& nodes() const { return nodes_; }
  bool is_on(NodeIndex node) const;
  // Null: it is in none.
  const StripeUnit* stripe() const { return kind_ == Kind::kStripe ? &unit_ : nullptr; }
  // Those that keep anything which the chunk may be had from, ascending.
  NodeSet all_nodes() const;
  bool involves(NodeIndex node) const;
  // Whether it names none but the nodes 0 … nodes - 1.
  bool is_within(NodeIndex nodes) const;
  // The whole chunk is on that node, too. Not of a stripe's.
  void add_copy(NodeIndex node);
  // On no node; keeps the memory.
  void clear();
  // What it takes beyond its own size: bytes, roughly also those of its encoding.
  std::size_t memory() const {
    return (nodes_.capacity() + unit_.nodes.capacity()) * sizeof(NodeIndex);
  }

  // With the nodes that are there; with all that it names.
  Redundancy redundancy(const LiveNodes& live) const;
  Redundancy redundancy() const;
  bool enough(const LiveNodes& live, Redundancy wanted) const { return redundancy(live) >= wanted; }

  // Whom to ask for the chunk, in order: the reader's own node if it has it, then the others of
  // those that live, from one on that differs from reader to reader and with `salt`, so that
  // readers spread over the copies. Reuses the memory of `out`.
  void sources(const LiveNodes& live, NodeIndex reader, std::uint64_t salt,
               std::vector<NodeIndex>& out) const;
  // The node that takes care of a chunk which is not kept well enough on the nodes that are there:
  // the first that has it. kNoNode: none does.
  NodeIndex keeper(const LiveNodes& live) const;

  // What is left of it on the nodes that are there. A stripe of which no more could be lost than
  // the chunk's own node is no help: then it is a copy.
  Placement surviving(const LiveNodes& live) const;
  // What brings it to as much as is wanted, or as the live nodes allow, with the fewest transfers.
  // (Of a lost chunk nobody has the bytes, unless they turn up elsewhere.) Who gets it is decided
  // by its name: so it is the same whoever decides, and different chunks are spread evenly over the
  // live nodes; those of domains that have it get it last. Always copies: stripes are made of what
  // is on one node (stripes.h).
  Repair repair(const LiveNodes& live, Redundancy wanted, const Fingerprint& chunk) const;
  // A node for a chunk of a stripe that no node has as a whole: by the unit, whose chunks stay
  // together.
  NodeIndex new_keeper(const LiveNodes& live) const;

  // The same in terms of another table: node n becomes table[n], or is gone if that is kNoNode.
  // False, and nothing is changed, if the table has no entry n, or has two parts of a stripe on one
  // node.
  bool remap(std::span<const NodeIndex> table);

  // As in a recipe (doc/format.md, "Block"): copies as the set of their nodes, which begins with
  // its size; a number from 2^16 on is another kind.
  void encode(Encoder& e) const;
  std::size_t encoded_size() const;  // at most
  // Bytes that copies on `nodes` nodes take, encoded, at most.
  static constexpr std::size_t encoded_at_most(std::size_t nodes) { return 3 + 3 * nodes; }
  // Fails the decoder on what cannot be. A kind that this software does not know fails it too: then
  // kind() is that kind.
  static Placement decode(Decoder& d);
  static bool is_known(Kind kind) { return kind == Kind::kCopies || kind == Kind::kStripe; }

  auto operator<=>(const Placement&) const = default;

 private:
  Kind kind_ = Kind::kCopies;
  NodeSet nodes_;
  StripeUnit unit_;  // of kind kStripe
};

struct Repair {
  std::vector<NodeIndex> targets;  // are to get the whole chunk, each
  Placement after;                 // when they have it
  bool operator==(const Repair&) const = default;
};

// The nodes that keep a recipe's shard, each as a whole, so that it is as well kept as its chunks
// are wanted, or as the live nodes allow. First the home of its blocks, which reads it most, then
// the live nodes that follow it in number, round, those of other domains first: shards of homes
// next to each other are spread evenly.
std::vector<NodeIndex> shard_keepers(NodeIndex home, const LiveNodes& live, Redundancy wanted);

}  // namespace dedup::plan
