#include "test/faults/memory_content.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace dedup::test {

std::uint64_t MemoryContent::units_missing(std::uint64_t offset, std::uint64_t length) const {
  std::uint64_t missing = 0;
  for (std::uint64_t unit = offset / kUnit; unit * kUnit < offset + length; ++unit) {
    if (!now_.units.contains(unit)) ++missing;
  }
  return missing;
}

void MemoryContent::Image::write(std::uint64_t offset, std::span<const std::byte> data) {
  size = std::max(size, offset + data.size());
  while (!data.empty()) {
    const std::uint64_t within = offset % kUnit;
    const std::size_t part = std::min<std::size_t>(data.size(), kUnit - within);
    std::shared_ptr<Unit>& unit = units[offset / kUnit];
    if (!unit) {
      unit = std::make_shared<Unit>(Unit{});
    } else if (unit.use_count() > 1) {
      unit = std::make_shared<Unit>(*unit);
    }
    std::memcpy(unit->data() + within, data.data(), part);
    offset += part;
    data = data.subspan(part);
  }
}

void MemoryContent::Image::truncate(std::uint64_t new_size) {
  if (new_size < size) {
    units.erase(units.lower_bound((new_size + kUnit - 1) / kUnit), units.end());
    const auto last = units.find(new_size / kUnit);
    if (last != units.end()) {
      last->second = std::make_shared<Unit>(*last->second);
      std::fill(last->second->begin() + static_cast<std::ptrdiff_t>(new_size % kUnit),
                last->second->end(), std::byte{0});
    }
  }
  size = new_size;
}

void MemoryContent::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::uint64_t within = offset % kUnit;
    const std::size_t part = std::min<std::size_t>(out.size(), kUnit - within);
    const auto unit = now_.units.find(offset / kUnit);
    if (unit == now_.units.end()) {
      std::memset(out.data(), 0, part);
    } else {
      std::memcpy(out.data(), unit->second->data() + within, part);
    }
    offset += part;
    out = out.subspan(part);
  }
}

void MemoryContent::write(std::uint64_t offset, std::span<const std::byte> data) {
  if (data.empty()) return;
  now_.write(offset, data);
  pending_.push_back({offset, Bytes(data.begin(), data.end())});
}

void MemoryContent::truncate(std::uint64_t size) {
  if (size == now_.size) return;
  now_.truncate(size);
  pending_.push_back({size, {}});
}

void MemoryContent::apply(const Change& change, Image& image) {
  if (change.data.empty()) {
    image.truncate(change.offset);
  } else {
    image.write(change.offset, change.data);
  }
}

void MemoryContent::sync() {
  const auto is_doomed = [](const Change& change) { return change.is_doomed; };
  if (std::none_of(pending_.begin(), pending_.end(), is_doomed)) {
    durable_ = now_;
    pending_.clear();
    return;
  }
  for (const Change& change : pending_) {
    if (!change.is_doomed) apply(change, durable_);
  }
  std::erase_if(pending_, [](const Change& change) { return !change.is_doomed; });
}

void MemoryContent::fail_sync() {
  for (Change& change : pending_) change.is_doomed = true;
}

void MemoryContent::apply_some(const Change& change, const Choose& choose, Image& image) {
  enum : std::uint32_t { kLost, kKept, kSizeOnly, kTorn, kOutcomes };
  const auto outcome = choose(change.data.empty() ? kSizeOnly : kOutcomes);
  if (outcome == kKept) apply(change, image);
  if (outcome == kSizeOnly) {
    image.truncate(std::max<std::uint64_t>(image.size, change.offset + change.data.size()));
  }
  if (outcome != kTorn) return;
  const std::span<const std::byte> data(change.data);
  for (std::size_t at = 0, end; at < data.size(); at = end) {
    end = std::min(data.size(), at + kUnit - (change.offset + at) % kUnit);
    if (choose(2) == kKept) image.write(change.offset + at, data.subspan(at, end - at));
  }
}

void MemoryContent::crash(const Choose& choose) {
  for (const Change& change : pending_) apply_some(change, choose, durable_);
  pending_.clear();
  now_ = durable_;
}

}  // namespace dedup::test
