// The encoding of one block. doc/format.md describes it byte by byte.
#include <algorithm>
#include <cassert>
#include <map>

#include "base/varint.h"
#include "store/format.h"
#include "store/shard.h"

namespace dedup::store {
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

// True if `b` goes on where `a` ends, in the block and in the chunk. Compares holders by index.
bool continues(const Piece& a, const Piece& b) {
  if (a.end() != b.begin || a.is_zero() != b.is_zero()) return false;
  if (a.is_zero()) return true;
  return a.fingerprint == b.fingerprint && a.holders == b.holders &&
         a.chunk_length == b.chunk_length && a.chunk_offset + a.length == b.chunk_offset;
}

// Pieces joined where they continue each other, holder sets each once, in order of first use.
Block normalised(const Block& block) {
  Block out;
  out.pieces.reserve(block.pieces.size());
  constexpr std::uint32_t kUnused = 0xffffffff;
  std::vector<std::uint32_t> renumbered(block.holder_sets.size(), kUnused);
  std::map<NodeSet, std::uint32_t> known;
  for (Piece piece : block.pieces) {
    if (!piece.is_zero()) {
      assert(piece.holders < block.holder_sets.size());
      std::uint32_t& number = renumbered[piece.holders];
      if (number == kUnused) {
        const NodeSet& nodes = block.holder_sets[piece.holders];
        const auto next = static_cast<std::uint32_t>(out.holder_sets.size());
        const auto [entry, is_new] = known.emplace(nodes, next);
        if (is_new) out.holder_sets.push_back(nodes);
        number = entry->second;
      }
      piece.holders = number;
    }
    if (!out.pieces.empty() && continues(out.pieces.back(), piece)) {
      out.pieces.back().length += piece.length;
    } else {
      out.pieces.push_back(piece);
    }
  }
  return out;
}

void put_nodes(Encoder& out, const NodeSet& nodes) {
  put_varint(out, nodes.size());
  std::uint32_t next = 0;
  for (const NodeIndex node : nodes) {
    assert(node >= next);
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

Bytes encode_block(const Block& block) {
  const Block compact = normalised(block);
  Encoder out;
  out.bytes().reserve(8 + 36 * compact.pieces.size());
  put_varint(out, compact.holder_sets.size());
  for (const auto& nodes : compact.holder_sets) put_nodes(out, nodes);
  put_varint(out, compact.pieces.size());
  Piece before;
  std::uint32_t holders = 0;
  for (const auto& piece : compact.pieces) {
    put_piece(out, piece, before, holders);
    before = piece;
    if (!piece.is_zero()) holders = piece.holders;
  }
  return out.take();
}

Result<Block> decode_block(std::span<const std::byte> bytes) {
  Decoder in(bytes);
  Block block;
  // Every set and every piece takes at least a byte: a count beyond what is left is a lie.
  block.holder_sets.resize(get_varint_below(in, in.left() + 1));
  for (auto& nodes : block.holder_sets) nodes = get_nodes(in);
  block.pieces.resize(get_varint_below(in, in.left() + 1));
  Piece before;
  std::uint32_t holders = 0;
  for (auto& piece : block.pieces) {
    piece = get_piece(in, before, holders, block.holder_sets.size());
    if (!in.ok()) break;
    before = piece;
    if (!piece.is_zero()) holders = piece.holders;
  }
  if (!in.ok() || !in.at_end()) return format::corrupt("block of a recipe", "damaged");
  return block;
}

}  // namespace dedup::store
