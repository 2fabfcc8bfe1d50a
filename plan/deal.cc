#include "plan/deal.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

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

  // What nodes send alone: that does not depend on the order, only to whom.
  Account run_first(const Dealer& dealer) {
    Account a = empty();
    if (input_.result != nullptr) deal_result(a, dealer);
    for (const NodeState& n : input_.nodes) a.sent[n.node] += n.shared_sent;
    deal_outside(a, dealer);
    return a;
  }

  Account run(const Dealer& dealer) {
    Account a = empty();
    if (input_.result != nullptr) deal_result(a, dealer);
    if (input_.shared) enter_parts(a, input_.shared(dealer));
    deal_outside(a, dealer);
    return a;
  }

 private:
  Account empty() const {
    Account a;
    a.sent.resize(end_);
    a.own.resize(end_);
    a.received.resize(end_);
    return a;
  }

  void deal_result(Account& a, const Dealer& dealer) {
    for (const auto& e : input_.result->elements()) {
      const auto designated = input_.result->designated(e);
      if (!dealer.deal(designated, e.fingerprint.prefix(), deal_)) a.dealt = false;
      for (const Designated& d : designated) {
        if (dealer.stores(d, deal_.placement)) a.own[d.node] += e.length + input_.chunk_overhead;
      }
      enter(a, 1, e.length);
    }
  }

  void enter_parts(Account& a, const std::vector<SharedPart>& parts) {
    for (const SharedPart& part : parts) {
      a.dealt = a.dealt && part.dealt;
      a.own[part.node] += part.own;
      for (const SharedPart::Sent& sent : part.sends) {
        enter_copy(a, {part.node, sent.to}, sent.chunks, sent.bytes);
      }
    }
  }

  void deal_outside(Account& a, const Dealer& dealer) {
    for (const NodeState& n : input_.nodes) {
      if (dealer.keeps(n.node)) a.own[n.node] += n.new_bytes + n.new_chunks * input_.chunk_overhead;
      deal_unique(a, dealer, n.node, false, n.new_chunks, n.new_bytes);
      deal_unique(a, dealer, n.node, true, n.held_chunks, n.held_bytes);
    }
  }

  void deal_unique(Account& a, const Dealer& dealer, NodeIndex node, bool held,
                   std::uint64_t chunks, std::uint64_t bytes) {
    const std::uint32_t parts = dealer.parts(node, chunks);
    std::uint64_t done = 0;
    for (std::uint32_t part = 0; part < parts && done < chunks; ++part) {
      // Those with an index below end are in this part or one before it.
      const std::uint64_t end = (chunks * (part + 1) + parts - 1) / parts;
      if (!dealer.deal_unique(node, held, part, deal_)) a.dealt = false;
      // How long the chunks of a part are nobody knows but their node: at most, so much.
      const std::uint64_t most = std::min(bytes, (end - done) * input_.longest_chunk);
      enter(a, end - done, parts == 1 ? bytes : most);
      done = end;
    }
  }

  void enter(Account& a, std::uint64_t chunks, std::uint64_t bytes) {
    for (const Dealer::Copy& copy : deal_.copies) enter_copy(a, copy, chunks, bytes);
  }

  void enter_copy(Account& a, const Dealer::Copy& copy, std::uint64_t chunks,
                  std::uint64_t bytes) const {
    a.sent[copy.from] += bytes;
    a.received[copy.to] += bytes + chunks * input_.chunk_overhead;
    a.chunks[std::uint32_t{copy.to} << 16 | copy.from] += chunks;
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

bool has_groups(const DealingInput& input) {
  return input.group != 0 && !input.ring;
}

Dealer::Grouping grouping_of(const DealingInput& input, NodeIndex end) {
  Dealer::Grouping grouping{input.group, input.turn, {}};
  const bool are_known = std::any_of(input.nodes.begin(), input.nodes.end(),
                                     [](const NodeState& node) { return node.domain != 0; });
  if (!are_known) return grouping;
  grouping.domains.resize(end);
  for (const NodeState& node : input.nodes) grouping.domains[node.node] = node.domain;
  return grouping;
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
  std::vector<NodeIndex> fresh = has_groups(input) ? order_in_groups(std::move(members), least)
                                                   : order_by_load(loads, input.copies);
  if (!same_nodes(input.previous_order, input.nodes)) return fresh;
  const auto largest = [&](std::span<const NodeIndex> order) {
    return has_groups(input) ? largest_receive_in_groups(order, loads, least)
                             : largest_receive(order, loads, input.copies);
  };
  const std::uint64_t old_most = largest(input.previous_order);
  const std::uint64_t most = largest(fresh);
  if (most + most / 4 < old_most) return fresh;
  return {input.previous_order.begin(), input.previous_order.end()};
}

// Whether some node lacks room, or there are not enough that take copies.
bool is_short(const DealingInput& input, const Account& account) {
  return !account.dealt ||
         std::any_of(input.nodes.begin(), input.nodes.end(),
                     [&](const NodeState& n) { return account.need(n.node) > n.free_bytes; });
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
  // The i-th place to be filled is in group i modulo their number: those that follow each other are
  // in different groups, and of a domain's members as many as there are groups may change places.
  const Groups groups(members.size(), least);
  std::vector<std::uint64_t> load(groups.count());
  std::vector<NodeIndex> order(members.size());
  std::vector<std::size_t> places;
  for (std::size_t begin = 0; begin < members.size(); begin += places.size()) {
    places.clear();
    for (std::size_t i = begin; i < members.size() && i - begin < groups.count() &&
                                members[i].domain == members[begin].domain;
         ++i) {
      places.push_back(i);
    }
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
      return load[a % groups.count()] < load[b % groups.count()];
    });
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Member& member = members[begin + i];
      const std::size_t group = places[i] % groups.count();
      order[groups.range(group).begin + places[i] / groups.count()] = member.node;
      load[group] += member.bytes;
    }
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

