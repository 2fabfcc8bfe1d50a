// A block as a recipe has it.
#include <cassert>
#include <map>

#include "base/codec.h"
#include "store/format.h"
#include "store/shard.h"

namespace dedup::store {
namespace {

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

}  // namespace

Bytes encode_block(const Block& block) {
  Encoder out;
  normalised(block).encode(out);
  return out.take();
}

Result<Block> decode_block(std::span<const std::byte> bytes) {
  Decoder in(bytes);
  Block block = Block::decode(in);
  if (!in.ok() || !in.at_end()) return format::corrupt("block of a recipe", "damaged");
  return block;
}

}  // namespace dedup::store
