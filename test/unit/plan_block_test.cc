// Blocks against an array that says of each byte what it consists of.
#include "plan/block.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "base/varint.h"

namespace dedup::plan {
namespace {

// One byte: zero, or a byte of a chunk.
struct Byte {
  std::uint32_t chunk_length = 0;
  std::uint32_t chunk_offset = 0;
  Fingerprint fingerprint;
  Placement placement;
  auto operator<=>(const Byte&) const = default;
};
using Model = std::map<std::uint32_t, Byte>;

constexpr std::uint32_t kSpan = 300;

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  std::uint32_t up_to(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  Placement placement() {
    NodeSet nodes;
    for (NodeIndex n = 0; n < 5; ++n) {
      if (up_to(3) == 0) nodes.push_back(n);
    }
    return Placement::copies_on(nodes);
  }
  // Part of a chunk, or zeros, within [begin, kSpan).
  Piece piece(std::uint32_t begin) {
    Piece piece;
    piece.begin = begin;
    piece.length = 1 + up_to(std::min(kSpan - begin, 50u));
    if (up_to(4) == 0) return piece;
    piece.chunk_offset = up_to(3) * up_to(20);
    piece.chunk_length = piece.chunk_offset + piece.length + up_to(2) * up_to(20);
    piece.fingerprint.bytes[0] = static_cast<std::uint8_t>(up_to(256));
    return piece;
  }
  Block block() {
    Block block;
    for (std::uint32_t begin = up_to(100); begin < kSpan; begin += up_to(2) * up_to(60)) {
      const Piece p = piece(begin);
      insert(block, p, placement());
      begin = p.end();
    }
    return block;
  }
  Extent extent() {
    const std::uint32_t begin = up_to(kSpan);
    return {begin, begin + up_to(kSpan - begin + 1)};
  }

 private:
  std::mt19937 random_;
};

// What the block says of each byte; fails if it is not a proper block.
Model model_of(const Block& block) {
  Model model;
  std::uint32_t end = 0;
  for (const Piece& piece : block.pieces) {
    EXPECT_GE(piece.begin, end);
    EXPECT_GT(piece.length, 0u);
    end = piece.end();
    if (!piece.is_zero()) {
      EXPECT_LE(piece.chunk_offset + piece.length, piece.chunk_length);
      EXPECT_LT(piece.placement, block.placements.size());
    }
    for (std::uint32_t i = 0; i < piece.length; ++i) {
      Byte& byte = model[piece.begin + i];
      if (piece.is_zero()) continue;
      byte = {piece.chunk_length, piece.chunk_offset + i, piece.fingerprint,
              block.placements[piece.placement]};
    }
  }
  EXPECT_LE(end, kBlockSpan);
  return model;
}

void put(Model& model, const Model& above) {
  for (const auto& [at, byte] : above) model[at] = byte;
}

void put(Model& model, const Piece& piece, const Placement& placement) {
  Block block;
  insert(block, piece, placement);
  put(model, model_of(block));
}

template <typename Keep>
Model filtered(const Model& model, Keep&& keep) {
  Model out;
  for (const auto& entry : model) {
    if (keep(entry.first)) out.insert(entry);
  }
  return out;
}

std::vector<Extent> some_extents(Random& random) {
  std::vector<Extent> extents;
  for (std::uint32_t begin = random.up_to(30); begin < kSpan;) {
    const std::uint32_t end = begin + 1 + random.up_to(30);
    extents.push_back({begin, end});
    begin = end + random.up_to(2) * random.up_to(80);
  }
  return extents;
}

bool within(const std::vector<Extent>& extents, std::uint32_t at) {
  for (const Extent& extent : extents) {
    if (at >= extent.begin && at < extent.end) return true;
  }
  return false;
}

std::size_t chunk_sets(const Block& block) {
  std::set<Placement> sets;
  for (const Piece& piece : block.pieces) {
    if (!piece.is_zero()) sets.insert(block.placements[piece.placement]);
  }
  return sets.size();
}

TEST(Block, CutsKeepToTheirChunk) {
  Block block;
  Piece piece;
  piece.begin = 100;
  piece.length = 50;
  piece.chunk_offset = 7;
  piece.chunk_length = 60;
  insert(block, piece, Placement::copies_on({1, 2}));
  Piece zeros;
  zeros.begin = 110;
  zeros.length = 10;
  insert(block, zeros, {});
  ASSERT_EQ(block.pieces.size(), 3u);
  EXPECT_EQ(block.pieces[0].length, 10u);
  EXPECT_EQ(block.pieces[0].chunk_offset, 7u);
  EXPECT_TRUE(block.pieces[1].is_zero());
  EXPECT_EQ(block.pieces[2].begin, 120u);
  EXPECT_EQ(block.pieces[2].chunk_offset, 27u);
  EXPECT_EQ(block.pieces[2].chunk_length, 60u);
}

TEST(Block, LikeAnArrayOfBytes) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    Random random(seed);
    Block block;
    Model model;
    for (int step = 0; step < 600; ++step) {
      const Extent extent = random.extent();
      switch (random.up_to(12)) {
        case 0: {
          Block above = random.block();
          put(model, model_of(above));
          if (random.up_to(2) == 0) {
            underlay(above, std::move(block));
            block = std::move(above);
          } else {
            overlay(block, above);
          }
          break;
        }
        case 1:
          if (random.up_to(5) != 0) break;
          truncate(block, extent.end);
          model = filtered(model, [&](std::uint32_t at) { return at < extent.end; });
          break;
        case 2:
          if (random.up_to(5) != 0) break;
          restrict(block, extent.begin, extent.end);
          model = filtered(model,
                           [&](std::uint32_t at) { return at >= extent.begin && at < extent.end; });
          break;
        case 3:
          erase(block, extent.begin, extent.end);
          model = filtered(model,
                           [&](std::uint32_t at) { return at < extent.begin || at >= extent.end; });
          break;
        case 4: {
          const std::vector<Extent> extents = some_extents(random);
          erase(block, extents);
          model = filtered(model, [&](std::uint32_t at) { return !within(extents, at); });
          break;
        }
        case 5:
          compact_placements(block);
          EXPECT_EQ(block.placements.size(), chunk_sets(block));
          break;
        case 6: {
          const Block part = slice(block, extent.begin, extent.end);
          EXPECT_EQ(model_of(part), filtered(model, [&](std::uint32_t at) {
                      return at >= extent.begin && at < extent.end;
                    }));
          EXPECT_EQ(part.placements.size(), chunk_sets(part));
          break;
        }
        case 7: {
          const std::vector<Extent> extents = some_extents(random);
          const std::vector<Extent> gaps = uncovered(block, extents);
          for (std::uint32_t at = 0; at < kSpan + 100; ++at) {
            EXPECT_EQ(within(gaps, at), within(extents, at) && !model.contains(at)) << at;
          }
          break;
        }
        default: {
          const Piece piece = random.piece(extent.begin);
          const Placement placement = random.placement();
          insert(block, piece, placement);
          put(model, piece, placement);
        }
      }
      ASSERT_EQ(model_of(block), model) << "seed " << seed << ", step " << step;
    }
  }
}

