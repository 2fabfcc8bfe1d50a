#include "plan/reduce.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/varint.h"

namespace dedup::plan {
namespace {

constexpr std::uint8_t kHeldBit = 1;
constexpr std::uint8_t kDataBit = 2;

// Who stays when there is a choice: load[] is what each node keeps so far, and is kept up to date.
class Chooser {
 public:
  Chooser(const ReduceLimits& limits, std::vector<std::uint32_t>& load)
      : limits_(limits), load_(load) {}

  bool has_choice(std::size_t candidates) const { return candidates > limits_.copies; }

  void take_all(std::span<const Designated> candidates) {
    for (const Designated& d : candidates) load_[d.node] += d.held ? 0 : 1;
  }

  // Reduces `candidates` (sorted by node) to K of them, sorted by node.
  void choose(std::vector<Designated>& candidates) {
    std::sort(candidates.begin(), candidates.end(), [&](const Designated& a, const Designated& b) {
      if (a.held != b.held) return a.held;
      if (!a.held && load_[a.node] != load_[b.node]) return load_[a.node] < load_[b.node];
      return a.node < b.node;
    });
    candidates.resize(limits_.copies);
    std::sort(candidates.begin(), candidates.end(),
              [](const Designated& a, const Designated& b) { return a.node < b.node; });
    take_all(candidates);
  }

 private:
  const ReduceLimits& limits_;
  std::vector<std::uint32_t>& load_;
};

void merge_designated(std::span<const Designated> a, std::span<const Designated> b,
                      std::vector<Designated>& out) {
  out.clear();
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].node < b[j].node)) {
      out.push_back(a[i++]);
    } else if (i == a.size() || b[j].node < a[i].node) {
      out.push_back(b[j++]);
    } else {
      out.push_back({a[i].node, a[i].held || b[j].held, a[i].has_data || b[j].has_data});
      ++i;
      ++j;
    }
  }
}

}  // namespace

// One side is nullptr if only the other set has the fingerprint.
struct FrequentSet::Pair {
  const Element* a = nullptr;
  const Element* b = nullptr;

  const Element& any() const { return a != nullptr ? *a : *b; }
  std::uint32_t frequency() const {
    return (a != nullptr ? a->frequency : 0) + (b != nullptr ? b->frequency : 0);
  }
  std::uint32_t ranks() const {
    return (a != nullptr ? a->ranks : 0) + (b != nullptr ? b->ranks : 0);
  }
  static bool more_frequent(const Pair& x, const Pair& y) {
    if (x.frequency() != y.frequency()) return x.frequency() > y.frequency();
    if (x.ranks() != y.ranks()) return x.ranks() > y.ranks();
    return x.any().fingerprint < y.any().fingerprint;
  }
};

const FrequentSet::Element* FrequentSet::find(const Fingerprint& fingerprint) const {
  const auto it =
      std::lower_bound(elements_.begin(), elements_.end(), fingerprint,
                       [](const Element& e, const Fingerprint& f) { return e.fingerprint < f; });
  return it != elements_.end() && it->fingerprint == fingerprint ? &*it : nullptr;
}

void FrequentSet::add(const Fingerprint& fingerprint, std::uint32_t length, std::uint32_t ranks,
                      NodeIndex node, bool held, std::span<const NodeIndex> others) {
  Element e{fingerprint, length, 1, ranks, static_cast<std::uint32_t>(designated_.size()), 0};
  bool entered = false;
  for (const NodeIndex other : others) {
    if (!entered && node <= other) {
      designated_.push_back({node, held, true});
      entered = true;
    }
    if (other != node) designated_.push_back({other, true, false});
  }
  if (!entered) designated_.push_back({node, held, true});
  e.count = static_cast<std::uint32_t>(designated_.size()) - e.first;
  elements_.push_back(e);
}

void FrequentSet::add_designated(const Fingerprint& fingerprint, std::uint32_t length,
                                 std::uint32_t ranks, std::span<const Designated> designated) {
  const auto count = static_cast<std::uint32_t>(designated.size());
  elements_.push_back(
      {fingerprint, length, count, ranks, static_cast<std::uint32_t>(designated_.size()), count});
  designated_.insert(designated_.end(), designated.begin(), designated.end());
}

void FrequentSet::sort() {
  std::sort(elements_.begin(), elements_.end(),
            [](const Element& a, const Element& b) { return a.fingerprint < b.fingerprint; });
}

