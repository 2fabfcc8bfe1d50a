#include "plan/overlay.h"

#include <algorithm>

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

template <typename Pieces>
auto first_after(Pieces& pieces, std::uint32_t position) {
  return std::partition_point(pieces.begin(), pieces.end(),
                              [&](const LogPiece& piece) { return piece.end() <= position; });
}

template <typename Pieces>
auto first_from(Pieces& pieces, std::uint32_t position) {
  return std::partition_point(pieces.begin(), pieces.end(),
                              [&](const LogPiece& piece) { return piece.begin < position; });
}

}  // namespace

void LogOverlay::insert(const LogPiece& piece) {
  const Position right = make_room(piece.begin, piece.end());
  const bool joins_right = right != pieces_.end() && continues(piece, *right);
  if (right != pieces_.begin() && continues(*(right - 1), piece)) {
    LogPiece& left = *(right - 1);
    left.length += piece.length;
    if (joins_right) {
      left.length += right->length;
      pieces_.erase(right);
    }
  } else if (joins_right) {
    right->begin = piece.begin;
    right->length += piece.length;
    right->log_offset = piece.log_offset;
  } else {
    pieces_.insert(right, piece);
  }
}

LogOverlay::Position LogOverlay::make_room(std::uint32_t begin, std::uint32_t end) {
  if (pieces_.empty() || pieces_.back().end() <= begin) return pieces_.end();
  Position first = first_after(pieces_, begin);
  Position last = first_from(pieces_, end);
  if (first >= last) return first;
  if (first->begin < begin) {
    const LogPiece whole = *first;
    *first = cut(whole, whole.begin, begin);
    ++first;
    if (whole.end() > end) return pieces_.insert(first, cut(whole, end, whole.end()));
  }
  if (first < last && (last - 1)->end() > end) {
    --last;
    *last = cut(*last, end, last->end());
  }
  return pieces_.erase(first, last);
}

void LogOverlay::erase(std::uint32_t begin, std::uint32_t end) {
  if (begin < end) make_room(begin, end);
}

void LogOverlay::truncate(std::uint32_t end) {
  pieces_.erase(first_from(pieces_, end), pieces_.end());
  if (!pieces_.empty() && pieces_.back().end() > end) {
    pieces_.back() = cut(pieces_.back(), pieces_.back().begin, end);
  }
}

std::vector<Extent> LogOverlay::convert(const LogPiece& piece) {
  std::vector<Extent> converted;
  for (auto at = first_after(pieces_, piece.begin); at != pieces_.end() && at->begin < piece.end();
       ++at) {
    if (!same_place(*at, piece)) continue;
    const LogPiece part = cut(*at, piece.begin, piece.end());
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
  for (auto at = first_after(pieces_, begin); at != pieces_.end() && at->begin < end; ++at) {
    parts.push_back(cut(*at, begin, end));
  }
  return parts;
}

}  // namespace dedup::plan
