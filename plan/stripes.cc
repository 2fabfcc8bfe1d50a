#include "plan/stripes.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <iterator>
#include <map>
#include <numeric>

#include "plan/deal.h"

namespace dedup::plan {
namespace {

// Rounds that stripes may still go to: in a round there is room for others than the last ones.
constexpr std::size_t kOpenRounds = 8;

}  // namespace

StripeShape StripeShape::within(std::size_t nodes) const {
  if (parities == 0 || nodes < parities + std::size_t{2}) return {0, parities};
  return {static_cast<unsigned>(std::min<std::size_t>(data, nodes - parities)), parities};
}

std::vector<std::vector<NodeIndex>> stripe_groups(const LiveNodes& live, const StripeShape& shape,
                                                  unsigned least) {
  least = std::max(least, shape.data + shape.parities);
  std::vector<Member> members;
  for (const NodeIndex node : live.list()) members.push_back({node, 0, live.domain_of(node)});
  const std::vector<NodeIndex> order = order_in_groups(std::move(members), least);
  const Groups groups(order.size(), least);
  std::vector<std::vector<NodeIndex>> out;
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const Groups::Range range = groups.range(g);
    out.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(range.begin),
                     order.begin() + static_cast<std::ptrdiff_t>(range.end));
  }
  return out;
}

std::vector<Stripe> make_stripes(std::span<const NodeIndex> nodes,
                                 std::span<const std::uint32_t> units, const StripeShape& shape,
                                 std::uint32_t turn) {
  assert(nodes.size() == units.size() && nodes.size() >= shape.data + shape.parities);
  std::vector<std::uint32_t> next(nodes.size());      // unit
  std::vector<std::uint32_t> parities(nodes.size());  // that a node has got
  std::vector<std::size_t> order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(turn % nodes.size()),
              order.end());
  const auto left = [&](std::size_t i) { return units[i] - next[i]; };
  std::vector<Stripe> stripes;
  std::vector<std::size_t> chosen;
  for (;;) {
    // Those with most left; of equals those that come first, but for who did last time.
    chosen = order;
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](std::size_t a, std::size_t b) { return left(a) > left(b); });
    Stripe stripe;
    while (stripe.units.size() < shape.data && left(chosen[stripe.units.size()]) > 0) {
      const std::size_t i = chosen[stripe.units.size()];
      stripe.units.push_back({nodes[i], next[i]});
    }
    if (stripe.units.empty()) return stripes;
    const auto first_other = chosen.begin() + static_cast<std::ptrdiff_t>(stripe.units.size());
    for (auto i = chosen.begin(); i != first_other; ++i) ++next[*i];
    std::stable_sort(first_other, chosen.end(),
                     [&](std::size_t a, std::size_t b) { return parities[a] < parities[b]; });
    for (unsigned p = 0; p < shape.parities; ++p) {
      const std::size_t i = first_other[p];
      stripe.parities.push_back(nodes[i]);
      ++parities[i];
    }
    // Who makes them is another one each time.
    std::rotate(
        stripe.parities.begin(),
        stripe.parities.begin() + static_cast<std::ptrdiff_t>(stripes.size() % shape.parities),
        stripe.parities.end());
    stripes.push_back(std::move(stripe));
  }
}

std::vector<std::vector<std::uint32_t>> stripe_rounds(std::span<const StripeMoves> stripes,
                                                      std::size_t partners, std::size_t most) {
  // Of rounds that are not full yet.
  struct Round {
    std::uint32_t number;
    std::vector<std::size_t> sent;
    std::vector<std::size_t> received;
  };
  std::deque<Round> open;
  std::vector<std::vector<std::uint32_t>> rounds;
  for (std::uint32_t i = 0; i < stripes.size(); ++i) {
    const StripeMoves& moves = stripes[i];
    std::map<std::uint32_t, std::size_t> sent{{moves.encoder, moves.to.size()}};
    std::map<std::uint32_t, std::size_t> received{{moves.encoder, moves.from.size()}};
    for (const std::uint32_t partner : moves.from) ++sent[partner];
    for (const std::uint32_t partner : moves.to) ++received[partner];
    const auto all_fit = [&](const auto& more, const std::vector<std::size_t>& load) {
      return std::all_of(more.begin(), more.end(),
                         [&](const auto& one) { return load[one.first] + one.second <= most; });
    };
    const auto fits = [&](const Round& round) {
      return all_fit(sent, round.sent) && all_fit(received, round.received);
    };
    auto round = std::find_if(open.begin(), open.end(), fits);
    if (round == open.end()) {
      if (open.size() == kOpenRounds) open.pop_front();
      open.push_back({static_cast<std::uint32_t>(rounds.size()), std::vector<std::size_t>(partners),
                      std::vector<std::size_t>(partners)});
      rounds.emplace_back();
      round = std::prev(open.end());
    }
    rounds[round->number].push_back(i);
    for (const auto& [partner, units] : sent) round->sent[partner] += units;
    for (const auto& [partner, units] : received) round->received[partner] += units;
  }
  return rounds;
}

}  // namespace dedup::plan
