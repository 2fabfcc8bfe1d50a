#include "plan/stripe_content.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/codec.h"
#include "base/hasher.h"

namespace dedup::plan {
namespace {

constexpr unsigned kSlots = StripeUnit::kMostNodes - 1;  // the bits of one
constexpr std::size_t kTableEntry = sizeof(Fingerprint) + sizeof(std::uint32_t);
constexpr std::size_t kMostTableBytes = std::size_t{512} << 10;

// Those of a unit that a stretch is in.
std::pair<std::size_t, std::size_t> chunks_in(const UnitChunks& chunks,
                                              StripeRebuild::Stretch stretch) {
  std::size_t first = 0;
  std::uint32_t begin = 0;
  while (first < chunks.size() && begin + chunks[first].length <= stretch.begin) {
    begin += chunks[first++].length;
  }
  std::size_t second = first;
  while (second < chunks.size() && begin < stretch.end) begin += chunks[second++].length;
  return {first, second};
}

// Calls each(where in the stretch, bytes) for what these chunks have of it, which chunks_in() says;
// those that stand together at once.
template <typename Each>
void for_each_part(const UnitChunks& unit, StripeRebuild::Stretch stretch,
                   std::span<const std::span<const std::byte>> chunks, const Each& each) {
  const auto [first, second] = chunks_in(unit, stretch);
  assert(chunks.size() == second - first);
  std::uint32_t begin = stretch_of(unit, first, first).begin;
  for (std::size_t i = 0; i < chunks.size();) {
    std::span<const std::byte> bytes = chunks[i++];
    while (i < chunks.size() && chunks[i].data() == bytes.data() + bytes.size()) {
      bytes = {bytes.data(), bytes.size() + chunks[i++].size()};
    }
    const auto end = begin + static_cast<std::uint32_t>(bytes.size());
    const std::uint32_t from = std::max(begin, stretch.begin);
    const std::uint32_t to = std::min(end, stretch.end);
    if (from < to) each(from - stretch.begin, bytes.subspan(from - begin, to - from));
    begin = end;
  }
}

}  // namespace

std::uint32_t unit_length(const UnitChunks& unit) {
  std::uint32_t length = 0;
  for (const NamedChunk& chunk : unit) length += chunk.length;
  return length;
}

std::uint32_t longest_unit(std::span<const UnitChunks> units) {
  std::uint32_t length = 0;
  for (const UnitChunks& unit : units) length = std::max(length, unit_length(unit));
  return length;
}

Placement placement_of_parts(StripeUnit stripe) {
  stripe.unit = 0;
  return Placement::in_stripe(std::move(stripe));
}

Fingerprint part_name(const Id128& stripe, Part part, unsigned slot) {
  return name_of_stripe_part(stripe,
                             static_cast<std::uint8_t>(static_cast<std::uint8_t>(part) | slot));
}

std::vector<Fingerprint> part_names(const StripeUnit& stripe, unsigned slot) {
  if (!stripe.is_parity(slot)) return {part_name(stripe.stripe, Part::kUnitTable, slot)};
  return {part_name(stripe.stripe, Part::kWholeTable, slot),
          part_name(stripe.stripe, Part::kParity, slot)};
}

Part part_of(const Fingerprint& name) {
  return static_cast<Part>(number_of_stripe_part(name) & ~kSlots);
}

unsigned slot_of(const Fingerprint& name) {
  return number_of_stripe_part(name) & kSlots;
}

Bytes encode_stripe_table(std::span<const UnitChunks> units) {
  Encoder e;
  for (const UnitChunks& unit : units) {
    e.put(static_cast<std::uint32_t>(unit.size()));
    for (const NamedChunk& chunk : unit) {
      e.put_raw(chunk.fingerprint.bytes.data(), chunk.fingerprint.bytes.size());
      e.put(chunk.length);
    }
  }
  return e.take();
}

std::optional<std::vector<UnitChunks>> decode_stripe_table(std::span<const std::byte> bytes,
                                                           std::size_t units) {
  Decoder d(bytes);
  std::vector<UnitChunks> table(units);
  for (UnitChunks& unit : table) {
    const auto count = d.get<std::uint32_t>();
    if (count == 0 || count > d.left() / kTableEntry) return std::nullopt;
    std::uint64_t length = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      NamedChunk chunk{d.get_fingerprint(), d.get<std::uint32_t>()};
      length += chunk.length;
      if (!chunk.possible() || length > kMaxChunkSize) return std::nullopt;
      unit.push_back(chunk);
    }
  }
  if (!d.ok() || !d.at_end()) return std::nullopt;
  return table;
}

