#include "engine/protocol/new_stripes.h"

#include <algorithm>
#include <map>

namespace dedup::engine {
namespace {

// Of those that are made at the same time no two are the same, and whoever knows the first number
// knows them all.
Id128 numbered(Id128 first, std::uint32_t number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    first.bytes[i] ^= static_cast<std::uint8_t>(number >> 8 * i);
  }
  return first;
}

// What a partner says: `first` of the ids of stripes, as far as it is concerned.
struct Told {
  Id128 first;
  std::vector<NodeUnits> units;
};

}  // namespace

Status not_understood() {
  return {Code::kIo, "another node could not say what it has for stripes"};
}

StripeGroup::StripeGroup(std::vector<NodeIndex> the_nodes, const Ranks& the_ranks)
    : nodes(std::move(the_nodes)), ranks(&the_ranks) {
  for (const NodeIndex node : nodes) partners.push_back(ranks->speaker_for(node));
  std::sort(partners.begin(), partners.end());
  partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
}

std::size_t StripeGroup::partner_of_rank(int rank) const {
  const auto it = std::lower_bound(partners.begin(), partners.end(), rank);
  const bool is_one = it != partners.end() && *it == rank;
  return is_one ? static_cast<std::size_t>(it - partners.begin()) : partners.size();
}

std::size_t StripeGroup::partner_of(NodeIndex node) const {
  return partner_of_rank(ranks->speaker_for(node));
}

Result<std::vector<NewStripe>> agree_on_stripes(const StripeGroup& group,
                                                const plan::StripeShape& shape,
                                                const std::optional<std::vector<NodeUnits>>& mine,
                                                std::uint32_t turn, std::uint32_t& longest) {
  std::optional<Told> said;
  if (mine) said = Told{Id128::random(), *mine};
  const auto all = tell_partners(group, said, group.partners.size());
  std::map<NodeIndex, std::uint32_t> units;
  for (const auto& told : all) {
    if (!told) return not_understood();
    for (const NodeUnits& of_node : told->units) {
      units[of_node.node] = of_node.units;
      longest = std::max(longest, of_node.longest);
    }
  }
  std::vector<std::uint32_t> counts;
  for (const NodeIndex node : group.nodes) counts.push_back(units[node]);
  std::vector<NewStripe> stripes;
  for (const plan::Stripe& stripe : plan::make_stripes(group.nodes, counts, shape, turn)) {
    const auto number = static_cast<std::uint32_t>(stripes.size());
    NewStripe& made = stripes.emplace_back();
    made.id = numbered(all.front()->first, number);
    for (const plan::Stripe::Unit& unit : stripe.units) {
      made.units.push_back(unit.number);
      made.nodes.push_back(unit.node);
    }
    made.nodes.insert(made.nodes.end(), stripe.parities.begin(), stripe.parities.end());
  }
  return stripes;
}

}  // namespace dedup::engine