void FrequentSet::add_outside(NodeIndex node, std::uint32_t chunks) {
  if (chunks == 0) return;
  const auto it = std::lower_bound(outside_.begin(), outside_.end(), node,
                                   [](const auto& entry, NodeIndex n) { return entry.first < n; });
  if (it != outside_.end() && it->first == node) {
    it->second += chunks;
  } else {
    outside_.insert(it, {node, chunks});
  }
}

void FrequentSet::finish(const ReduceLimits& limits) {
  if (elements_.size() > limits.threshold) {
    const auto end = elements_.begin() + static_cast<std::ptrdiff_t>(limits.threshold);
    std::nth_element(elements_.begin(), end, elements_.end(),
                     [](const Element& a, const Element& b) {
                       return Pair::more_frequent({&a, nullptr}, {&b, nullptr});
                     });
    std::map<NodeIndex, std::uint32_t> left_out;
    for (auto it = end; it != elements_.end(); ++it) {
      for (const Designated& d : designated(*it)) left_out[d.node] += d.held ? 0 : 1;
    }
    for (const auto& [node, chunks] : left_out) add_outside(node, chunks);
    elements_.erase(end, elements_.end());
  }
  sort();
  const bool choice = std::any_of(elements_.begin(), elements_.end(),
                                  [&](const Element& e) { return e.count > limits.copies; });
  if (choice) *this = merge(*this, {}, limits);
}

void FrequentSet::drop_singles() {
  outside_.clear();
  std::erase_if(elements_, [](const Element& e) { return e.frequency < 2; });
  std::vector<Designated> kept;
  for (Element& e : elements_) {
    const auto nodes = designated(e);
    e.first = static_cast<std::uint32_t>(kept.size());
    kept.insert(kept.end(), nodes.begin(), nodes.end());
  }
  designated_ = std::move(kept);
}

// Near the root of the tree the loads of all nodes are in a message: a byte or two for each. Runs
// of nodes that follow each other, as the gap before the first and how many they are; each load as
// the difference to the one before, its sign in the lowest bit.
void FrequentSet::encode_loads(const Loads& loads, Encoder& e) {
  e.put(static_cast<std::uint32_t>(loads.size()));
  std::uint64_t next = 0;
  std::int64_t before = 0;
  for (std::size_t begin = 0, end; begin < loads.size(); begin = end) {
    const std::uint64_t first = loads[begin].first;
    end = begin + 1;
    while (end < loads.size() && loads[end].first == first + (end - begin)) ++end;
    put_varint(e, first - next);
    put_varint(e, end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t difference = std::int64_t{loads[i].second} - before;
      put_varint(e, static_cast<std::uint64_t>(difference) << 1 ^
                        static_cast<std::uint64_t>(difference >> 63));
      before = loads[i].second;
    }
    next = std::uint64_t{loads[end - 1].first} + 1;
  }
}

namespace {

FrequentSet::Loads decode_loads(Decoder& d) {
  constexpr std::uint64_t kNodes = std::uint64_t{std::numeric_limits<NodeIndex>::max()} + 1;
  FrequentSet::Loads loads(d.get_count(1));
  std::uint64_t next = 0;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < loads.size() && d.ok();) {
    next += get_varint(d);
    const std::uint32_t run = get_varint_below(d, loads.size() - i + 1);
    if (run == 0 || next >= kNodes || run > kNodes - next) d.fail();
    for (std::uint32_t k = 0; k < run && d.ok(); ++k, ++i, ++next) {
      const std::uint64_t coded = get_varint(d);
      before += static_cast<std::int64_t>(coded >> 1) ^ -static_cast<std::int64_t>(coded & 1);
      if (before < 0 || before > std::numeric_limits<std::uint32_t>::max()) {
        d.fail();
        before = 0;
      }
      loads[i] = {static_cast<NodeIndex>(next), static_cast<std::uint32_t>(before)};
    }
  }
  if (!d.ok()) loads.clear();
  return loads;
}

}  // namespace

void FrequentSet::encode(Encoder& e) const {
  e.bytes().reserve(e.size() + 12 + elements_.size() * 46 + designated_.size() * 3 +
                    outside_.size() * 2);
  e.put(static_cast<std::uint32_t>(elements_.size()));
  for (const Element& element : elements_) {
    e.put(element.fingerprint);
    e.put(element.length);
    e.put(element.frequency);
    e.put(element.ranks);
    e.put(static_cast<std::uint16_t>(element.count));
    for (const Designated& d : designated(element)) {
      e.put(d.node);
      e.put(static_cast<std::uint8_t>((d.held ? kHeldBit : 0) | (d.has_data ? kDataBit : 0)));
    }
  }
  encode_loads(outside_, e);
}

