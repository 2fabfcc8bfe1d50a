#include "service/chunk_index.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/piece.h"

namespace dedup::service {
namespace {

// How offset and length share 64 bits.
constexpr unsigned kLengthBits = 21;
constexpr std::uint64_t kMaxOffset = std::uint64_t{1} << (64 - kLengthBits);
static_assert(kMaxChunkSize < (std::uint32_t{1} << kLengthBits));

constexpr std::size_t kFirstSlots = 1024;

}  // namespace

bool ChunkIndex::possible(const store::ChunkLocation& location) {
  return location.length > 0 && location.length <= kMaxChunkSize && location.offset < kMaxOffset;
}

// All of the fingerprint counts: where it is no hash but a number, its first bytes may be the same
// in all of them. Of a keyed one the hash only, by which all with the same content can be found.
// (Multiply and fold, as in Fibonacci hashing.)
std::uint64_t ChunkIndex::hash(const Fingerprint& fingerprint) {
  const NameKind kind = kind_of(fingerprint);
  if (kind == NameKind::kKeyed || kind == NameKind::kKeyedSingle) return fingerprint.prefix();
  std::uint64_t h = 0;
  for (std::size_t i = 0; i < fingerprint.bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, fingerprint.bytes.data() + i, sizeof word);
    h = (h ^ word) * 0x9e3779b97f4a7c15;
    h ^= h >> 32;
  }
  return h;
}

store::ChunkLocation ChunkIndex::location_of(const Entry& e) const {
  return {segments_[e.segment], e.place >> kLengthBits,
          static_cast<std::uint32_t>(e.place & ((std::uint64_t{1} << kLengthBits) - 1))};
}

std::uint32_t ChunkIndex::intern(const plan::Placement& placement) {
  const auto [it, is_new] =
      placement_numbers_.emplace(placement, static_cast<std::uint32_t>(placements_.size()));
  if (is_new) placements_.push_back(&it->first);
  return it->second;
}

std::uint32_t ChunkIndex::segment_index(std::uint64_t segment) {
  const auto [it, is_new] =
      segment_numbers_.emplace(segment, static_cast<std::uint32_t>(segments_.size()));
  if (is_new) segments_.push_back(segment);
  return it->second;
}

std::uint32_t ChunkIndex::lookup(const Fingerprint& fingerprint) const {
  if (slots_.empty()) return kNone;
  const std::uint64_t h = hash(fingerprint);
  const auto tag = static_cast<std::uint8_t>(h >> 56);
  for (std::size_t slot = h & (slots_.size() - 1); slots_[slot] != kNone;
       slot = (slot + 1) & (slots_.size() - 1)) {
    if (tags_[slot] == tag && entry(slots_[slot]).fingerprint == fingerprint) return slots_[slot];
  }
  return kNone;
}

bool ChunkIndex::find_content(const Fingerprint& content, Fingerprint& name) const {
  if (slots_.empty()) return false;
  const std::uint64_t h = hash(content);
  const auto tag = static_cast<std::uint8_t>(h >> 56);
  for (std::size_t slot = h & (slots_.size() - 1); slots_[slot] != kNone;
       slot = (slot + 1) & (slots_.size() - 1)) {
    if (tags_[slot] != tag) continue;
    const Entry& e = entry(slots_[slot]);
    if (!registered(e) || content_of(e.fingerprint) != content) continue;
    name = e.fingerprint;
    return true;
  }
  return false;
}

void ChunkIndex::enter(std::uint32_t i) {
  const std::uint64_t h = hash(entry(i).fingerprint);
  std::size_t slot = h & (slots_.size() - 1);
  while (slots_[slot] != kNone) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = i;
  tags_[slot] = static_cast<std::uint8_t>(h >> 56);
}

void ChunkIndex::grow() {
  const std::size_t size = slots_.empty() ? kFirstSlots : 2 * slots_.size();
  slots_.assign(0, 0);
  slots_.shrink_to_fit();
  slots_.assign(size, kNone);
  tags_.assign(size, 0);
  for (std::uint32_t i = 0; i < entries_; ++i) enter(i);
}

std::uint32_t ChunkIndex::insert(const Fingerprint& fingerprint) {
  const std::uint32_t found = lookup(fingerprint);
  if (found != kNone) return found;
  if (entries_ + std::size_t{1} > slots_.size() / 4 * 3) grow();
  if (entries_ % kBlockEntries == 0) {
    blocks_.push_back(std::make_unique<std::array<Entry, kBlockEntries>>());
  }
  const std::uint32_t i = entries_++;
  entry(i) = {fingerprint, 0, kVacant, 0};
  enter(i);
  return i;
}

bool ChunkIndex::claim(const Fingerprint& fingerprint) {
  Entry& e = entry(insert(fingerprint));
  if (e.segment != kVacant) return false;
  e.segment = kClaimed;
  return true;
}

void ChunkIndex::release(const Fingerprint& fingerprint) {
  const std::uint32_t i = lookup(fingerprint);
  if (i != kNone && entry(i).segment == kClaimed) entry(i).segment = kVacant;
}

