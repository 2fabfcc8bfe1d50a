#include "plan/deal.h"

#include <algorithm>
#include <unordered_map>

namespace dedup::plan {
namespace {

// What a dealer makes of the input.
struct Account {
  bool dealt = true;                    // false: not enough nodes take copies
  std::vector<std::uint64_t> sent;      // bytes, by node
  std::vector<std::uint64_t> own;       // bytes of its own that a node has to store
  std::vector<std::uint64_t> received;  // bytes
  std::unordered_map<std::uint32_t, std::uint64_t> chunks;  // by (to, from)

  std::uint64_t need(NodeIndex node) const { return own[node] + received[node]; }
};

class Accountant {
 public:
  Accountant(const DealingInput& input, NodeIndex end) : input_(input), end_(end) {}

  Account run(const Dealer& dealer) {
    Account a;
    a.sent.resize(end_);
    a.own.resize(end_);
    a.received.resize(end_);
    for (const auto& e : input_.result->elements()) {
      const auto designated = input_.result->designated(e);
      if (!dealer.deal(designated, e.fingerprint.prefix(), deal_)) a.dealt = false;
      for (const Designated& d : designated) {
        if (!d.held && dealer.keeps(d.node)) a.own[d.node] += e.length + input_.chunk_overhead;
      }
      enter(a, 1, e.length);
    }
    for (const NodeState& n : input_.nodes) {
      if (n.new_chunks > 0) {
        if (!dealer.deal_unique(n.node, false, deal_)) a.dealt = false;
        if (dealer.keeps(n.node)) {
          a.own[n.node] += n.new_bytes + n.new_chunks * input_.chunk_overhead;
        }
        enter(a, n.new_chunks, n.new_bytes);
      }
      if (n.held_chunks > 0) {
        if (!dealer.deal_unique(n.node, true, deal_)) a.dealt = false;
        enter(a, n.held_chunks, n.held_bytes);
      }
    }
    return a;
  }

 private:
  void enter(Account& a, std::uint64_t chunks, std::uint64_t bytes) {
    for (const Dealer::Copy& copy : deal_.copies) {
      a.sent[copy.from] += bytes;
      a.received[copy.to] += bytes + chunks * input_.chunk_overhead;
      a.chunks[std::uint32_t{copy.to} << 16 | copy.from] += chunks;
    }
  }

