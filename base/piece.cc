#include "base/piece.h"

#include <algorithm>

#include "base/codec.h"
#include "base/varint.h"

namespace dedup {
namespace {

// A piece's first byte: what follows, and what is as it was with the piece before.
enum Flag : std::uint8_t {
  kZero = 1,      // zeros, no chunk
  kGap = 2,       // does not begin where the piece before ended
  kLength = 4,    // not of the same length as the piece before
  kPart = 8,      // not a whole chunk
  kHolders = 16,  // other holders than the chunk before
  kShort = 32,    // the fingerprint's last twelve bytes are zeros and left out
  kKnownFlags = 63,
};

constexpr std::size_t kShortFingerprint = 20;

bool is_short(const Fingerprint& fingerprint) {
  return std::all_of(fingerprint.bytes.begin() + kShortFingerprint, fingerprint.bytes.end(),
                     [](std::uint8_t b) { return b == 0; });
}

bool is_whole(const Piece& piece) {
  return piece.chunk_offset == 0 && piece.length == piece.chunk_length;
}

void put_nodes(Encoder& out, const NodeSet& nodes) {
  put_varint(out, nodes.size());
  std::uint32_t next = 0;
  for (const NodeIndex node : nodes) {
    put_varint(out, node - next);
    next = node + 1u;
  }
}

NodeSet get_nodes(Decoder& in) {
  NodeSet nodes(get_varint_below(in, in.left() + 1));
  std::uint32_t next = 0;
  for (auto& node : nodes) {
    node = static_cast<NodeIndex>(next + get_varint_below(in, 0x10000 - std::min(next, 0x10000u)));
    next = node + 1u;
  }
  return nodes;
}

void put_piece(Encoder& out, const Piece& piece, const Piece& before, std::uint32_t holders) {
  const bool zero = piece.is_zero();
  const bool part = !zero && !is_whole(piece);
  const bool other_holders = !zero && piece.holders != holders;
  const bool shortened = !zero && is_short(piece.fingerprint);
  unsigned flags = zero ? kZero : 0;
  if (piece.begin != before.end()) flags |= kGap;
  if (piece.length != before.length) flags |= kLength;
  if (part) flags |= kPart;
  if (other_holders) flags |= kHolders;
  if (shortened) flags |= kShort;
  out.put(static_cast<std::uint8_t>(flags));
  if (flags & kGap) put_varint(out, piece.begin - before.end());
  if (flags & kLength) put_varint(out, piece.length);
  if (part) {
    put_varint(out, piece.chunk_offset);
    put_varint(out, piece.chunk_length);
  }
  if (other_holders) put_varint(out, piece.holders);
  if (!zero) {
    out.put_raw(piece.fingerprint.bytes.data(),
                shortened ? kShortFingerprint : piece.fingerprint.bytes.size());
  }
}

// Fails the decoder on a piece that cannot follow `before`.
Piece get_piece(Decoder& in, const Piece& before, std::uint32_t holders, std::size_t sets) {
  Piece piece;
  const auto flags = in.get<std::uint8_t>();
  if ((flags & ~kKnownFlags) != 0) in.fail();
  const auto left = static_cast<std::uint32_t>(kBlockSpan - before.end());
  piece.begin = before.end() + ((flags & kGap) != 0 ? get_varint_below(in, left) : 0);
  piece.length = (flags & kLength) != 0 ? get_varint_below(in, kBlockSpan + 1) : before.length;
  if (piece.length == 0 || piece.length > kBlockSpan - piece.begin) in.fail();
  if ((flags & kZero) != 0) {
    if ((flags & (kPart | kHolders | kShort)) != 0) in.fail();
    return piece;
  }
  piece.chunk_length = piece.length;
  if ((flags & kPart) != 0) {
    piece.chunk_offset = get_varint_below(in, kMaxChunkSize);
    piece.chunk_length = get_varint_below(in, kMaxChunkSize + 1);
  }
  piece.holders = (flags & kHolders) != 0 ? get_varint_below(in, sets) : holders;
  in.get_raw(piece.fingerprint.bytes.data(),
             (flags & kShort) != 0 ? kShortFingerprint : piece.fingerprint.bytes.size());
  if (piece.chunk_length > kMaxChunkSize || piece.holders >= sets ||
      std::uint64_t{piece.chunk_offset} + piece.length > piece.chunk_length) {
    in.fail();
  }
  return piece;
}

}  // namespace

void Block::encode(Encoder& out) const {
  out.bytes().reserve(out.size() + 8 + 36 * pieces.size());
  put_varint(out, holder_sets.size());
  for (const NodeSet& nodes : holder_sets) put_nodes(out, nodes);
  put_varint(out, pieces.size());
  Piece before;
  std::uint32_t holders = 0;
  for (const Piece& piece : pieces) {
    put_piece(out, piece, before, holders);
    before = piece;
    if (!piece.is_zero()) holders = piece.holders;
  }
}

Block Block::decode(Decoder& in) {
  Block block;
  // Every set and every piece takes at least a byte: a count beyond what is left is a lie.
  block.holder_sets.resize(get_varint_below(in, in.left() + 1));
  for (NodeSet& nodes : block.holder_sets) nodes = get_nodes(in);
  block.pieces.resize(get_varint_below(in, in.left() + 1));
  Piece before;
  std::uint32_t holders = 0;
  for (Piece& piece : block.pieces) {
    piece = get_piece(in, before, holders, block.holder_sets.size());
    if (!in.ok()) break;
    before = piece;
    if (!piece.is_zero()) holders = piece.holders;
  }
  return block;
}

}  // namespace dedup
