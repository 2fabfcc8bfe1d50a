// What is kept of a stripe beside its chunks, and making from it what is lost.
//
// A stripe has k units, each the chunks of one node, one behind the other, and m parities of these,
// as long as the longest unit; where a shorter one ends, zeros follow (base/erasure.h). Beside the
// chunks each node of a unit keeps a table of them, so that they stay as long as the stripe does;
// and each node of a parity that parity and a table of all units. Tables and parities are chunks
// like others, but for their names. doc/format.md, "Stripe", has them byte by byte.
//
// Pure, so thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/erasure.h"
#include "base/piece.h"
#include "base/types.h"
#include "plan/placement.h"

namespace dedup::plan {

using UnitChunks = std::vector<NamedChunk>;

std::uint32_t unit_length(const UnitChunks& unit);  // bytes
std::uint32_t longest_unit(std::span<const UnitChunks> units);

// How what is kept of a stripe beside its chunks is kept: the same for all of it.
Placement placement_of_parts(StripeUnit stripe);
// What a stripe has beside its chunks is in parts.
enum class Part : std::uint8_t {
  kUnitTable = 0x00,   // of the unit that the node has
  kWholeTable = 0x40,  // of all units, where a parity is
  kParity = 0x80,
};
// The name of what the `slot`-th node of a stripe keeps.
Fingerprint part_name(const Id128& stripe, Part part, unsigned slot);
// Names of all that it keeps: a table and, of a parity's slot, that too.
std::vector<Fingerprint> part_names(const StripeUnit& stripe, unsigned slot);
// What such a name says.
Part part_of(const Fingerprint& name);
unsigned slot_of(const Fingerprint& name);

// A table, of one unit or of all.
Bytes encode_stripe_table(std::span<const UnitChunks> units);
// None if it cannot be one, of so many units.
std::optional<std::vector<UnitChunks>> decode_stripe_table(std::span<const std::byte> bytes,
                                                           std::size_t units);

// Where a unit is cut for a stripe of `data` units: its length in bytes stays below the first, but
// for one chunk that is longer, and so many chunks fit into a table.
inline constexpr std::uint32_t kUnitBytes = std::uint32_t{512} << 10;
std::size_t most_unit_chunks(unsigned data);

// Makes a stretch of a slot's unit or parity from that of k others.
class StripeRebuild {
 public:
  struct Stretch {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t size() const { return end - begin; }
  };

  // `units`: of the stripe, all; `nodes`: k + m. `slot`: what is wanted, [stretch.begin,
  // stretch.end) of it, not beyond its length.
  StripeRebuild(std::span<const UnitChunks> units, std::size_t nodes, unsigned slot,
                Stretch stretch);

  unsigned data() const { return code_.k(); }
  Stretch stretch() const { return stretch_; }
  // The chunks of a unit that the stretch is in, by their numbers there: [first, second).
  std::pair<std::size_t, std::size_t> chunks_of(unsigned unit) const;

  // The chunks that chunks_of() says, of a unit; a whole parity. Kept until the end.
  void give_chunks(unsigned unit, std::span<const std::span<const std::byte>> chunks);
  // False if it is none of the right length.
  bool give_parity(unsigned slot, std::span<const std::byte> bytes);
  std::size_t given() const { return given_.size(); }

  // From k of what was given: without what `left_out`, if there is more, says by its position in
  // the order of slots. None if there is not enough.
  std::optional<Bytes> rebuild(std::optional<std::size_t> left_out = std::nullopt) const;

 private:
  struct Given {
    unsigned slot = 0;
    Bytes bytes;  // of the stretch
  };
  void add(Given given);

  std::span<const UnitChunks> units_;
  ErasureCode code_;
  unsigned slot_;
  Stretch stretch_;
  std::vector<Given> given_;  // ascending by slot
};

// The same from exactly k slots, which are known before: nothing of what comes is kept.
class StripeSum {
 public:
  // `slots`: k, without the wanted one. None if it cannot be told from these.
  static std::optional<StripeSum> of(std::span<const UnitChunks> units, std::size_t nodes,
                                     unsigned slot, StripeRebuild::Stretch stretch,
                                     std::vector<unsigned> slots);

  // As StripeRebuild has them; of one of these slots, once.
  void add_chunks(unsigned unit, std::span<const std::span<const std::byte>> chunks);
  bool add_parity(unsigned slot, std::span<const std::byte> bytes);
  // Only when all have been added it is what was wanted.
  bool is_complete() const { return missing_ == 0; }
  const Bytes& bytes() const { return bytes_; }

 private:
  StripeSum(std::span<const UnitChunks> units, StripeRebuild::Stretch stretch,
            std::vector<unsigned> slots, ErasureCode::Sum sum)
      : units_(units),
        stretch_(stretch),
        slots_(std::move(slots)),
        sum_(std::move(sum)),
        bytes_(stretch.size()),
        missing_(slots_.size()) {}
  std::size_t position_of(unsigned slot) const;

  std::span<const UnitChunks> units_;
  StripeRebuild::Stretch stretch_;
  std::vector<unsigned> slots_;
  ErasureCode::Sum sum_;
  Bytes bytes_;
  std::size_t missing_;
};

// Chunks [first, second) of a unit take these bytes of it.
StripeRebuild::Stretch stretch_of(const UnitChunks& unit, std::size_t first, std::size_t second);

}  // namespace dedup::plan