Dealer::Dealer(std::vector<NodeIndex> order, unsigned copies)
    : Dealer(std::move(order), copies, Grouping{}) {}

Dealer::Dealer(std::vector<NodeIndex> order, unsigned copies, Grouping grouping)
    : order_(std::move(order)),
      copies_(copies),
      grouping_(std::move(grouping)),
      groups_(order_.size(),
              grouping_.least == 0 ? order_.size() : std::max(grouping_.least, copies)),
      is_parted_(grouping_.least != 0) {
  if (order_.empty()) return;
  nodes_.resize(std::size_t{*std::max_element(order_.begin(), order_.end())} + 1);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    nodes_[order_[i]].position = static_cast<std::uint32_t>(i);
  }
}

std::uint32_t Dealer::domain_of(NodeIndex node) const {
  return node < grouping_.domains.size() ? grouping_.domains[node] : 0;
}

bool Dealer::deal(std::span<const Designated> designated, std::uint64_t salt, Deal& out) const {
  return deal_from(designated, salt, 0, out);
}

bool Dealer::deal_from(std::span<const Designated> designated, std::uint64_t salt,
                       std::uint64_t part, Deal& out) const {
  out.placement.clear();
  out.copies.clear();
  std::size_t senders = 0;
  for (const Designated& d : designated) {
    if (d.held || keeps(d.node)) out.placement.add_copy(d.node);
    if (d.has_data) ++senders;
  }
  const std::uint32_t kept = out.placement.redundancy().as_copies();
  if (left_alone_ != 0 && kept > 0) {
    out.placement = Placement::copies_on(
        choose(kept >= copies_ ? left_alone_ : 1, designated, salt, out.placement));
    return true;
  }
  if (kept >= copies_) return true;
  if (senders == 0) return false;
  const std::size_t missing = (left_alone_ == 0 ? copies_ : 1) - kept;
  for (std::size_t i = 0; i < missing; ++i) {
    std::size_t turn = (salt + i) % senders;
    const Designated* sender = designated.data();
    while (!sender->has_data || turn-- > 0) ++sender;
    const NodeIndex to = partner(at(sender->node).position, part, i / senders, out.placement);
    if (to == kNoNode) return false;
    out.placement.add_copy(to);
    out.copies.push_back({sender->node, to});
  }
  return true;
}

