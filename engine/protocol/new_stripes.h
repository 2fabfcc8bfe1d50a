// Which stripes a group of nodes makes of the units that they have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/ranks.h"
#include "base/status.h"
#include "base/types.h"
#include "plan/placement.h"
#include "plan/stripes.h"

namespace dedup::engine {

// The nodes of one group, and the ranks that speak for them.
struct StripeGroup {
  StripeGroup(std::vector<NodeIndex> the_nodes, const Ranks& the_ranks);

  bool has(int rank) const { return partner_of_rank(rank) != partners.size(); }
  std::size_t partner_of_rank(int rank) const;  // its position; partners.size(): it is none
  std::size_t partner_of(NodeIndex node) const;

  std::vector<NodeIndex> nodes;
  std::vector<int> partners;  // ranks, ascending
  const Ranks* ranks;
};

// A stripe to be made.
struct NewStripe {
  Id128 id;
  std::vector<std::uint32_t> units;  // by slot: their numbers on their nodes (MakeUnits)
  std::vector<NodeIndex> nodes;      // of these, then of the parities; the first of these encodes

  NodeIndex encoder() const { return nodes[units.size()]; }
  // Of the unit that a node has in it.
  std::optional<std::size_t> slot_of(NodeIndex node) const {
    for (std::size_t slot = 0; slot < units.size(); ++slot) {
      if (nodes[slot] == node) return slot;
    }
    return std::nullopt;
  }
  plan::StripeUnit unit(std::size_t slot) const {
    return {id, static_cast<std::uint8_t>(slot), static_cast<std::uint8_t>(units.size()), nodes};
  }
};

// Collective over the group's partners. What each has, in their order; none of one that has none.
// Only the first `partners` of them are told.
template <typename T>
std::vector<std::optional<T>> tell_partners(const StripeGroup& group, const std::optional<T>& mine,
                                            std::size_t partners) {
  std::vector<Letter> out(group.partners.size());
  std::vector<Letter> in;
  for (std::size_t i = 0; i < partners; ++i) out[i].said = encoded(mine);
  group.ranks->exchange_letters(group.partners, out, in, [] {});
  std::vector<std::optional<T>> told;
  for (const Letter& letter : in) {
    told.push_back(decoded<std::optional<T>>(letter.said).value_or(std::nullopt));
  }
  return told;
}

// Of a partner that could not say what it was to tell.
Status not_understood();

// What a node has for stripes.
struct NodeUnits {
  NodeIndex node = kNoNode;
  std::uint32_t units = 0;
  std::uint32_t longest = 0;  // bytes
};

// Collective over the group's partners: stripes of all units, the same on each, and the bytes of
// the longest unit. `mine`: of the nodes that this rank speaks for; if it does not know, that is
// all partners' error (kIo). `turn`: see plan::make_stripes().
Result<std::vector<NewStripe>> agree_on_stripes(const StripeGroup& group,
                                                const plan::StripeShape& shape,
                                                const std::optional<std::vector<NodeUnits>>& mine,
                                                std::uint32_t turn, std::uint32_t& longest);

}  // namespace dedup::engine
