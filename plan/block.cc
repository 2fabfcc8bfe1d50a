#include "plan/block.h"

#include <limits>

namespace dedup::plan {

namespace {

constexpr std::uint32_t kUnset = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kPieceInMessage = 41;  // of a whole chunk; see doc/service.md
constexpr std::size_t kFewPlacements = 16;   // as many are searched one by one
// Above this many pieces below for one above, inserting them one by one beats the linear merge.
constexpr std::size_t kManyMore = 64;

std::uint32_t find_or_add(std::vector<Placement>& all, const Placement& placement) {
  const auto found = std::find(all.begin(), all.end(), placement);
  if (found != all.end()) return static_cast<std::uint32_t>(found - all.begin());
  all.push_back(placement);
  return static_cast<std::uint32_t>(all.size() - 1);
}

// Where each of `from` is in `into`, adding those that are missing and used (those with used[i]).
std::vector<std::uint32_t> intern_all(std::vector<Placement>& into,
                                      const std::vector<Placement>& from,
                                      const std::vector<bool>& used) {
  std::vector<std::uint32_t> positions(from.size(), 0);
  if (from.size() <= kFewPlacements) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (used[i]) positions[i] = find_or_add(into, from[i]);
    }
    return positions;
  }
  std::map<Placement, std::uint32_t> known;
  for (std::size_t i = 0; i < into.size(); ++i) {
    known.emplace(into[i], static_cast<std::uint32_t>(i));
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!used[i]) continue;
    const auto [at, added] = known.emplace(from[i], static_cast<std::uint32_t>(into.size()));
    if (added) into.push_back(from[i]);
    positions[i] = at->second;
  }
  return positions;
}

std::vector<bool> used_placements(std::span<const Piece> pieces, std::size_t placements) {
  std::vector<bool> used(placements, false);
  for (const Piece& piece : pieces) {
    if (!piece.is_zero()) used[piece.placement] = true;
  }
  return used;
}

// The first piece that ends after `position`.
std::vector<Piece>::const_iterator first_after(const std::vector<Piece>& pieces,
                                               std::uint32_t position) {
  return std::partition_point(pieces.begin(), pieces.end(),
                              [&](const Piece& piece) { return piece.end() <= position; });
}

// The first piece that begins at or after `position`.
std::vector<Piece>::const_iterator first_from(const std::vector<Piece>& pieces,
                                              std::uint32_t position) {
  return std::partition_point(pieces.begin(), pieces.end(),
                              [&](const Piece& piece) { return piece.begin < position; });
}

// Puts `middle` (at most one piece, within the range) in the place of all in [begin, end).
void replace(std::vector<Piece>& pieces, std::uint32_t begin, std::uint32_t end,
             const Piece* middle) {
  if (pieces.empty() || pieces.back().end() <= begin) {
    if (middle != nullptr) pieces.push_back(*middle);
    return;
  }
  const auto first = first_after(pieces, begin);
  const auto last = first_from(pieces, end);
  Piece parts[3];
  std::size_t count = 0;
  if (first < last && first->begin < begin) parts[count++] = cut(*first, first->begin, begin);
  if (middle != nullptr) parts[count++] = *middle;
  if (first < last && (last - 1)->end() > end) {
    parts[count++] = cut(*(last - 1), end, (last - 1)->end());
  }
  const auto removed = static_cast<std::size_t>(last - first);
  const auto at = pieces.begin() + (first - pieces.cbegin());
  const std::size_t common = std::min(count, removed);
  std::copy_n(parts, common, at);
  const auto rest = at + static_cast<std::ptrdiff_t>(common);
  if (count > removed) {
    pieces.insert(rest, parts + common, parts + count);
  } else {
    pieces.erase(rest, rest + static_cast<std::ptrdiff_t>(removed - common));
  }
}

