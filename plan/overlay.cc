#include "plan/overlay.h"

#include <algorithm>
#include <iterator>

namespace dedup::plan {

namespace {

LogPiece cut(const LogPiece& piece, std::uint32_t begin, std::uint32_t end) {
  LogPiece part = piece;
  part.begin = std::max(begin, piece.begin);
  part.length = std::min(end, piece.end()) - part.begin;
  part.log_offset += part.begin - piece.begin;
  return part;
}

bool continues(const LogPiece& left, const LogPiece& right) {
  return left.end() == right.begin && left.node == right.node && left.log == right.log &&
         left.log_offset + left.length == right.log_offset;
}

// The bytes that both cover are at one position of one log.
bool same_place(const LogPiece& a, const LogPiece& b) {
  return a.node == b.node && a.log == b.log && a.log_offset - a.begin == b.log_offset - b.begin;
}

}  // namespace

std::vector<Extent> extents_of(std::span<const LogPiece> pieces) {
  std::vector<Extent> extents;
  extents.reserve(pieces.size());
  for (const LogPiece& piece : pieces) extents.push_back({piece.begin, piece.end()});
  return extents;
}

LogOverlay::Pieces::const_iterator LogOverlay::first_after(std::uint32_t position) const {
  auto at = pieces_.upper_bound(position);
  if (at != pieces_.begin() && std::prev(at)->second.end() > position) --at;
  return at;
}

void LogOverlay::insert(const LogPiece& piece) {
  make_room(piece.begin, piece.end());
  LogPiece whole = piece;
  const auto right = pieces_.lower_bound(piece.end());
  if (right != pieces_.end() && continues(whole, right->second)) {
    whole.length += right->second.length;
    pieces_.erase(right);
  }
  const auto behind = pieces_.lower_bound(piece.begin);
  if (behind != pieces_.begin()) {
    LogPiece& left = std::prev(behind)->second;
    if (continues(left, whole)) {
      left.length += whole.length;
      return;
    }
  }
  pieces_.emplace_hint(behind, whole.begin, whole);
}

void LogOverlay::make_room(std::uint32_t begin, std::uint32_t end) {
  auto first = pieces_.lower_bound(begin);
  if (first != pieces_.begin()) {
    LogPiece& left = std::prev(first)->second;
    if (left.end() > begin) {
      if (left.end() > end) pieces_.emplace_hint(first, end, cut(left, end, left.end()));
      left = cut(left, left.begin, begin);
    }
  }
  while (first != pieces_.end() && first->first < end) {
    const LogPiece piece = first->second;
    first = pieces_.erase(first);
    if (piece.end() > end) pieces_.emplace_hint(first, end, cut(piece, end, piece.end()));
  }
}

void LogOverlay::erase(std::uint32_t begin, std::uint32_t end) {
  if (begin < end) make_room(begin, end);
}

void LogOverlay::truncate(std::uint32_t end) {
  pieces_.erase(pieces_.lower_bound(end), pieces_.end());
  if (pieces_.empty()) return;
  LogPiece& last = pieces_.rbegin()->second;
  if (last.end() > end) last = cut(last, last.begin, end);
}

std::vector<Extent> LogOverlay::convert(const LogPiece& piece) {
  std::vector<Extent> converted;
  for (auto at = first_after(piece.begin); at != pieces_.end() && at->first < piece.end(); ++at) {
    if (!same_place(at->second, piece)) continue;
    const LogPiece part = cut(at->second, piece.begin, piece.end());
    if (!converted.empty() && converted.back().end == part.begin) {
      converted.back().end = part.end();
    } else {
      converted.push_back({part.begin, part.end()});
    }
  }
  for (const Extent& extent : converted) erase(extent.begin, extent.end);
  return converted;
}

std::vector<LogPiece> LogOverlay::slice(std::uint32_t begin, std::uint32_t end) const {
  std::vector<LogPiece> parts;
  if (begin >= end) return parts;
  for (auto at = first_after(begin); at != pieces_.end() && at->first < end; ++at) {
    parts.push_back(cut(at->second, begin, end));
  }
  return parts;
}

}  // namespace dedup::plan
