#include "plan/placement.h"

#include <algorithm>
#include <numeric>

#include "base/varint.h"

namespace dedup::plan {
namespace {

// Sets of copies begin with their size, which is smaller.
constexpr std::uint32_t kOtherKinds = 0x10000;
constexpr std::uint32_t kNodeNumbers = 0x10000;

// After SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// All of the fingerprint counts: where it is no hash but a number, most of its bytes may be the
// same in all of them. The same on every machine.
std::uint64_t seed_of(const Fingerprint& chunk) {
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < chunk.bytes.size(); i += 8) {
    std::uint64_t word = 0;
    for (std::size_t k = 0; k < 8; ++k) word |= std::uint64_t{chunk.bytes[i + k]} << (8 * k);
    seed = mix(seed ^ word);
  }
  return seed;
}

// The i-th of the random numbers of a seed, below `bound`, which is at most 2^32.
std::uint32_t draw(std::uint64_t seed, std::uint64_t i, std::uint64_t bound) {
  return static_cast<std::uint32_t>((mix(seed + i) >> 32) * bound >> 32);
}

void make_set(std::vector<NodeIndex>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

// The n-th of the live nodes that are not in `without`, of which all live.
NodeIndex nth_outside(const LiveNodes& live, const NodeSet& without, std::size_t n) {
  const std::vector<NodeIndex>& list = live.list();
  for (const NodeIndex node : without) {
    const auto at = std::lower_bound(list.begin(), list.end(), node) - list.begin();
    if (static_cast<std::size_t>(at) > n) break;
    ++n;
  }
  return list[n];
}

}  // namespace

LiveNodes::LiveNodes(NodeIndex nodes, std::vector<std::uint32_t> domains)
    : bits_((nodes + 63u) / 64u), list_(nodes), domains_(std::move(domains)) {
  std::iota(list_.begin(), list_.end(), NodeIndex{0});
  for (const NodeIndex node : list_) bits_[node / 64u] |= std::uint64_t{1} << node % 64u;
}

LiveNodes::LiveNodes(std::span<const NodeIndex> nodes) : list_(nodes.begin(), nodes.end()) {
  make_set(list_);
  if (!list_.empty()) bits_.resize(list_.back() / 64u + 1);
  for (const NodeIndex node : list_) bits_[node / 64u] |= std::uint64_t{1} << node % 64u;
}

void LiveNodes::erase(NodeIndex node) {
  if (!contains(node)) return;
  bits_[node / 64u] &= ~(std::uint64_t{1} << node % 64u);
  list_.erase(std::lower_bound(list_.begin(), list_.end(), node));
}

bool LiveNodes::is_apart(NodeIndex node, std::span<const NodeIndex> others) const {
  const std::uint32_t domain = domain_of(node);
  return domain == 0 || std::none_of(others.begin(), others.end(),
                                     [&](NodeIndex other) { return domain_of(other) == domain; });
}

Placement Placement::copies_on(NodeSet nodes) {
  make_set(nodes);
  Placement placement;
  placement.nodes_ = std::move(nodes);
  return placement;
}

bool Placement::is_on(NodeIndex node) const {
  return std::binary_search(nodes_.begin(), nodes_.end(), node);
}

void Placement::add_copy(NodeIndex node) {
  const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), node);
  if (at == nodes_.end() || *at != node) nodes_.insert(at, node);
}

Redundancy Placement::redundancy(const LiveNodes& live) const {
  const auto there = std::count_if(nodes_.begin(), nodes_.end(),
                                   [&](NodeIndex node) { return live.contains(node); });
  return Redundancy::copies(static_cast<std::uint32_t>(there));
}

Redundancy Placement::redundancy() const {
  return Redundancy::copies(static_cast<std::uint32_t>(nodes_.size()));
}