// Appends what `pieces` has outside of `extents`, calling between(i) before what lies behind
// extent i.
template <typename Extents, typename Between>
std::vector<Piece> outside(const std::vector<Piece>& pieces, const Extents& extents,
                           std::size_t reserve, Between&& between) {
  std::vector<Piece> out;
  out.reserve(reserve);
  std::size_t next = 0;
  const std::size_t count = extents.size();
  for (const Piece& piece : pieces) {
    std::uint32_t from = piece.begin;
    while (from < piece.end()) {
      while (next < count && extents.end_of(next) <= from) between(out, next++);
      if (next == count || extents.begin_of(next) >= piece.end()) {
        out.push_back(cut(piece, from, piece.end()));
        break;
      }
      if (extents.begin_of(next) > from) out.push_back(cut(piece, from, extents.begin_of(next)));
      from = extents.end_of(next);
    }
  }
  while (next < count) between(out, next++);
  return out;
}

struct PieceExtents {
  const std::vector<Piece>& pieces;
  std::size_t size() const { return pieces.size(); }
  std::uint32_t begin_of(std::size_t i) const { return pieces[i].begin; }
  std::uint32_t end_of(std::size_t i) const { return pieces[i].end(); }
};

struct PlainExtents {
  std::span<const Extent> extents;
  std::size_t size() const { return extents.size(); }
  std::uint32_t begin_of(std::size_t i) const { return extents[i].begin; }
  std::uint32_t end_of(std::size_t i) const { return extents[i].end; }
};

}  // namespace

Piece cut(const Piece& piece, std::uint32_t begin, std::uint32_t end) {
  Piece part = piece;
  part.begin = std::max(begin, piece.begin);
  part.length = std::min(end, piece.end()) - part.begin;
  if (!piece.is_zero()) part.chunk_offset += part.begin - piece.begin;
  return part;
}

// In pieces of a chunk's largest size, each at its chunk's start.
Block unknown_block(std::uint32_t end) {
  Block block;
  if (end == 0) return block;
  block.placements.emplace_back();
  for (std::uint32_t begin = 0; begin < end; begin += kMaxChunkSize) {
    Piece& piece = block.pieces.emplace_back();
    piece.begin = begin;
    piece.length = std::min(kMaxChunkSize, end - begin);
    piece.chunk_length = kMaxChunkSize;
  }
  return block;
}

std::uint64_t unknown_bytes(const Block& block) {
  std::uint64_t sum = 0;
  for (const Piece& piece : block.pieces) sum += piece.is_unknown() ? piece.length : 0;
  return sum;
}

std::uint32_t intern(Block& block, const Placement& placement) {
  return find_or_add(block.placements, placement);
}

void insert(Block& block, Piece piece, const Placement& placement) {
  piece.placement = piece.is_zero() ? 0 : intern(block, placement);
  replace(block.pieces, piece.begin, piece.end(), &piece);
}

void overlay(Block& below, const Block& above) {
  if (above.empty()) return;
  const std::vector<std::uint32_t> numbers = intern_all(
      below.placements, above.placements, used_placements(above.pieces, above.placements.size()));
  const auto moved = [&](Piece piece) {
    piece.placement = piece.is_zero() ? 0 : numbers[piece.placement];
    return piece;
  };
  if (below.pieces.empty() || below.pieces.back().end() <= above.pieces.front().begin) {
    const std::size_t first = below.pieces.size();
    below.pieces.insert(below.pieces.end(), above.pieces.begin(), above.pieces.end());
    for (Piece& piece : std::span(below.pieces).subspan(first)) piece = moved(piece);
  } else if (above.pieces.size() <= below.pieces.size() / kManyMore) {
    for (const Piece& piece : above.pieces) {
      const Piece inserted = moved(piece);
      replace(below.pieces, piece.begin, piece.end(), &inserted);
    }
  } else {
    below.pieces = outside(
        below.pieces, PieceExtents{above.pieces}, below.pieces.size() + above.pieces.size(),
        [&](std::vector<Piece>& out, std::size_t i) { out.push_back(moved(above.pieces[i])); });
  }
  // What was replaced often enough is dropped: more than one a piece is too many.
  if (below.placements.size() > kFewPlacements && below.placements.size() > below.pieces.size()) {
    compact_placements(below);
  }
}

void underlay(Block& above, Block below) {
  overlay(below, above);
  above = std::move(below);
}

void truncate(Block& block, std::uint32_t end) {
  auto& pieces = block.pieces;
  pieces.erase(first_from(pieces, end), pieces.cend());
  if (!pieces.empty() && pieces.back().end() > end) {
    pieces.back() = cut(pieces.back(), pieces.back().begin, end);
  }
  if (pieces.empty()) block.placements.clear();
}

