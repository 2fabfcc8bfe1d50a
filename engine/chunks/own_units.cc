#include "engine/chunks/own_units.h"

#include <algorithm>
#include <utility>

#include "base/hasher.h"

namespace dedup::engine {

OwnUnits::OwnUnits(const NamedChunks& chunks, Verdicts& verdicts, NodeIndex node, unsigned data)
    : chunks_(chunks), verdicts_(verdicts) {
  const auto alone = plan::Placement::copies_on({node});
  const std::size_t most_chunks = plan::most_unit_chunks(data);
  // By verdict, whether such chunks are only here.
  std::vector<bool> is_alone;
  for (std::uint32_t v = 0; v < verdicts_.list.size(); ++v) {
    const Verdict& verdict = verdicts_.list[v];
    is_alone.push_back(verdict.keep && verdict.targets.empty() && verdict.placement == alone);
  }
  Unit unit;
  std::uint64_t length = 0;
  const auto is_full_with = [&](std::uint64_t bytes) {
    return length + bytes > plan::kUnitBytes || unit.chunks.size() == most_chunks;
  };
  const auto end = [&] {
    units_.push_back(std::exchange(unit, {}));
    length = 0;
  };
  for (std::uint32_t i = 0; i < chunks_.size(); ++i) {
    if (!is_alone[verdicts_.of[i]]) continue;
    if (!unit.chunks.empty() && is_full_with(chunks_.length(i))) end();
    unit.chunks.push_back(i);
    length += chunks_.length(i);
  }
  if (!unit.chunks.empty() && is_full_with(1)) end();
}

std::uint32_t OwnUnits::longest() const {
  std::uint32_t longest = 0;
  for (std::uint32_t u = 0; u < count(); ++u) {
    longest = std::max(longest, plan::unit_length(unit(u)));
  }
  return longest;
}

plan::UnitChunks OwnUnits::unit(std::uint32_t number) const {
  plan::UnitChunks unit;
  for (const std::uint32_t i : units_[number].chunks) {
    unit.push_back({chunks_.name(i), chunks_.length(i)});
  }
  return unit;
}

std::optional<std::vector<store::ChunkSeal>> OwnUnits::read(std::uint32_t number,
                                                            std::byte* to) const {
  std::vector<store::ChunkSeal> seals;
  for (const std::uint32_t i : units_[number].chunks) {
    const std::span<std::byte> copy(to, chunks_.length(i));
    const auto data = chunks_.data(i);
    std::copy(data.begin(), data.end(), copy.begin());
    // A seal says only what they are now.
    if (!is_single(chunks_.name(i)) && fast_hash(copy).low != chunks_.checksum(i)) {
      return std::nullopt;
    }
    seals.push_back(store::seal_of({chunks_.name(i), copy}));
    to += copy.size();
  }
  return seals;
}

void OwnUnits::place(std::uint32_t number, const plan::Placement& placement) {
  Unit& unit = units_[number];
  for (const std::uint32_t i : unit.chunks) {
    std::uint32_t& of = verdicts_.of[i];
    unit.verdict.push_back(of);
    of = verdicts_.list.number({true, {}, placement});
  }
}

void OwnUnits::take_back(std::uint32_t number) {
  Unit& unit = units_[number];
  for (std::size_t k = 0; k < unit.chunks.size(); ++k) {
    verdicts_.of[unit.chunks[k]] = unit.verdict[k];
  }
  unit.verdict.clear();
}

}  // namespace dedup::engine