FrequentSet FrequentSet::decode(Decoder& d) {
  FrequentSet set;
  const std::uint32_t elements = d.get_count(46);
  set.elements_.reserve(elements);
  for (std::uint32_t i = 0; i < elements && d.ok(); ++i) {
    Element e;
    e.fingerprint = d.get_fingerprint();
    e.length = d.get<std::uint32_t>();
    e.frequency = d.get<std::uint32_t>();
    e.ranks = d.get<std::uint32_t>();
    e.first = static_cast<std::uint32_t>(set.designated_.size());
    e.count = d.get<std::uint16_t>();
    for (std::uint32_t j = 0; j < e.count && d.ok(); ++j) {
      const auto node = d.get<NodeIndex>();
      const auto flags = d.get<std::uint8_t>();
      set.designated_.push_back({node, (flags & kHeldBit) != 0, (flags & kDataBit) != 0});
    }
    set.elements_.push_back(e);
  }
  set.outside_ = decode_loads(d);
  return set;
}

FrequentSet FrequentSet::merge(const FrequentSet& a, const FrequentSet& b,
                               const ReduceLimits& limits) {
  std::vector<Pair> pairs;
  pairs.reserve(a.elements_.size() + b.elements_.size());
  auto i = a.elements_.begin();
  auto j = b.elements_.begin();
  while (i != a.elements_.end() || j != b.elements_.end()) {
    if (j == b.elements_.end() || (i != a.elements_.end() && i->fingerprint < j->fingerprint)) {
      pairs.push_back({&*i++, nullptr});
    } else if (i == a.elements_.end() || j->fingerprint < i->fingerprint) {
      pairs.push_back({nullptr, &*j++});
    } else {
      pairs.push_back({&*i++, &*j++});
    }
  }

  std::vector<std::uint32_t> load(limits.nodes);
  for (const auto& [node, chunks] : a.outside_) load[node] += chunks;
  for (const auto& [node, chunks] : b.outside_) load[node] += chunks;

  if (pairs.size() > limits.threshold) {
    const auto end = pairs.begin() + static_cast<std::ptrdiff_t>(limits.threshold);
    std::nth_element(pairs.begin(), end, pairs.end(), Pair::more_frequent);
    for (auto it = end; it != pairs.end(); ++it) {
      for (const auto& [set, e] : {std::pair{&a, it->a}, std::pair{&b, it->b}}) {
        if (e == nullptr) continue;
        for (const Designated& d : set->designated(*e)) load[d.node] += d.held ? 0 : 1;
      }
    }
    pairs.erase(end, pairs.end());
    std::sort(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) {
      return x.any().fingerprint < y.any().fingerprint;
    });
  }

  FrequentSet out;
  for (NodeIndex node = 0; node < limits.nodes; ++node) {
    if (load[node] != 0) out.outside_.emplace_back(node, load[node]);
  }

  const auto candidates_of = [&](const Pair& pair, std::vector<Designated>& candidates) {
    merge_designated(pair.a != nullptr ? a.designated(*pair.a) : std::span<const Designated>{},
                     pair.b != nullptr ? b.designated(*pair.b) : std::span<const Designated>{},
                     candidates);
  };
  Chooser chooser(limits, load);
  std::vector<Designated> candidates;
  for (const Pair& pair : pairs) {
    candidates_of(pair, candidates);
    if (!chooser.has_choice(candidates.size())) chooser.take_all(candidates);
  }
  out.elements_.reserve(pairs.size());
  for (const Pair& pair : pairs) {
    candidates_of(pair, candidates);
    if (chooser.has_choice(candidates.size())) chooser.choose(candidates);
    const Element& e = pair.any();
    out.elements_.push_back({e.fingerprint, e.length, pair.frequency(), pair.ranks(),
                             static_cast<std::uint32_t>(out.designated_.size()),
                             static_cast<std::uint32_t>(candidates.size())});
    out.designated_.insert(out.designated_.end(), candidates.begin(), candidates.end());
  }
  return out;
}

}  // namespace dedup::plan