void restrict(Block& block, std::uint32_t begin, std::uint32_t end) {
  truncate(block, end);
  erase(block, 0, begin);
}

void erase(Block& block, std::uint32_t begin, std::uint32_t end) {
  if (begin >= end) return;
  replace(block.pieces, begin, end, nullptr);
  if (block.pieces.empty()) block.placements.clear();
}

void erase(Block& block, std::span<const Extent> extents) {
  if (extents.empty() || block.empty()) return;
  block.pieces = outside(block.pieces, PlainExtents{extents}, block.pieces.size(),
                         [](std::vector<Piece>&, std::size_t) {});
  if (block.pieces.empty()) block.placements.clear();
}

Block slice(const Block& block, std::uint32_t begin, std::uint32_t end) {
  Block part;
  const auto first = first_after(block.pieces, begin);
  const auto last = first_from(block.pieces, end);
  if (begin >= end || first >= last) return part;
  const std::vector<std::uint32_t> numbers =
      intern_all(part.placements, block.placements,
                 used_placements(std::span(first, last), block.placements.size()));
  part.pieces.reserve(static_cast<std::size_t>(last - first));
  for (auto piece = first; piece != last; ++piece) {
    Piece& copy = part.pieces.emplace_back(cut(*piece, begin, end));
    copy.placement = copy.is_zero() ? 0 : numbers[copy.placement];
  }
  return part;
}

std::vector<Extent> uncovered(const Block& block, std::span<const Extent> extents) {
  std::vector<Extent> gaps;
  for (const Extent& extent : extents) {
    std::uint32_t from = extent.begin;
    for (auto piece = first_after(block.pieces, extent.begin);
         piece != block.pieces.end() && piece->begin < extent.end; ++piece) {
      if (piece->begin > from) gaps.push_back({from, piece->begin});
      from = piece->end();
    }
    if (from < extent.end) gaps.push_back({from, extent.end});
  }
  return gaps;
}

void compact_placements(Block& block) {
  std::vector<Placement> kept;
  std::map<Placement, std::uint32_t> known;
  std::vector<std::uint32_t> positions(block.placements.size(), kUnset);
  for (Piece& piece : block.pieces) {
    if (piece.is_zero()) continue;
    std::uint32_t& position = positions[piece.placement];
    if (position == kUnset) {
      Placement& placement = block.placements[piece.placement];
      const auto [at, added] = known.emplace(placement, static_cast<std::uint32_t>(kept.size()));
      if (added) kept.push_back(std::move(placement));
      position = at->second;
    }
    piece.placement = position;
  }
  block.placements = std::move(kept);
}

std::size_t memory_of(const Block& block) {
  std::size_t bytes = sizeof block + block.pieces.capacity() * sizeof(Piece) +
                      block.placements.capacity() * sizeof(Placement);
  for (const Placement& placement : block.placements) bytes += placement.memory();
  return bytes;
}

std::size_t message_size_of(const Block& block) {
  std::size_t bytes = block.pieces.size() * kPieceInMessage;
  for (const Placement& placement : block.placements) bytes += 1 + placement.memory();
  return bytes;
}

void BlockBuilder::add(const FilePiece& piece) {
  std::uint64_t done = 0;
  for_each_block(piece.file_offset, piece.length,
                 [&](std::uint64_t number, std::uint32_t begin, std::uint32_t length) {
                   Building& building = blocks_[number];
                   Piece part;
                   part.begin = begin;
                   part.length = length;
                   part.chunk_length = piece.chunk_length;
                   if (!part.is_zero()) {
                     part.chunk_offset = piece.chunk_offset + static_cast<std::uint32_t>(done);
                     part.fingerprint = piece.fingerprint;
                     const auto [mine, added] = building.numbers.try_emplace(piece.placement, 0);
                     if (added) {
                       mine->second = intern(building.block, placements_[piece.placement]);
                     }
                     part.placement = mine->second;
                   }
                   replace(building.block.pieces, part.begin, part.end(), &part);
                   message_size_ += kPieceInMessage;
                   done += length;
                 });
}

}  // namespace dedup::plan
