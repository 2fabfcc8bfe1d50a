#include <algorithm>

#include "base/codec.h"
#include "base/varint.h"
#include "plan/block.h"
#include "plan/cut.h"

namespace dedup {
namespace {

// A piece's first byte: what follows, and what is as it was with the piece before.
enum Flag : std::uint8_t {
  kZero = 1,        // zeros, no chunk
  kGap = 2,         // does not begin where the piece before ended
  kLength = 4,      // not of the same length as the piece before
  kPart = 8,        // not a whole chunk
  kPlacement = 16,  // another placement than that of the chunk before
  kShort = 32,      // the fingerprint's last twelve bytes are zeros and left out
  kRepeated = 64,   // the fingerprint of a piece before
  kKnownFlags = 127,
};

constexpr std::size_t kShortFingerprint = 20;

bool is_short(const Fingerprint& fingerprint) {
  return std::all_of(fingerprint.bytes.begin() + kShortFingerprint, fingerprint.bytes.end(),
                     [](std::uint8_t b) { return b == 0; });
}

bool is_whole(const Piece& piece) {
  return piece.chunk_offset == 0 && piece.length == piece.chunk_length;
}

// For each piece, how many before it the last one of the same fingerprint is; 0 if there is none.
// Counted so, what is far from a change is encoded as before it.
std::vector<std::uint32_t> repeats(const std::vector<Piece>& pieces) {
  std::vector<std::uint32_t> back(pieces.size());
  std::vector<std::uint32_t> last;  // of each fingerprint
  plan::FingerprintTable known;
  known.reset(pieces.size());
  for (std::uint32_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].is_zero()) continue;
    const std::uint32_t number =
        known.find_or_enter(pieces[i].fingerprint, static_cast<std::uint32_t>(last.size()),
                            [&](std::uint32_t one) { return pieces[last[one]].fingerprint; });
    if (number == last.size()) {
      last.push_back(i);
    } else {
      back[i] = i - last[number];
      last[number] = i;
    }
  }
  return back;
}

void put_piece(Encoder& out, const Piece& piece, const Piece& before, std::uint32_t placement,
               std::uint32_t back) {
  const bool zero = piece.is_zero();
  const bool part = !zero && !is_whole(piece);
  const bool other_placement = !zero && piece.placement != placement;
  const bool shortened = !zero && back == 0 && is_short(piece.fingerprint);
  unsigned flags = zero ? kZero : 0;
  if (piece.begin != before.end()) flags |= kGap;
  if (piece.length != before.length) flags |= kLength;
  if (part) flags |= kPart;
  if (other_placement) flags |= kPlacement;
  if (shortened) flags |= kShort;
  if (back != 0) flags |= kRepeated;
  out.put(static_cast<std::uint8_t>(flags));
  if (flags & kGap) put_varint(out, piece.begin - before.end());
  if (flags & kLength) put_varint(out, piece.length);
  if (part) {
    put_varint(out, piece.chunk_offset);
    put_varint(out, piece.chunk_length);
  }
  if (other_placement) put_varint(out, piece.placement);
  if (back != 0) {
    put_varint(out, back);
  } else if (!zero) {
    out.put_raw(piece.fingerprint.bytes.data(),
                shortened ? kShortFingerprint : piece.fingerprint.bytes.size());
  }
}

// Fails the decoder on a piece that cannot follow these.
Piece get_piece(Decoder& in, const std::vector<Piece>& pieces, std::uint32_t placement,
                std::size_t placements) {
  const Piece before = pieces.empty() ? Piece() : pieces.back();
  Piece piece;
  const auto flags = in.get<std::uint8_t>();
  if ((flags & ~kKnownFlags) != 0) in.fail();
  const auto left = static_cast<std::uint32_t>(kBlockSpan - before.end());
  piece.begin = before.end() + ((flags & kGap) != 0 ? get_varint_below(in, left) : 0);
  piece.length = (flags & kLength) != 0 ? get_varint_below(in, kBlockSpan + 1) : before.length;
  if (piece.length == 0 || piece.length > kBlockSpan - piece.begin) in.fail();
  if ((flags & kZero) != 0) {
    if ((flags & (kPart | kPlacement | kShort | kRepeated)) != 0) in.fail();
    return piece;
  }
  piece.chunk_length = piece.length;
  if ((flags & kPart) != 0) {
    piece.chunk_offset = get_varint_below(in, kMaxChunkSize);
    piece.chunk_length = get_varint_below(in, kMaxChunkSize + 1);
  }
  piece.placement = (flags & kPlacement) != 0 ? get_varint_below(in, placements) : placement;
  if ((flags & kRepeated) != 0) {
    const std::uint32_t back = get_varint_below(in, pieces.size() + 1);
    if (back == 0 || (flags & kShort) != 0 || pieces[pieces.size() - back].is_zero()) {
      in.fail();
    } else {
      piece.fingerprint = pieces[pieces.size() - back].fingerprint;
    }
  } else {
    in.get_raw(piece.fingerprint.bytes.data(),
               (flags & kShort) != 0 ? kShortFingerprint : piece.fingerprint.bytes.size());
  }
  if (piece.chunk_length > kMaxChunkSize || piece.placement >= placements ||
      std::uint64_t{piece.chunk_offset} + piece.length > piece.chunk_length) {
    in.fail();
  }
  return piece;
}

}  // namespace

void Block::encode(Encoder& out) const {
  out.make_room(8 + 36 * pieces.size());
  put_varint(out, placements.size());
  for (const plan::Placement& one : placements) one.encode(out);
  put_varint(out, pieces.size());
  const std::vector<std::uint32_t> back = repeats(pieces);
  Piece before;
  std::uint32_t placement = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    put_piece(out, piece, before, placement, back[i]);
    before = piece;
    if (!piece.is_zero()) placement = piece.placement;
  }
}

Block Block::decode(Decoder& in) {
  Block block;
  // Every placement and every piece takes at least a byte: a count beyond what is left is a lie.
  // Nor does a count alone reserve more than pieces of chunks can take.
  const std::uint32_t placements = get_varint_below(in, in.left() + 1);
  block.placements.reserve(in.room_for(placements, sizeof(plan::Placement)));
  while (block.placements.size() < placements) {
    block.placements.push_back(plan::Placement::decode(in));
    if (!in.ok()) return block;
  }
  const std::uint32_t pieces = get_varint_below(in, in.left() + 1);
  block.pieces.reserve(in.room_for(pieces, kShortFingerprint));
  std::uint32_t placement = 0;
  while (block.pieces.size() < pieces) {
    const Piece piece = get_piece(in, block.pieces, placement, block.placements.size());
    if (!in.ok()) break;
    block.pieces.push_back(piece);
    if (!piece.is_zero()) placement = piece.placement;
  }
  return block;
}

}  // namespace dedup