std::size_t most_unit_chunks(unsigned data) {
  return std::max<std::size_t>(1, kMostTableBytes / kTableEntry / data);
}

StripeRebuild::Stretch stretch_of(const UnitChunks& unit, std::size_t first, std::size_t second) {
  StripeRebuild::Stretch stretch;
  for (std::size_t i = 0; i < second; ++i) {
    if (i < first) stretch.begin += unit[i].length;
    stretch.end += unit[i].length;
  }
  return stretch;
}

StripeRebuild::StripeRebuild(std::span<const UnitChunks> units, std::size_t nodes, unsigned slot,
                             Stretch stretch)
    : units_(units),
      code_(static_cast<unsigned>(units.size()), static_cast<unsigned>(nodes - units.size())),
      slot_(slot),
      stretch_(stretch) {}

std::pair<std::size_t, std::size_t> StripeRebuild::chunks_of(unsigned unit) const {
  return chunks_in(units_[unit], stretch_);
}

void StripeRebuild::add(Given given) {
  const auto at = std::find_if(given_.begin(), given_.end(),
                               [&](const Given& other) { return other.slot > given.slot; });
  given_.insert(at, std::move(given));
}

void StripeRebuild::give_chunks(unsigned unit, std::span<const std::span<const std::byte>> chunks) {
  Given given{unit, Bytes(stretch_.size())};
  for_each_part(units_[unit], stretch_, chunks,
                [&](std::size_t at, std::span<const std::byte> bytes) {
                  std::memcpy(given.bytes.data() + at, bytes.data(), bytes.size());
                });
  add(std::move(given));
}

bool StripeRebuild::give_parity(unsigned slot, std::span<const std::byte> bytes) {
  if (bytes.size() != longest_unit(units_)) return false;
  const auto part = bytes.subspan(stretch_.begin, stretch_.size());
  add({slot, Bytes(part.begin(), part.end())});
  return true;
}

std::optional<Bytes> StripeRebuild::rebuild(std::optional<std::size_t> left_out) const {
  std::vector<unsigned> which;
  std::vector<std::span<const std::byte>> bytes;
  for (std::size_t i = 0; i < given_.size() && which.size() < data(); ++i) {
    if (i == left_out) continue;
    which.push_back(given_[i].slot);
    bytes.emplace_back(given_[i].bytes);
  }
  Bytes out(stretch_.size());
  if (which.size() < data() || !code_.restore(which, bytes, slot_, out)) return std::nullopt;
  return out;
}

std::optional<StripeSum> StripeSum::of(std::span<const UnitChunks> units, std::size_t nodes,
                                       unsigned slot, StripeRebuild::Stretch stretch,
                                       std::vector<unsigned> slots) {
  const ErasureCode code(static_cast<unsigned>(units.size()),
                         static_cast<unsigned>(nodes - units.size()));
  auto sum = code.sum_of(slots, slot);
  if (!sum) return std::nullopt;
  return StripeSum(units, stretch, std::move(slots), *std::move(sum));
}

std::size_t StripeSum::position_of(unsigned slot) const {
  const auto at = std::find(slots_.begin(), slots_.end(), slot);
  assert(at != slots_.end());
  return static_cast<std::size_t>(at - slots_.begin());
}

void StripeSum::add_chunks(unsigned unit, std::span<const std::span<const std::byte>> chunks) {
  const std::size_t position = position_of(unit);
  for_each_part(units_[unit], stretch_, chunks,
                [&](std::size_t at, std::span<const std::byte> bytes) {
                  sum_.add(position, bytes, std::span(bytes_).subspan(at));
                });
  --missing_;
}

bool StripeSum::add_parity(unsigned slot, std::span<const std::byte> bytes) {
  if (bytes.size() != longest_unit(units_)) return false;
  sum_.add(position_of(slot), bytes.subspan(stretch_.begin, stretch_.size()), bytes_);
  --missing_;
  return true;
}

}  // namespace dedup::plan
