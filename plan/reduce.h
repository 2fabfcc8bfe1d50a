// The reduction: which chunks several nodes hold, and which of these nodes keep them.
//
// After HMERGE in B. Nicolae, "Leveraging naturally distributed data redundancy to reduce
// collective I/O replication overhead" (IPDPS 2015, III-B), and "Towards Scalable Checkpoint
// Restart" (IPDPS 2013, III-C), over nodes. Pure; the tree that merges the sets is
// engine/dump/reduction.h's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/codec.h"
#include "base/types.h"

namespace dedup::plan {

// A node that is to keep a chunk.
struct Designated {
  NodeIndex node = kNoNode;
  bool held = false;      // it is in the node's store already: keeping it costs nothing
  bool has_data = false;  // one of its ranks has the bytes in memory: it can send copies
  bool operator==(const Designated&) const = default;
};

// What bounds a set.
struct ReduceLimits {
  std::uint32_t copies = 1;     // K, at most the number of the job's nodes
  std::uint32_t threshold = 1;  // F
  NodeIndex nodes = 1;          // of the job
};

// At most F elements (fingerprint, frequency, at most K designated), sorted by fingerprint.
class FrequentSet {
 public:
  struct Element {
    Fingerprint fingerprint;
    std::uint32_t length = 0;     // of the chunk
    std::uint32_t frequency = 0;  // nodes on which it was found; of a result at least so many
    std::uint32_t ranks = 0;      // ranks on which it was found: decides between equal frequencies
    std::uint32_t first = 0;      // of its designated, in the set's list of them
    std::uint32_t count = 0;      // how many
  };

  const std::vector<Element>& elements() const { return elements_; }
  // Sorted by node, no node twice.
  std::span<const Designated> designated(const Element& e) const {
    return {designated_.data() + e.first, e.count};
  }
  // The element with this fingerprint, or nullptr.
  const Element* find(const Fingerprint& fingerprint) const;

  // What one rank puts in: a chunk that `node` has (or holds). `others`: nodes known to hold it
  // too, sorted. Any order; no fingerprint twice.
  void reserve(std::size_t elements, std::size_t designated) {
    elements_.reserve(elements);
    designated_.reserve(designated);
  }
  void add(const Fingerprint& fingerprint, std::uint32_t length, std::uint32_t ranks,
           NodeIndex node, bool held, std::span<const NodeIndex> others);
  // What is in a result that was not merged: a chunk and who is to keep it, by node. Any order;
  // sort() puts them in order.
  void add_designated(const Fingerprint& fingerprint, std::uint32_t length, std::uint32_t ranks,
                      std::span<const Designated> designated);
  void sort();
  // Chunks that `node` keeps and that were not added: they count as load.
  void add_outside(NodeIndex node, std::uint32_t chunks);
  // After the last add(): sorts and applies the limits, nearly in place. Every set that merge()
  // takes must have been through it.
  void finish(const ReduceLimits& limits);

  // Drops what the result is not for: elements found on one node only, of which it says nothing
  // that the node does not know, and the nodes' loads, which decide while sets are merged.
  void drop_singles();

  void encode(Encoder& e) const;
  static FrequentSet decode(Decoder& d);

  // By node, ascending: chunks that count as load. How a message has them.
  using Loads = std::vector<std::pair<NodeIndex, std::uint32_t>>;
  static void encode_loads(const Loads& loads, Encoder& e);

  // The F most frequent of the union of two sets over disjoint nodes or disjoint fingerprints, with
  // frequencies added. Where both designate, and more than K together, those that do not hold the
  // chunk and have the most load are dropped; a node's load is the number of chunks that it is
  // designated for, or keeps outside the set, and that it does not hold, starting from those
  // without a choice. Ties: by fingerprint (so that sets that overflow keep the same ones) and by
  // node. O(F log F + F K log K + nodes).
  static FrequentSet merge(const FrequentSet& a, const FrequentSet& b, const ReduceLimits& limits);

 private:
  struct Pair;  // an element of the union

  std::vector<Element> elements_;
  std::vector<Designated> designated_;
  Loads outside_;
};

}  // namespace dedup::plan