void ChunkIndex::release_all() {
  for (std::uint32_t i = 0; i < entries_; ++i) {
    if (entry(i).segment == kClaimed) entry(i).segment = kVacant;
  }
}

void ChunkIndex::put(const Fingerprint& fingerprint, const store::ChunkLocation& location,
                     std::uint32_t placement) {
  Entry& e = entry(insert(fingerprint));
  if (registered(e)) {
    e.placement = (e.placement & kMark) | placement;
    return;
  }
  e.place = location.offset << kLengthBits | location.length;
  e.segment = segment_index(location.segment);
  e.placement = placement;
  ++registered_;
}

bool ChunkIndex::find(const Fingerprint& fingerprint, store::ChunkLocation* location,
                      const plan::Placement** placement) const {
  const std::uint32_t i = lookup(fingerprint);
  if (i == kNone || !registered(entry(i))) return false;
  if (location != nullptr) *location = location_of(entry(i));
  if (placement != nullptr) *placement = placements_[entry(i).placement & ~kMark];
  return true;
}

bool ChunkIndex::mark(const Fingerprint& fingerprint, std::uint32_t placement) {
  const std::uint32_t i = lookup(fingerprint);
  if (i == kNone || !registered(entry(i))) return false;
  entry(i).placement = placement | kMark;
  return true;
}

ChunkIndex::Pinned ChunkIndex::pin(const Fingerprint& fingerprint, std::uint32_t placement) {
  const std::uint32_t i = lookup(fingerprint);
  if (i == kNone || !registered(entry(i))) return Pinned::kNot;
  std::uint32_t& kept = entry(i).placement;
  if ((kept & kMark) == 0) kept = placement | kMark;
  return kept == (placement | kMark) ? Pinned::kOnly : Pinned::kReferredTo;
}

void ChunkIndex::clear_marks() {
  for (std::uint32_t i = 0; i < entries_; ++i) entry(i).placement &= ~kMark;
}

std::vector<std::uint32_t> ChunkIndex::marked_in_order() const {
  // Dealt by their first bits, so that what is sorted at once is in the processor's cache.
  constexpr unsigned kParts = 1024;
  const auto part_of = [&](std::uint32_t i) {
    return static_cast<std::size_t>(entry(i).fingerprint.leading() /
                                    (~std::uint64_t{0} / kParts + 1));
  };
  const auto for_each_marked = [&](const auto& visit) {
    for (std::uint32_t i = 0; i < entries_; ++i) {
      if (registered(entry(i)) && (entry(i).placement & kMark) != 0) visit(i);
    }
  };
  std::vector<std::size_t> ends(kParts + 1);
  for_each_marked([&](std::uint32_t i) { ++ends[part_of(i) + 1]; });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<std::uint32_t> numbers(ends.back());
  // From here on ends[p] is where the next of part p goes, and in the end where part p + 1 begins.
  for_each_marked([&](std::uint32_t i) { numbers[ends[part_of(i)]++] = i; });
  std::size_t begin = 0;
  for (unsigned p = 0; p < kParts; ++p) {
    std::sort(numbers.begin() + static_cast<std::ptrdiff_t>(begin),
              numbers.begin() + static_cast<std::ptrdiff_t>(ends[p]),
              [&](std::uint32_t a, std::uint32_t b) {
                return entry(a).fingerprint < entry(b).fingerprint;
              });
    begin = ends[p];
  }
  return numbers;
}

void ChunkIndex::forget(const Fingerprint& fingerprint) {
  const std::uint32_t i = lookup(fingerprint);
  if (i == kNone || !registered(entry(i))) return;
  entry(i).segment = kVacant;
  --registered_;
}

void ChunkIndex::forget_segment(std::uint64_t segment) {
  const auto it = segment_numbers_.find(segment);
  if (it == segment_numbers_.end()) return;
  for (std::uint32_t i = 0; i < entries_; ++i) {
    Entry& e = entry(i);
    if (e.segment != it->second) continue;
    e.segment = kVacant;
    --registered_;
  }
}

void ChunkIndex::keep_from(std::uint64_t segment) {
  ChunkIndex kept;
  for (std::uint32_t i = 0; i < entries_; ++i) {
    const Entry& e = entry(i);
    if (!registered(e) || segments_[e.segment] < segment) continue;
    const std::uint32_t placement = kept.intern(*placements_[e.placement & ~kMark]);
    kept.put(e.fingerprint, location_of(e), placement);
  }
  *this = std::move(kept);
}

std::uint64_t ChunkIndex::memory() const {
  std::uint64_t bytes = blocks_.size() * (sizeof(Entry) * kBlockEntries + sizeof(void*)) +
                        slots_.capacity() * sizeof(slots_[0]) + tags_.capacity() +
                        segments_.size() * 48 + placements_.size() * sizeof(void*);
  for (const auto& [placement, number] : placement_numbers_) {
    bytes += 64 + sizeof placement + sizeof number + placement.memory();
  }
  return bytes;
}

}  // namespace dedup::service