// So many of those that are to have the chunk: first who has it already, which costs nothing, then
// in turn.
NodeSet Dealer::choose(std::size_t count, std::span<const Designated> designated,
                       std::uint64_t salt, const Placement& placement) {
  NodeSet held;
  NodeSet others;
  for (const Designated& d : designated) {
    if (placement.is_on(d.node)) (d.held ? held : others).push_back(d.node);
  }
  NodeSet chosen;
  for (NodeSet* const from : {&held, &others}) {
    if (from->empty()) continue;
    std::rotate(from->begin(), from->begin() + static_cast<std::ptrdiff_t>(salt % from->size()),
                from->end());
    chosen.insert(chosen.end(), from->begin(), from->end());
  }
  chosen.resize(std::min(count, chosen.size()));
  return chosen;
}

bool Dealer::deal_unique(NodeIndex node, bool held, std::uint32_t part, Deal& out) const {
  const Designated self{node, held, true};
  return deal_from({&self, 1}, 0, std::uint64_t{part} + grouping_.turn, out);
}

// Of a group the others are gone through from the one behind the sender on; in another part from
// another one on. The copies of a part are as far from each other as the sender's place in its
// group says, and that distance and the number of the others have no divisor in common: so each
// copy goes to all of them in turn, and nobody is everybody's companion. Those of failure domains
// that have the chunk come last, those of other groups behind all of the sender's.
NodeIndex Dealer::partner(std::size_t position, std::uint64_t part, std::size_t copy,
                          const Placement& placement) const {
  const Groups::Range group = groups_.of(position);
  const std::size_t others = group.size() - 1;
  const std::size_t place = position - group.begin;
  std::size_t distance = 1;
  if (grouping_.least != 0 && others > 2) {
    distance = 1 + place % (others - 1);
    while (std::gcd(distance, others) != 1) ++distance;
  }
  const auto in_group = [&](std::size_t i) {
    const std::size_t step = 1 + (part + copy * distance + i) % others;
    return order_[group.begin + (place + step) % group.size()];
  };
  const auto takes_it = [&](NodeIndex node) { return receives(node) && !placement.is_on(node); };
  const auto is_elsewhere = [&](NodeIndex node) {
    return std::none_of(placement.nodes().begin(), placement.nodes().end(), [&](NodeIndex other) {
      return domain_of(other) != 0 && domain_of(other) == domain_of(node);
    });
  };
  for (const bool any_domain : {false, true}) {
    if (any_domain && grouping_.domains.empty()) break;
    for (std::size_t i = 0; i < others; ++i) {
      const NodeIndex node = in_group(i);
      if (takes_it(node) && (any_domain || is_elsewhere(node))) return node;
    }
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const NodeIndex node = order_[(position + i) % order_.size()];
    if (takes_it(node)) return node;
  }
  return kNoNode;
}

std::uint32_t Dealer::parts(NodeIndex node, std::uint64_t chunks) const {
  if (!is_parted_) return 1;
  const std::size_t others = groups_.of(at(node).position).size() - 1;
  if (others < copies_) return 1;  // all of them have all
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(chunks / kLeastPart, 1, others));
}

void Dealer::encode(Encoder& e) const {
  e.put(copies_);
  e.put(grouping_.least);
  e.put(grouping_.turn);
  e.put(left_alone_);
  e.put(static_cast<std::uint8_t>(is_parted_ ? 1 : 0));
  e.put(static_cast<std::uint32_t>(grouping_.domains.size()));
  for (const std::uint32_t domain : grouping_.domains) e.put(domain);
  e.put(static_cast<std::uint32_t>(order_.size()));
  for (const NodeIndex node : order_) {
    e.put(node);
    e.put(static_cast<std::uint8_t>((receives(node) ? 1 : 0) | (keeps(node) ? 2 : 0)));
  }
}

