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

}  // namespace

std::uint32_t unit_length(const UnitChunks& unit) {
  std::uint32_t length = 0;
  for (const NamedChunk& chunk : unit) length += chunk.length;
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
  const UnitChunks& chunks = units_[unit];
  std::size_t first = 0;
  std::uint32_t begin = 0;
  while (first < chunks.size() && begin + chunks[first].length <= stretch_.begin) {
    begin += chunks[first++].length;
  }
  std::size_t second = first;
  while (second < chunks.size() && begin < stretch_.end) begin += chunks[second++].length;
  return {first, second};
}

void StripeRebuild::add(Given given) {
  const auto at = std::find_if(given_.begin(), given_.end(),
                               [&](const Given& other) { return other.slot > given.slot; });
  given_.insert(at, std::move(given));
}

void StripeRebuild::give_chunks(unsigned unit, std::span<const std::span<const std::byte>> chunks) {
  const auto [first, second] = chunks_of(unit);
  assert(chunks.size() == second - first);
  Given given{unit, Bytes(stretch_.size())};
  std::uint32_t begin = stretch_of(units_[unit], first, first).begin;
  for (const std::span<const std::byte> chunk : chunks) {
    const auto end = begin + static_cast<std::uint32_t>(chunk.size());
    const std::uint32_t from = std::max(begin, stretch_.begin);
    const std::uint32_t to = std::min(end, stretch_.end);
    if (from < to) {
      std::memcpy(given.bytes.data() + (from - stretch_.begin), chunk.data() + (from - begin),
                  to - from);
    }
    begin = end;
  }
  add(std::move(given));
}

bool StripeRebuild::give_parity(unsigned slot, std::span<const std::byte> bytes) {
  std::uint32_t length = 0;
  for (const UnitChunks& unit : units_) length = std::max(length, unit_length(unit));
  if (bytes.size() != length) return false;
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

}  // namespace dedup::plan
