// Units of stripes (plan/stripe_content.h) of what a rank keeps and nobody else has: whole ones,
// while the data is still where the program has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/chunks/judge.h"
#include "engine/chunks/name_chunks.h"
#include "plan/placement.h"
#include "plan/stripe_content.h"
#include "store/segment.h"

namespace dedup::engine {

// 8 bytes a chunk in a unit. One thread.
class OwnUnits {
 public:
  // Of the chunks that `node` alone keeps, in their order, for stripes of `data` units. What is
  // left and does not fill a unit is in none: the commit makes stripes of it, with what else there
  // is then. Both must outlive it.
  OwnUnits(const NamedChunks& chunks, Verdicts& verdicts, NodeIndex node, unsigned data);

  std::uint32_t count() const { return static_cast<std::uint32_t>(units_.size()); }
  std::uint32_t longest() const;  // bytes
  plan::UnitChunks unit(std::uint32_t number) const;
  // Their bytes to `to`, and their seals. None if a chunk is not any more what it was when it was
  // cut, as far as its name does not say that anyway.
  std::optional<std::vector<store::ChunkSeal>> read(std::uint32_t number, std::byte* to) const;

  // From now on the verdicts say of its chunks that they are kept so.
  void place(std::uint32_t number, const plan::Placement& placement);
  // Not so after all: they are as they were.
  void take_back(std::uint32_t number);

 private:
  struct Unit {
    std::vector<std::uint32_t> chunks;   // by number
    std::vector<std::uint32_t> verdict;  // of each, by number, before it was placed
  };

  const NamedChunks& chunks_;
  Verdicts& verdicts_;
  std::vector<Unit> units_;
};

}  // namespace dedup::engine