  const DealingInput& input_;
  NodeIndex end_;
  Dealer::Deal deal_;
};

bool same_nodes(std::span<const NodeIndex> order, std::span<const NodeState> nodes) {
  if (order.size() != nodes.size()) return false;
  std::vector<NodeIndex> a(order.begin(), order.end());
  std::vector<NodeIndex> b;
  for (const NodeState& n : nodes) b.push_back(n.node);
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

std::vector<NodeIndex> choose_order(const DealingInput& input, const Account& account) {
  std::vector<SendLoad> loads;
  std::vector<NodeIndex> given;
  for (const NodeState& n : input.nodes) {
    loads.push_back({n.node, account.sent[n.node]});
    given.push_back(n.node);
  }
  if (input.ring) return given;
  std::vector<NodeIndex> fresh = order_by_load(loads, input.copies);
  if (!same_nodes(input.previous_order, input.nodes)) return fresh;
  const std::uint64_t old_most = largest_receive(input.previous_order, loads, input.copies);
  const std::uint64_t most = largest_receive(fresh, loads, input.copies);
  if (most + most / 4 < old_most) return fresh;
  return {input.previous_order.begin(), input.previous_order.end()};
}

// Passes over nodes that lack room: those that cannot even keep their own, else an eighth of those
// that would receive too much, worst first. False if everybody has room.
bool pass_over(const DealingInput& input, const Account& account, Dealer& dealer) {
  std::vector<std::pair<std::uint64_t, NodeIndex>> over;
  bool found = false;
  for (const NodeState& n : input.nodes) {
    if (account.own[n.node] > n.free_bytes) {
      dealer.stop_keeping(n.node);
      found = true;
    } else if (account.need(n.node) > n.free_bytes) {
      over.emplace_back(account.need(n.node) - n.free_bytes, n.node);
    }
  }
  if (found || over.empty()) return found;
  std::sort(over.begin(), over.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (std::size_t i = 0; i < 1 + (over.size() - 1) / 8; ++i) dealer.stop_receiving(over[i].second);
  return true;
}

void note_shortage(const DealingInput& input, const Account& account, Dealing& dealing) {
  for (const NodeState& n : input.nodes) {
    const std::uint64_t need = account.need(n.node);
    if (need <= n.free_bytes) continue;
    dealing.bytes_short += need - n.free_bytes;
    if (need - n.free_bytes > dealing.tightest_short) {
      dealing.tightest_short = need - n.free_bytes;
      dealing.tightest = n.node;
    }
  }
}

}  // namespace

std::vector<NodeIndex> order_by_load(std::vector<SendLoad> loads, unsigned copies) {
  std::stable_sort(loads.begin(), loads.end(),
                   [](const SendLoad& a, const SendLoad& b) { return a.bytes > b.bytes; });
  std::vector<NodeIndex> order;
  order.reserve(loads.size());
  std::size_t head = 0;
  std::size_t tail = loads.size();
  while (head < tail) {
    order.push_back(loads[head++].node);
    for (unsigned i = 1; i < copies && head < tail; ++i) order.push_back(loads[--tail].node);
  }
  return order;
}

std::uint64_t largest_receive(std::span<const NodeIndex> order, std::span<const SendLoad> loads,
                              unsigned copies) {
  if (order.empty() || copies < 2) return 0;
  std::vector<std::uint64_t> load(std::size_t{*std::max_element(order.begin(), order.end())} + 1);
  for (const SendLoad& l : loads) load[l.node] = l.bytes;
  const std::size_t partners = std::min<std::size_t>(copies - 1, order.size() - 1);
  if (partners == 0) return 0;
  // What a node receives is the sum over the `partners` positions before it: a sliding window.
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < partners; ++i) sum += load[order[order.size() - 1 - i]];
  std::uint64_t most = sum;
  for (std::size_t i = 1; i < order.size(); ++i) {
    sum += load[order[i - 1]];
    sum -= load[order[(i - 1 + order.size() - partners) % order.size()]];
    most = std::max(most, sum);
  }
  return most / partners;
}

Dealer::Dealer(std::vector<NodeIndex> order, unsigned copies)
    : order_(std::move(order)), copies_(copies) {
  if (order_.empty()) return;
  nodes_.resize(std::size_t{*std::max_element(order_.begin(), order_.end())} + 1);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    nodes_[order_[i]].position = static_cast<std::uint32_t>(i);
  }
}

bool Dealer::deal(std::span<const Designated> designated, std::uint64_t salt, Deal& out) const {
  out.placement.clear();
  out.copies.clear();
  std::size_t senders = 0;
  for (const Designated& d : designated) {
    if (d.held || keeps(d.node)) out.placement.add_copy(d.node);
    if (d.has_data) ++senders;
  }
  const std::uint32_t kept = out.placement.redundancy().as_copies();
  if (kept >= copies_) return true;
  if (senders == 0) return false;
  const std::size_t missing = copies_ - kept;
  for (std::size_t i = 0; i < missing; ++i) {
    std::size_t turn = (salt + i) % senders;
    const Designated* sender = designated.data();
    while (!sender->has_data || turn-- > 0) ++sender;
    std::size_t position = at(sender->node).position;
    NodeIndex to = kNoNode;
    for (std::size_t step = 0; step < order_.size() && to == kNoNode; ++step) {
      position = position + 1 == order_.size() ? 0 : position + 1;
      const NodeIndex candidate = order_[position];
      if (receives(candidate) && !out.placement.is_on(candidate)) to = candidate;
    }
    if (to == kNoNode) return false;
    out.placement.add_copy(to);
    out.copies.push_back({sender->node, to});
  }
  return true;
}

bool Dealer::deal_unique(NodeIndex node, bool held, Deal& out) const {
  const Designated self{node, held, true};
  return deal({&self, 1}, 0, out);
}

void Dealer::encode(Encoder& e) const {
  e.put(copies_);
  e.put(static_cast<std::uint32_t>(order_.size()));
  for (const NodeIndex node : order_) {
    e.put(node);
    e.put(static_cast<std::uint8_t>((receives(node) ? 1 : 0) | (keeps(node) ? 2 : 0)));
  }
}

Dealer Dealer::decode(Decoder& d) {
  const auto copies = d.get<std::uint32_t>();
  const std::uint32_t count = d.get_count(3);
  std::vector<NodeIndex> order;
  std::vector<std::uint8_t> flags;
  for (std::uint32_t i = 0; i < count; ++i) {
    order.push_back(d.get<NodeIndex>());
    flags.push_back(d.get<std::uint8_t>());
  }
  Dealer dealer(order, copies);
  for (std::uint32_t i = 0; i < count; ++i) {
    dealer.nodes_[order[i]].receives = (flags[i] & 1) != 0;
    dealer.nodes_[order[i]].keeps = (flags[i] & 2) != 0;
  }
  return dealer;
}

Dealing deal_all(const DealingInput& input) {
  std::vector<NodeIndex> given;
  NodeIndex end = 0;
  for (const NodeState& n : input.nodes) {
    given.push_back(n.node);
    end = std::max(end, static_cast<NodeIndex>(n.node + 1));
  }
  Dealing dealing;
  Accountant accountant(input, end);
  // Who sends how much does not depend on the order, only to whom.
  const Account loads = accountant.run(Dealer(std::move(given), input.copies));
  dealing.dealer = Dealer(choose_order(input, loads), input.copies);
  for (bool first = true;; first = false) {
    Account account = accountant.run(dealing.dealer);
    if (first) note_shortage(input, account, dealing);
    if (!account.dealt) return dealing;
    if (pass_over(input, account, dealing.dealer)) continue;
    dealing.feasible = true;
    dealing.flows.reserve(account.chunks.size());
    for (const auto& [key, chunks] : account.chunks) {
      dealing.flows.push_back(
          {static_cast<NodeIndex>(key & 0xffff), static_cast<NodeIndex>(key >> 16), chunks});
    }
    std::sort(dealing.flows.begin(), dealing.flows.end(), [](const Flow& a, const Flow& b) {
      return a.to != b.to ? a.to < b.to : a.from < b.from;
    });
    return dealing;
  }
}

}  // namespace dedup::plan
