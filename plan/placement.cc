#include "plan/placement.h"

#include <algorithm>
#include <cassert>
#include <iterator>
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

// Of a stripe's unit: its chunks go together.
std::uint64_t seed_of(const StripeUnit& unit) {
  Fingerprint name;
  std::copy(unit.stripe.bytes.begin(), unit.stripe.bytes.end(), name.bytes.begin());
  name.bytes.back() = unit.unit;
  return seed_of(name);
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

// Of a chunk that is on `copies` nodes, at most one, and in a stripe of `data` units of which
// `parts` are left, its own included: lost when it and all but data - 1 of the others are.
Redundancy of_stripe(std::size_t copies, std::size_t parts, std::size_t data) {
  const std::size_t fatal = parts < data ? copies : parts - data + 1;
  return Redundancy::copies(static_cast<std::uint32_t>(fatal));
}

void encode_unit(Encoder& e, const StripeUnit& unit) {
  e.put_raw(unit.stripe.bytes.data(), unit.stripe.bytes.size());
  e.put(unit.unit);
  e.put(unit.data);
  e.put(static_cast<std::uint8_t>(unit.nodes.size()));
  for (const NodeIndex node : unit.nodes) {
    put_varint(e, node == kNoNode ? 0 : node + std::uint64_t{1});
  }
}

StripeUnit decode_unit(Decoder& d) {
  StripeUnit unit;
  d.get_raw(unit.stripe.bytes.data(), unit.stripe.bytes.size());
  unit.unit = d.get<std::uint8_t>();
  unit.data = d.get<std::uint8_t>();
  const std::size_t nodes = d.get<std::uint8_t>();
  if (nodes > d.left()) {  // every node takes a byte at least
    d.fail();
    return unit;
  }
  unit.nodes.resize(nodes);
  for (NodeIndex& node : unit.nodes) {
    node = static_cast<NodeIndex>(get_varint_below(d, kNodeNumbers) - 1);  // 0: kNoNode
  }
  if (!unit.possible()) d.fail();
  return unit;
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

bool StripeUnit::possible() const {
  if (data == 0 || unit >= data || nodes.size() <= data || nodes.size() > kMostNodes ||
      nodes.size() - data > kMostParities) {
    return false;
  }
  NodeSet there;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(there),
               [](NodeIndex node) { return node != kNoNode; });
  const std::size_t count = there.size();
  make_set(there);
  return there.size() == count;
}

Placement Placement::copies_on(NodeSet nodes) {
  make_set(nodes);
  Placement placement;
  placement.nodes_ = std::move(nodes);
  return placement;
}

Placement Placement::in_stripe(StripeUnit unit) {
  Placement placement;
  placement.kind_ = Kind::kStripe;
  const NodeIndex node = unit.nodes[unit.unit];
  if (node != kNoNode) placement.nodes_.push_back(node);
  placement.unit_ = std::move(unit);
  return placement;
}

NodeSet Placement::all_nodes() const {
  if (kind_ == Kind::kCopies) return nodes_;
  NodeSet nodes;
  std::copy_if(unit_.nodes.begin(), unit_.nodes.end(), std::back_inserter(nodes),
               [](NodeIndex node) { return node != kNoNode; });
  make_set(nodes);
  return nodes;
}

bool Placement::involves(NodeIndex node) const {
  if (kind_ == Kind::kCopies) return is_on(node);
  return std::find(unit_.nodes.begin(), unit_.nodes.end(), node) != unit_.nodes.end();
}

bool Placement::is_within(NodeIndex nodes) const {
  if (kind_ == Kind::kCopies) return nodes_.empty() || nodes_.back() < nodes;
  return std::all_of(unit_.nodes.begin(), unit_.nodes.end(),
                     [&](NodeIndex node) { return node == kNoNode || node < nodes; });
}

void Placement::clear() {
  kind_ = Kind::kCopies;
  nodes_.clear();
  unit_ = {};
}

bool Placement::is_on(NodeIndex node) const {
  return std::binary_search(nodes_.begin(), nodes_.end(), node);
}

void Placement::add_copy(NodeIndex node) {
  assert(kind_ == Kind::kCopies);
  const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), node);
  if (at == nodes_.end() || *at != node) nodes_.insert(at, node);
}

