// A block as a recipe has it.
#include <cassert>
#include <map>
#include <string>

#include "base/codec.h"
#include "plan/block.h"
#include "store/format.h"
#include "store/shard.h"

namespace dedup::store {
namespace {

// True if `b` goes on where `a` ends, in the block and in the chunk. Compares placements by index.
bool continues(const Piece& a, const Piece& b) {
  if (a.end() != b.begin || a.is_zero() != b.is_zero()) return false;
  if (a.is_zero()) return true;
  return a.fingerprint == b.fingerprint && a.placement == b.placement &&
         a.chunk_length == b.chunk_length && a.chunk_offset + a.length == b.chunk_offset;
}

// Pieces joined where they continue each other, placements each once, in order of first use.
Block normalised(const Block& block) {
  Block out;
  out.pieces.reserve(block.pieces.size());
  constexpr std::uint32_t kUnused = 0xffffffff;
  std::vector<std::uint32_t> renumbered(block.placements.size(), kUnused);
  std::map<plan::Placement, std::uint32_t> known;
  for (Piece piece : block.pieces) {
    if (!piece.is_zero()) {
      assert(piece.placement < block.placements.size());
      std::uint32_t& number = renumbered[piece.placement];
      if (number == kUnused) {
        const plan::Placement& placement = block.placements[piece.placement];
        const auto next = static_cast<std::uint32_t>(out.placements.size());
        const auto [entry, is_new] = known.emplace(placement, next);
        if (is_new) out.placements.push_back(placement);
        number = entry->second;
      }
      piece.placement = number;
    }
    if (!out.pieces.empty() && continues(out.pieces.back(), piece)) {
      out.pieces.back().length += piece.length;
    } else {
      out.pieces.push_back(piece);
    }
  }
  return out;
}

Status unknown_kind(plan::Placement::Kind kind) {
  return {Code::kVersion, "block of a recipe: chunks are kept in a way (kind " +
                              std::to_string(static_cast<unsigned>(kind)) +
                              ") that this version of the software does not know"};
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
  if (!block.placements.empty() && !plan::Placement::is_known(block.placements.back().kind())) {
    return unknown_kind(block.placements.back().kind());
  }
  if (!in.ok() || !in.at_end()) return format::corrupt("block of a recipe", "damaged");
  return block;
}

}  // namespace dedup::store