TEST(Block, ManyHolderSetsAreSharedAndDropped) {
  Random random(1);
  Block block;
  Model model;
  for (int round = 0; round < 30; ++round) {
    Block above;
    for (std::uint32_t begin = 0; begin < kSpan; begin += 5) {
      Piece piece;
      piece.begin = begin;
      piece.length = piece.chunk_length = 5;
      const auto placement = Placement::copies_on(
          {static_cast<NodeIndex>(begin % 100), static_cast<NodeIndex>(100 + random.up_to(60))});
      insert(above, piece, placement);
    }
    overlay(block, above);
    put(model, model_of(above));
    ASSERT_EQ(model_of(block), model);
    EXPECT_LE(block.placements.size(), block.pieces.size());
  }
  Block below = block;
  overlay(below, block);
  EXPECT_EQ(below.placements.size(), block.placements.size());
}

TEST(Block, SmallIntoLarge) {
  Block block;
  Model model;
  Random random(5);
  for (std::uint32_t begin = 0; begin < 600; begin += 2) {
    Piece piece;
    piece.begin = begin;
    piece.length = piece.chunk_length = 2;
    insert(block, piece, Placement::copies_on({1}));
  }
  model = model_of(block);
  for (int step = 0; step < 200; ++step) {
    Block above;
    Piece piece = random.piece(random.up_to(kSpan));
    insert(above, piece, random.placement());
    overlay(block, above);
    put(model, model_of(above));
    ASSERT_EQ(model_of(block), model);
  }
}

