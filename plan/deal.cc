#include "plan/deal.h"

#include <algorithm>
#include <unordered_map>

namespace dedup::plan {
namespace {

// Chunks that a part has at least, if there is more than one: they travel together.
constexpr std::uint64_t kLeastPart = 32;

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
      enter(a, 1, e.length, e.length);
    }
    for (const NodeState& n : input_.nodes) {
      if (dealer.keeps(n.node)) a.own[n.node] += n.new_bytes + n.new_chunks * input_.chunk_overhead;
      deal_unique(a, dealer, n.node, false, n.new_chunks, n.new_bytes);
      deal_unique(a, dealer, n.node, true, n.held_chunks, n.held_bytes);
    }
    return a;
  }

 private:
  void deal_unique(Account& a, const Dealer& dealer, NodeIndex node, bool held,
                   std::uint64_t chunks, std::uint64_t bytes) {
    const std::uint32_t parts = dealer.parts(node, chunks);
    std::uint64_t done = 0;
    for (std::uint32_t part = 0; part < parts && done < chunks; ++part) {
      // Those with an index below end are in this part or one before it.
      const std::uint64_t end = (chunks * (part + 1) + parts - 1) / parts;
      if (!dealer.deal_unique(node, held, part, deal_)) a.dealt = false;
      // How long the chunks of a part are nobody knows but their node.
      const std::uint64_t most = std::min(bytes, (end - done) * input_.longest_chunk);
      enter(a, end - done, bytes * (end - done) / chunks, parts == 1 ? bytes : most);
      done = end;
    }
  }

  void enter(Account& a, std::uint64_t chunks, std::uint64_t sent, std::uint64_t received) {
    for (const Dealer::Copy& copy : deal_.copies) {
      a.sent[copy.from] += sent;
      a.received[copy.to] += received + chunks * input_.chunk_overhead;
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
  std::vector<Member> members;
  std::vector<NodeIndex> given;
  for (const NodeState& n : input.nodes) {
    loads.push_back({n.node, account.sent[n.node]});
    members.push_back({n.node, account.sent[n.node], n.domain});
    given.push_back(n.node);
  }
  if (input.ring) return given;
  const std::size_t least = std::max(input.group, input.copies);
  std::vector<NodeIndex> fresh = input.group == 0 ? order_by_load(loads, input.copies)
                                                  : order_in_groups(std::move(members), least);
  if (!same_nodes(input.previous_order, input.nodes)) return fresh;
  const auto largest = [&](std::span<const NodeIndex> order) {
    return input.group == 0 ? largest_receive(order, loads, input.copies)
                            : largest_receive_in_groups(order, loads, least);
  };
  const std::uint64_t old_most = largest(input.previous_order);
  const std::uint64_t most = largest(fresh);
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

Groups::Groups(std::size_t nodes, std::size_t least)
    : nodes_(nodes), count_(std::max<std::size_t>(nodes / std::max<std::size_t>(least, 1), 1)) {}

Groups::Range Groups::range(std::size_t number) const {
  const std::size_t larger = nodes_ % count_;
  const auto begin = [&](std::size_t n) { return n * (nodes_ / count_) + std::min(n, larger); };
  return {begin(number), begin(number + 1)};
}

Groups::Range Groups::of(std::size_t position) const {
  const std::size_t size = nodes_ / count_;
  const std::size_t larger = nodes_ % count_;
  const std::size_t in_larger = larger * (size + 1);
  return range(position < in_larger ? position / (size + 1)
                                    : larger + (position - in_larger) / size);
}

std::vector<NodeIndex> order_in_groups(std::vector<Member> members, std::size_t least) {
  std::unordered_map<std::uint32_t, std::size_t> domain_size;
  for (const Member& member : members) ++domain_size[member.domain];
  std::stable_sort(members.begin(), members.end(), [&](const Member& a, const Member& b) {
    const std::size_t a_size = domain_size[a.domain];
    const std::size_t b_size = domain_size[b.domain];
    if (a_size != b_size) return a_size > b_size;
    if (a.domain != b.domain) return a.domain < b.domain;
    return a.bytes > b.bytes;
  });
  const Groups groups(members.size(), least);
  const bool has_domains = domain_size.size() > 1;
  std::vector<NodeIndex> order(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t turn = i / groups.count();
    std::size_t group = i % groups.count();
    // To and fro, so that nobody gets the heavier one each time; but for the last ones, of which
    // not each group gets one.
    const bool is_whole = (turn + 1) * groups.count() <= members.size();
    if (!has_domains && turn % 2 == 1 && is_whole) group = groups.count() - 1 - group;
    order[groups.range(group).begin + turn] = members[i].node;
  }
  return order;
}

std::uint64_t largest_receive_in_groups(std::span<const NodeIndex> order,
                                        std::span<const SendLoad> loads, std::size_t least) {
  if (order.empty()) return 0;
  std::vector<std::uint64_t> load(std::size_t{*std::max_element(order.begin(), order.end())} + 1);
  for (const SendLoad& l : loads) load[l.node] = l.bytes;
  const Groups groups(order.size(), least);
  std::uint64_t most = 0;
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const Groups::Range range = groups.range(g);
    if (range.size() < 2) continue;
    std::uint64_t sum = 0;
    std::uint64_t lightest = ~std::uint64_t{0};
    for (std::size_t i = range.begin; i < range.end; ++i) {
      sum += load[order[i]];
      lightest = std::min(lightest, load[order[i]]);
    }
    most = std::max(most, (sum - lightest) / (range.size() - 1));
  }
  return most;
}

Dealer::Dealer(std::vector<NodeIndex> order, unsigned copies, unsigned group)
    : order_(std::move(order)),
      copies_(copies),
      group_(group),
      groups_(order_.size(), group == 0 ? order_.size() : std::max(group, copies)) {
  if (order_.empty()) return;
  nodes_.resize(std::size_t{*std::max_element(order_.begin(), order_.end())} + 1);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    nodes_[order_[i]].position = static_cast<std::uint32_t>(i);
  }
}