Redundancy Placement::redundancy(const LiveNodes& live) const {
  const auto count = [&](const std::vector<NodeIndex>& nodes) {
    return static_cast<std::size_t>(std::count_if(
        nodes.begin(), nodes.end(), [&](NodeIndex node) { return live.contains(node); }));
  };
  if (kind_ == Kind::kStripe) return of_stripe(count(nodes_), count(unit_.nodes), unit_.data);
  return Redundancy::copies(static_cast<std::uint32_t>(count(nodes_)));
}

Redundancy Placement::redundancy() const {
  if (kind_ == Kind::kCopies) return Redundancy::copies(static_cast<std::uint32_t>(nodes_.size()));
  const auto gone = std::count(unit_.nodes.begin(), unit_.nodes.end(), kNoNode);
  return of_stripe(nodes_.size(), unit_.nodes.size() - static_cast<std::size_t>(gone), unit_.data);
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

NodeIndex Placement::keeper(const LiveNodes& live) const {
  const auto first = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](NodeIndex node) { return live.contains(node); });
  return first == nodes_.end() ? kNoNode : *first;
}

Placement Placement::surviving(const LiveNodes& live) const {
  Placement left;
  for (const NodeIndex node : nodes_) {
    if (live.contains(node)) left.nodes_.push_back(node);
  }
  if (kind_ == Kind::kCopies || redundancy(live) <= left.redundancy()) return left;
  left.kind_ = kind_;
  left.unit_ = unit_;
  for (NodeIndex& node : left.unit_.nodes) {
    if (!live.contains(node)) node = kNoNode;
  }
  return left;
}

NodeIndex Placement::new_keeper(const LiveNodes& live) const {
  return nth_outside(live, {}, draw(seed_of(unit_), 0, live.count()));
}

Repair Placement::repair(const LiveNodes& live, Redundancy wanted, const Fingerprint& chunk) const {
  Repair repair{{}, surviving(live)};
  if (repair.after.redundancy() >= wanted) return repair;
  const std::uint64_t seed = seed_of(chunk);
  repair.after = copies_on(std::move(repair.after.nodes_));
  const NodeSet& nodes = repair.after.nodes_;
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
  if (kind_ == Kind::kStripe) {
    StripeUnit mapped = unit_;
    for (NodeIndex& node : mapped.nodes) {
      if (node == kNoNode) continue;
      if (node >= table.size()) return false;
      node = table[node];
    }
    if (!mapped.possible()) return false;
    *this = in_stripe(std::move(mapped));
    return true;
  }
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
  if (kind_ != Kind::kCopies) put_varint(e, kOtherKinds + static_cast<std::uint32_t>(kind_));
  if (kind_ == Kind::kStripe) return encode_unit(e, unit_);
  put_varint(e, nodes_.size());
  std::uint32_t next = 0;
  for (const NodeIndex node : nodes_) {
    put_varint(e, node - next);
    next = node + 1u;
  }
}

std::size_t Placement::encoded_size() const {
  if (kind_ != Kind::kStripe) return encoded_at_most(nodes_.size());
  constexpr std::size_t kMostOfNumber = 3;  // of a node or a kind
  return kMostOfNumber + sizeof(Id128) + 3 + kMostOfNumber * unit_.nodes.size();
}

Placement Placement::decode(Decoder& d) {
  Placement placement;
  const std::uint32_t size = get_varint_below(d, 2 * kOtherKinds);
  if (size >= kOtherKinds) {
    placement.kind_ = static_cast<Kind>(size - kOtherKinds);
    if (placement.kind_ != Kind::kStripe) {
      d.fail();
      return placement;
    }
    StripeUnit unit = decode_unit(d);
    return d.ok() ? in_stripe(std::move(unit)) : Placement();
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