TEST(ForEachBlock, SplitsAtBlockBorders) {
  struct Part {
    std::uint64_t block;
    std::uint32_t begin, length;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;
  const auto collect = [&](std::uint64_t block, std::uint32_t begin, std::uint32_t length) {
    parts.push_back({block, begin, length});
  };
  const std::uint64_t start = std::uint64_t{5000} * kBlockSpan;
  for_each_block(start + kBlockSpan - 1, kBlockSpan + 3, collect);
  const std::vector<Part> expected{{5000, kBlockSpan - 1, 1}, {5001, 0, kBlockSpan}, {5002, 0, 2}};
  EXPECT_EQ(parts, expected);
  parts.clear();
  for_each_block(start, 0, collect);
  EXPECT_TRUE(parts.empty());
}

TEST(BlockBuilder, LaterPiecesReplaceEarlierOnes) {
  const std::vector<Placement> all{Placement::copies_on({0, 1}), Placement::copies_on({2}),
                                   Placement::copies_on({0, 1})};
  // Watched are the bytes near the borders of blocks: pieces that span two, or three if zeros.
  constexpr std::uint64_t kFirst = 7 * kBlockSpan;
  for (unsigned seed = 0; seed < 10; ++seed) {
    Random random(seed);
    BlockBuilder builder(all);
    std::map<std::uint64_t, std::optional<Byte>> model;
    for (std::uint64_t border = 1; border <= 4; ++border) {
      for (std::uint64_t at = 0; at < 400; ++at) model[kFirst + border * kBlockSpan - 200 + at];
    }
    for (int i = 0; i < 60; ++i) {
      FilePiece piece;
      piece.file_offset = kFirst + (1 + random.up_to(2)) * kBlockSpan - 100 + random.up_to(200);
      piece.length = 1 + random.up_to(60);
      if (random.up_to(3) == 0) {
        if (random.up_to(10) == 0) piece.length += kBlockSpan;
      } else {
        piece.chunk_offset = random.up_to(9);
        piece.chunk_length = piece.chunk_offset + static_cast<std::uint32_t>(piece.length) + 1;
        piece.placement = random.up_to(3);
        piece.fingerprint.bytes[5] = static_cast<std::uint8_t>(i);
      }
      const auto end = model.lower_bound(piece.file_offset + piece.length);
      for (auto at = model.lower_bound(piece.file_offset); at != end; ++at) {
        at->second = Byte{};
        if (piece.chunk_length == 0) continue;
        const auto done = static_cast<std::uint32_t>(at->first - piece.file_offset);
        at->second = Byte{piece.chunk_length, piece.chunk_offset + done, piece.fingerprint,
                          all[piece.placement]};
      }
      builder.add(piece);
    }
    EXPECT_GE(builder.message_size(), 60u * 41);
    std::map<std::uint64_t, Block> blocks;
    std::uint64_t before = 0;
    builder.take([&](std::uint64_t number, Block&& block) {
      EXPECT_GT(number, before);
      before = number;
      EXPECT_LE(block.placements.size(), 2u);
      for (std::size_t i = 1; i < block.pieces.size(); ++i) {
        EXPECT_LE(block.pieces[i - 1].end(), block.pieces[i].begin);
      }
      EXPECT_LE(block.pieces.back().end(), kBlockSpan);
      blocks[number] = std::move(block);
    });
    EXPECT_EQ(builder.message_size(), 0u);
    for (const auto& [at, byte] : model) {
      const auto begin = static_cast<std::uint32_t>(at % kBlockSpan);
      const Model found = model_of(slice(blocks[at / kBlockSpan], begin, begin + 1));
      ASSERT_EQ(found.size(), byte ? 1u : 0u) << at;
      if (!byte) continue;
      ASSERT_EQ(found.begin()->second, *byte) << at;
    }
    builder.take([](std::uint64_t, Block&&) { ADD_FAILURE() << "the builder was not empty"; });
  }
}

// What is counted may take little in a message, and much in memory.
TEST(PlanBlock, ACountAloneAllocatesNoMoreThanPiecesOfChunksCanTake) {
  constexpr std::size_t kBytes = 60000;
  const auto decode = [](std::uint64_t placements, std::uint64_t pieces) {
    Encoder e;
    put_varint(e, placements);
    if (placements == 0) put_varint(e, pieces);
    e.put_raw(Bytes(kBytes, std::byte{0xff}).data(), kBytes);  // neither of them begins so
    Decoder d(e.bytes());
    Block block = Block::decode(d);
    EXPECT_FALSE(d.ok());
    return block;
  };
  EXPECT_LE(decode(0, kBytes).pieces.capacity() * 20, kBytes);
  EXPECT_LE(decode(kBytes, 0).placements.capacity() * sizeof(Placement), kBytes);
  // What is there is decoded all the same: zeros take a byte each.
  Block zeros;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    Piece& piece = zeros.pieces.emplace_back();
    piece.begin = i * 7;
    piece.length = 7;
  }
  Encoder e;
  zeros.encode(e);
  EXPECT_LT(e.size(), 6000u);
  Decoder d(e.bytes());
  const Block block = Block::decode(d);
  EXPECT_TRUE(d.ok() && d.at_end());
  Encoder again;
  block.encode(again);
  EXPECT_EQ(again.bytes(), e.bytes());
}

}  // namespace
}  // namespace dedup::plan