bool Dealer::deal(std::span<const Designated> designated, std::uint64_t salt, Deal& out) const {
  return deal_from(designated, salt, 0, out);
}

bool Dealer::deal_from(std::span<const Designated> designated, std::uint64_t salt,
                       std::size_t shift, Deal& out) const {
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
    const NodeIndex to = next_partner(at(sender->node).position, shift, i, out.placement);
    if (to == kNoNode) return false;
    out.placement.add_copy(to);
    out.copies.push_back({sender->node, to});
  }
  return true;
}

// The partners of one part are as far from each other as those of no other, so that nobody is the
// companion of all that a node gets.
NodeIndex Dealer::next_partner(std::size_t position, std::size_t shift, std::size_t copy,
                               const Placement& placement) const {
  const auto takes_it = [&](NodeIndex node) { return receives(node) && !placement.is_on(node); };
  const Groups::Range group = groups_.of(position);
  const std::size_t others = group.size() - 1;
  const std::size_t distance = others < 2 ? 1 : 1 + shift % (others - 1);
  for (std::size_t i = 0; i < others; ++i) {
    const std::size_t step = 1 + (shift + copy * distance + i) % others;
    const NodeIndex node = order_[group.begin + (position - group.begin + step) % group.size()];
    if (takes_it(node)) return node;
  }
  // Few groups have nobody with room for a copy.
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const NodeIndex node = order_[(position + i) % order_.size()];
    if (takes_it(node)) return node;
  }
  return kNoNode;
}

bool Dealer::deal_unique(NodeIndex node, bool held, std::uint32_t part, Deal& out) const {
  const Designated self{node, held, true};
  return deal_from({&self, 1}, 0, part, out);
}

std::uint32_t Dealer::parts(NodeIndex node, std::uint64_t chunks) const {
  if (group_ == 0) return 1;
  const std::size_t others = groups_.of(at(node).position).size() - 1;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(chunks / kLeastPart, 1, std::max<std::size_t>(others, 1)));
}

void Dealer::encode(Encoder& e) const {
  e.put(copies_);
  e.put(group_);
  e.put(static_cast<std::uint32_t>(order_.size()));
  for (const NodeIndex node : order_) {
    e.put(node);
    e.put(static_cast<std::uint8_t>((receives(node) ? 1 : 0) | (keeps(node) ? 2 : 0)));
  }
}

Dealer Dealer::decode(Decoder& d) {
  const auto copies = d.get<std::uint32_t>();
  const auto group = d.get<std::uint32_t>();
  const std::uint32_t count = d.get_count(3);
  std::vector<NodeIndex> order;
  std::vector<std::uint8_t> flags;
  for (std::uint32_t i = 0; i < count; ++i) {
    order.push_back(d.get<NodeIndex>());
    flags.push_back(d.get<std::uint8_t>());
  }
  Dealer dealer(order, copies, group);
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
  const unsigned group = input.ring ? 0 : input.group;
  Dealing dealing;
  Accountant accountant(input, end);
  // Who sends how much does not depend on the order, only to whom.
  const Account loads = accountant.run(Dealer(std::move(given), input.copies, group));
  dealing.dealer = Dealer(choose_order(input, loads), input.copies, group);
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
