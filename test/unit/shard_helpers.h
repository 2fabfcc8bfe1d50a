// Recipe shards, for tests.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "plan/block.h"
#include "service/messages/store_node.h"
#include "store/format.h"
#include "store/shard.h"
#include "store/shard_content.h"
#include "test/unit/store_helpers.h"

namespace dedup::test {

inline std::uint32_t below32(Random& random, std::uint64_t bound) {
  return static_cast<std::uint32_t>(below(random, bound));
}

// Pieces of up to `longest` bytes, of every kind.
inline Block random_block(Random& random, std::uint32_t longest) {
  Block block;
  const auto sets = 1 + below(random, 4);
  for (std::uint64_t i = 0; i < sets; ++i) {
    NodeSet nodes;
    for (NodeIndex n = 0; n < 12; ++n) {
      if (below(random, 3) == 0) nodes.push_back(static_cast<NodeIndex>(n * n * 400));
    }
    block.placements.push_back(plan::Placement::copies_on(nodes));
  }
  std::uint32_t at = 0;
  while (at < kBlockSpan && below(random, 300) != 0) {
    if (below(random, 4) == 0) at += below32(random, longest);
    if (at >= kBlockSpan) break;
    Piece piece;
    piece.begin = at;
    piece.length =
        std::min(1 + below32(random, longest), static_cast<std::uint32_t>(kBlockSpan) - at);
    const auto kind = below(random, 10);
    if (kind == 0 && !block.pieces.empty() && !block.pieces.back().is_zero()) {
      // Goes on in the chunk before, as far as that goes.
      const Piece& before = block.pieces.back();
      piece = before;
      piece.begin = at;
      piece.chunk_offset = before.chunk_offset + before.length;
      piece.length = before.chunk_length - piece.chunk_offset;
      if (piece.length == 0 || piece.end() > kBlockSpan) break;
    } else if (kind > 2) {
      piece.fingerprint = random_fingerprint(random);
      if (kind == 3)
        std::fill(piece.fingerprint.bytes.begin() + 20, piece.fingerprint.bytes.end(), 0);
      piece.placement = below32(random, sets);
      piece.length = std::min(piece.length, kMaxChunkSize);
      piece.chunk_length = piece.length;
      if (kind == 4) {
        piece.chunk_length += below32(random, kMaxChunkSize - piece.length + 1);
        piece.chunk_offset = below32(random, piece.chunk_length - piece.length + 1);
      }
    }
    at = piece.end();
    block.pieces.push_back(piece);
  }
  return block;
}

using EncodedBlocks = std::map<std::uint64_t, Bytes>;  // by number

inline store::Digest digest_of(const Id128& identity, const Id128& attempt, std::uint32_t shard,
                               const EncodedBlocks& blocks) {
  store::ShardDigest digest(identity, attempt, shard);
  for (const auto& [number, bytes] : blocks) {
    digest.add(store::summary_of(store::with_checksum(number, bytes)));
  }
  return digest.digest();
}

// A request for all of a shard, its blocks whole.
inline service::PutShard put_of(const Id128& identity, const Id128& attempt, std::uint32_t shard,
                                const EncodedBlocks& blocks) {
  service::PutShard request{identity, attempt, shard, {}, true, true, {}, {}};
  for (const auto& [number, bytes] : blocks) {
    request.blocks.push_back(store::with_checksum(number, bytes));
  }
  return request;
}

// The whole file, as software that knew no donors wrote it, and its digest.
inline std::pair<Bytes, store::Digest> shard_of_version1(const Id128& identity,
                                                         const Id128& attempt, std::uint32_t shard,
                                                         const EncodedBlocks& blocks) {
  Bytes file = store::encode_shard_header(identity, attempt, shard, 1);
  Bytes named = file;
  Encoder table;
  for (const auto& [number, bytes] : blocks) {
    table.put(number);
    table.put(static_cast<std::uint64_t>(file.size()));
    table.put(static_cast<std::uint32_t>(bytes.size()));
    table.put(std::uint32_t{0});
    table.put(store::format::checksum(bytes, number));
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  named.insert(named.end(), table.bytes().begin(), table.bytes().end());
  const store::Digest digest = store::format::sha256(named);
  Encoder footer;
  footer.put_raw("DEDUPEND", 8);
  footer.put(static_cast<std::uint64_t>(file.size()));
  footer.put(static_cast<std::uint64_t>(blocks.size()));
  footer.put_raw(digest.data(), digest.size());
  store::format::put_checksum(footer);
  for (const Encoder* const part : {&table, &footer}) {
    file.insert(file.end(), part->bytes().begin(), part->bytes().end());
  }
  return {file, digest};
}

}  // namespace dedup::test