void Placement::sources(const LiveNodes& live, NodeIndex reader, std::uint64_t salt,
                        std::vector<NodeIndex>& out) const {
  out.clear();
  const bool here = live.contains(reader) && is_on(reader);
  if (here) out.push_back(reader);
  for (const NodeIndex node : nodes_) {
    if (node != reader && live.contains(node)) out.push_back(node);
  }
  const auto others = out.begin() + (here ? 1 : 0);
  if (out.end() - others < 2) return;
  const auto first = (salt + reader) % static_cast<std::uint64_t>(out.end() - others);
  std::rotate(others, others + static_cast<std::ptrdiff_t>(first), out.end());
}

Placement Placement::surviving(const LiveNodes& live) const {
  Placement left;
  left.kind_ = kind_;
  for (const NodeIndex node : nodes_) {
    if (live.contains(node)) left.nodes_.push_back(node);
  }
  return left;
}

Repair Placement::repair(const LiveNodes& live, Redundancy wanted, const Fingerprint& chunk) const {
  Repair repair{{}, surviving(live)};
  const NodeSet& nodes = repair.after.nodes_;
  if (repair.after.redundancy() >= wanted) return repair;
  const std::uint64_t seed = seed_of(chunk);
  while (repair.after.redundancy() < wanted && nodes.size() < live.count()) {
    const std::size_t free = live.count() - nodes.size();
    const std::size_t drawn = draw(seed, repair.targets.size(), free);
    NodeIndex to = nth_outside(live, nodes, drawn);
    for (std::size_t i = 1; i < free && !live.is_apart(to, nodes); ++i) {
      to = nth_outside(live, nodes, (drawn + i) % free);
    }
    if (!live.is_apart(to, nodes)) to = nth_outside(live, nodes, drawn);
    repair.after.add_copy(to);
    repair.targets.push_back(to);
  }
  return repair;
}

bool Placement::remap(std::span<const NodeIndex> table) {
  NodeSet mapped;
  mapped.reserve(nodes_.size());
  for (const NodeIndex node : nodes_) {
    if (node >= table.size()) return false;
    if (table[node] != kNoNode) mapped.push_back(table[node]);
  }
  make_set(mapped);
  nodes_ = std::move(mapped);
  return true;
}

void Placement::encode(Encoder& e) const {
  put_varint(e, nodes_.size());
  std::uint32_t next = 0;
  for (const NodeIndex node : nodes_) {
    put_varint(e, node - next);
    next = node + 1u;
  }
}

Placement Placement::decode(Decoder& d) {
  Placement placement;
  const std::uint32_t size = get_varint_below(d, 2 * kOtherKinds);
  if (size >= kOtherKinds) {
    placement.kind_ = static_cast<Kind>(size - kOtherKinds);
    d.fail();
    return placement;
  }
  if (size > d.left()) {  // every node takes a byte at least
    d.fail();
    return placement;
  }
  placement.nodes_.resize(size);
  std::uint32_t next = 0;
  for (NodeIndex& node : placement.nodes_) {
    node = static_cast<NodeIndex>(next +
                                  get_varint_below(d, kNodeNumbers - std::min(next, kNodeNumbers)));
    next = node + 1u;
  }
  return placement;
}

std::vector<NodeIndex> shard_keepers(NodeIndex home, const LiveNodes& live, Redundancy wanted) {
  const std::vector<NodeIndex>& list = live.list();
  const auto first =
      static_cast<std::size_t>(std::lower_bound(list.begin(), list.end(), home) - list.begin());
  const std::size_t wanted_nodes = wanted.within(live.count()).as_copies();
  std::vector<NodeIndex> keepers;
  for (const bool any_domain : {false, true}) {
    for (std::size_t i = 0; i < list.size() && keepers.size() < wanted_nodes; ++i) {
      const NodeIndex node = list[(first + i) % list.size()];
      const bool is_new = std::find(keepers.begin(), keepers.end(), node) == keepers.end();
      if (is_new && (any_domain || live.is_apart(node, keepers))) keepers.push_back(node);
    }
  }
  return keepers;
}

}  // namespace dedup::plan
