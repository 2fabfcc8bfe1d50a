#include "tools/dedupctl/stripes.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/stripe_content.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/some_of_nodes.h"

namespace dedup::ctl {
namespace {

plan::StripeUnit first_unit(plan::StripeUnit stripe) {
  stripe.unit = 0;
  return stripe;
}

}  // namespace

void Stripes::look_at(Generation& generation, std::span<const NumberedBlock> blocks) {
  std::vector<plan::StripeUnit> fresh;
  for (const NumberedBlock& block : blocks) {
    for (const plan::Placement& placement : block.block.placements) {
      if (placement.stripe() == nullptr) continue;
      auto [entry, is_new] = whole_on_.try_emplace(first_unit(*placement.stripe()));
      if (is_new) fresh.push_back(entry->first);
    }
  }
  if (fresh.empty()) return;
  std::vector<std::uint64_t> words(fresh.size());
  SomeOfNodes have_part(words);
  for (Part& part : generation.parts()) {
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      const auto& nodes = fresh[i].nodes;
      const auto at = std::find(nodes.begin(), nodes.end(), part.position());
      if (at == nodes.end()) continue;
      if (has_part(part, fresh[i], static_cast<unsigned>(at - nodes.begin()))) {
        have_part.add(i, nodes, part.position());
      }
    }
  }
  generation.ranks().sum(words);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const NodeSet nodes = have_part.of(i, fresh[i].nodes);
    if (nodes.size() == fresh[i].nodes.size()) ++whole_;
    whole_on_[fresh[i]] = plan::LiveNodes(nodes);
  }
}

bool Stripes::has_part(Part& part, const plan::StripeUnit& stripe, unsigned slot) {
  Lacking& lacking = lacking_[part.position()];
  const std::size_t before = lacking.count();
  for (const Fingerprint& name : plan::part_names(stripe, slot)) {
    if (plan::part_of(name) == plan::Part::kParity) {
      if (!part.find(name)) ++lacking.parities;
      continue;
    }
    const std::vector<Bytes> bytes = part.read(std::span(&name, 1));
    std::optional<std::vector<plan::UnitChunks>> table;
    if (!bytes.empty()) {
      table = plan::decode_stripe_table(bytes[0], stripe.is_parity(slot) ? stripe.data : 1);
    }
    if (!table) {
      ++lacking.tables;
    } else if (!stripe.is_parity(slot) &&
               !std::all_of(table->front().begin(), table->front().end(),
                            [&](const NamedChunk& chunk) { return part.place_of(chunk); })) {
      ++lacking.units;
    }
  }
  return lacking.count() == before;
}

plan::Placement Stripes::left_of(const plan::Placement& placement) const {
  if (placement.stripe() == nullptr) return placement;
  return placement.surviving(whole_on_.at(first_unit(*placement.stripe())));
}

std::vector<Problem> Stripes::problems(const Generation& generation) const {
  std::vector<Problem> out;
  for (const auto& [position, lacking] : lacking_) {
    std::vector<std::string> what;
    if (lacking.parities > 0) what.push_back(fmt::format("{} parities", lacking.parities));
    if (lacking.tables > 0) what.push_back(fmt::format("{} tables of chunks", lacking.tables));
    if (lacking.units > 0) what.push_back(fmt::format("chunks of {} units", lacking.units));
    if (what.empty()) continue;
    out.push_back({generation.node_of(position),
                   "its part of stripes is not whole, of which lost data would be made: missing or "
                   "damaged are " +
                       join(what)});
  }
  return out;
}

}  // namespace dedup::ctl
