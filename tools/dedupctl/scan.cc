#include "tools/dedupctl/scan.h"

#include <algorithm>
#include <bit>

#include "base/hasher.h"
#include "plan/cut.h"

namespace dedup::ctl {
namespace {

// Bytes on disk for a chunk, where it is named in a recipe, and where it is in an index
// (doc/format.md).
constexpr double kInRecipe = 37;
constexpr double kInIndex = 36;

unsigned on_nodes(std::uint64_t nodes) {
  return static_cast<unsigned>(std::popcount(nodes));
}

}  // namespace

ScanCost& ScanCost::operator+=(const ScanCost& other) {
  stored += other.stored;
  sent += other.sent;
  lists += other.lists;
  return *this;
}

ScanFigures& ScanFigures::operator+=(const ScanFigures& other) {
  data += other.data;
  different += other.different;
  different_here += other.different_here;
  before += other.before;
  return *this;
}

Scan::Scan(std::vector<std::uint32_t> chunk_sizes, unsigned nodes, std::size_t most_counted)
    : sizes_(std::move(chunk_sizes)),
      nodes_(nodes),
      most_counted_(most_counted),
      counted_(sizes_.size()) {}

void Scan::begin(std::uint64_t size) {
  parts_ = std::max<std::uint64_t>(1, plan::chunk_count(size, sizes_.back()));
  for (Counted& counted : counted_) {
    counted.data = 0;
    for (auto& [hash, chunk] : counted.chunks) chunk = {0, 0, chunk.length, true};
  }
}

void Scan::add(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::uint64_t part = offset / sizes_.back();
    const auto node = static_cast<unsigned>(part * nodes_ / parts_);
    const auto some = bytes.first(std::min<std::size_t>(bytes.size(), sizes_.back()));
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      for (std::size_t at = 0; at < some.size(); at += sizes_[i]) {
        add_chunk(counted_[i], std::min(node, nodes_ - 1),
                  some.subspan(at, std::min<std::size_t>(sizes_[i], some.size() - at)));
      }
    }
    offset += some.size();
    bytes = bytes.subspan(some.size());
  }
}

void Scan::add_chunk(Counted& counted, unsigned node, std::span<const std::byte> bytes) const {
  if (plan::all_zero(bytes)) return;
  counted.data += bytes.size();
  const std::uint64_t hash = fast_hash(bytes).low;
  if ((hash & counted.mask) != 0) return;
  Chunk& chunk = counted.chunks[hash];
  chunk.nodes |= std::uint64_t{1} << node;
  ++chunk.times;
  chunk.length = static_cast<std::uint32_t>(bytes.size());
  while (counted.chunks.size() > most_counted_) {
    counted.mask = 2 * counted.mask + 1;
    std::erase_if(counted.chunks, [&](const auto& one) { return (one.first & counted.mask) != 0; });
  }
}

double Scan::scale(const Counted& counted) {
  std::uint64_t bytes = 0;
  for (const auto& [hash, chunk] : counted.chunks) bytes += chunk.times * chunk.length;
  return bytes == 0 ? 0 : static_cast<double>(counted.data) / static_cast<double>(bytes);
}

ScanFigures Scan::figures(std::size_t size) const {
  const Counted& counted = counted_[size];
  const double factor = scale(counted);
  ScanFigures out;
  out.data = counted.data;
  for (const auto& [hash, chunk] : counted.chunks) {
    if (chunk.times == 0) continue;
    const double length = factor * chunk.length;
    out.different += length;
    out.different_here += on_nodes(chunk.nodes) * length;
    if (chunk.before) out.before += length;
  }
  return out;
}

ScanCost Scan::cost(std::size_t size, const Way& way, hints::Mode mode) const {
  const double copies = std::min(way.copies, nodes_);
  const bool in_stripes = way.parities > 0;
  ScanCost cost;
  for (const auto& [hash, chunk] : counted_[size].chunks) {
    if (chunk.times == 0) continue;
    const double length = chunk.length;
    const auto times = static_cast<double>(chunk.times);
    const double holders = mode == hints::Mode::kNone ? times : on_nodes(chunk.nodes);
    cost.lists += kInRecipe * copies * times;
    if (chunk.before && mode != hints::Mode::kNone) continue;
    double stored = 0;  // times the chunk
    double sent = 0;
    // Of a mode that looks at no other node each holder is one by itself.
    const bool shares = mode == hints::Mode::kCollective;
    const double alone = shares ? 1 : holders;
    if (shares && holders >= copies) {
      stored = copies;
    } else if (in_stripes) {
      stored = alone * (1 + static_cast<double>(way.parities) / way.data);
      sent = alone * (1 + (static_cast<double>(way.parities) - 1) / way.data);
    } else if (shares) {
      stored = copies;
      sent = copies - holders;
    } else {
      stored = alone * copies;
      sent = alone * (copies - 1);
    }
    cost.stored += stored * length;
    cost.sent += sent * length;
    // Of a stripe the nodes with parities list its chunks, too.
    cost.lists += kInIndex * (in_stripes ? alone * (1 + way.parities) : stored);
  }
  const double factor = scale(counted_[size]);
  return {cost.stored * factor, cost.sent * factor, cost.lists * factor};
}

}  // namespace dedup::ctl