Dealer Dealer::decode(Decoder& d) {
  const auto copies = d.get<std::uint32_t>();
  Grouping grouping;
  grouping.least = d.get<std::uint32_t>();
  grouping.turn = d.get<std::uint32_t>();
  const auto left_alone = d.get<std::uint32_t>();
  const bool is_parted = d.get<std::uint8_t>() != 0;
  grouping.domains.resize(d.get_count(sizeof(std::uint32_t)));
  for (std::uint32_t& domain : grouping.domains) domain = d.get<std::uint32_t>();
  const std::uint32_t count = d.get_count(3);
  std::vector<NodeIndex> order;
  std::vector<std::uint8_t> flags;
  for (std::uint32_t i = 0; i < count; ++i) {
    order.push_back(d.get<NodeIndex>());
    flags.push_back(d.get<std::uint8_t>());
  }
  Dealer dealer(order, copies, std::move(grouping));
  dealer.is_parted_ = is_parted;
  dealer.left_alone_ = left_alone;
  for (std::uint32_t i = 0; i < count; ++i) {
    dealer.nodes_[order[i]].receives = (flags[i] & 1) != 0;
    dealer.nodes_[order[i]].keeps = (flags[i] & 2) != 0;
  }
  return dealer;
}

std::uint64_t SharedPart::bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const Sent& sent : sends) bytes += sent.bytes;
  return bytes;
}

void SharedPart::add(const SharedPart& other) {
  dealt = dealt && other.dealt;
  own += other.own;
  std::vector<Sent> all;
  auto i = sends.begin();
  for (const Sent& sent : other.sends) {
    for (; i != sends.end() && i->to < sent.to; ++i) all.push_back(*i);
    if (i != sends.end() && i->to == sent.to) {
      all.push_back({sent.to, i->chunks + sent.chunks, i->bytes + sent.bytes});
      ++i;
    } else {
      all.push_back(sent);
    }
  }
  all.insert(all.end(), i, sends.end());
  sends = std::move(all);
}

SharedPart shared_part(const FrequentSet& result, NodeIndex node, const Dealer& dealer,
                       std::uint32_t overhead) {
  SharedPart part;
  part.node = node;
  std::unordered_map<NodeIndex, SharedPart::Sent> sends;
  Dealer::Deal deal;
  for (const auto& e : result.elements()) {
    const auto designated = result.designated(e);
    if (!dealer.deal(designated, e.fingerprint.prefix(), deal)) part.dealt = false;
    for (const Designated& d : designated) {
      if (d.node == node && dealer.stores(d, deal.placement)) part.own += e.length + overhead;
    }
    for (const Dealer::Copy& copy : deal.copies) {
      if (copy.from != node) continue;
      SharedPart::Sent& sent = sends[copy.to];
      ++sent.chunks;
      sent.bytes += e.length;
    }
  }
  for (const auto& [to, sent] : sends) part.sends.push_back({to, sent.chunks, sent.bytes});
  std::sort(part.sends.begin(), part.sends.end(),
            [](const auto& a, const auto& b) { return a.to < b.to; });
  return part;
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
  Dealer first_dealer(std::move(given), input.copies);
  first_dealer.stop_copying(input.left_alone);
  const Account loads = accountant.run_first(first_dealer);
  std::vector<NodeIndex> order = choose_order(input, loads);
  dealing.dealer = has_groups(input)
                       ? Dealer(std::move(order), input.copies, grouping_of(input, end))
                       : Dealer(std::move(order), input.copies);
  dealing.dealer.stop_copying(input.left_alone);
  for (bool first = true;;) {
    Account account = accountant.run(dealing.dealer);
    if (dealing.dealer.is_parted() && is_short(input, account)) {
      dealing.dealer.stop_parting();
      continue;
    }
    if (std::exchange(first, false)) note_shortage(input, account, dealing);
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
