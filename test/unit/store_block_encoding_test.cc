// Blocks of a recipe as bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "store/shard.h"
#include "test/unit/shard_helpers.h"
#include "test/unit/store_helpers.h"

namespace dedup::store {
namespace {

using plan::Placement;

// What a byte of a block is, independent of how pieces are cut.
struct ByteSource {
  Fingerprint fingerprint;
  std::uint32_t chunk_offset = 0;
  std::uint32_t chunk_length = 0;
  Placement placement;
  bool operator==(const ByteSource&) const = default;
};

std::map<std::uint32_t, ByteSource> sources(const Block& block, std::uint32_t limit) {
  std::map<std::uint32_t, ByteSource> bytes;
  for (const auto& piece : block.pieces) {
    for (std::uint32_t i = 0; i < piece.length && piece.begin + i < limit; ++i) {
      ByteSource& source = bytes[piece.begin + i];
      if (piece.is_zero()) continue;
      source = {piece.fingerprint, piece.chunk_offset + i, piece.chunk_length,
                block.placements[piece.placement]};
    }
  }
  return bytes;
}

bool is_valid(const Block& block) {
  std::uint32_t end = 0;
  for (const auto& piece : block.pieces) {
    if (piece.begin < end || piece.length == 0 || piece.end() > kBlockSpan) return false;
    end = piece.end();
    if (piece.is_zero()) continue;
    if (piece.placement >= block.placements.size() || piece.chunk_length > kMaxChunkSize ||
        piece.chunk_offset + piece.length > piece.chunk_length) {
      return false;
    }
  }
  return std::all_of(block.placements.begin(), block.placements.end(), [](const auto& placement) {
    const NodeSet& nodes = placement.nodes();
    return std::is_sorted(nodes.begin(), nodes.end()) &&
           std::adjacent_find(nodes.begin(), nodes.end()) == nodes.end();
  });
}

TEST(BlockEncoding, KeepsWhatEachByteIs) {
  test::Random random(1);
  for (int i = 0; i < 120; ++i) {
    const Block block = test::random_block(random, i % 2 == 0 ? 20 : 5000);
    ASSERT_TRUE(is_valid(block));
    const auto back = decode_block(encode_block(block));
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    ASSERT_TRUE(is_valid(*back));
    EXPECT_EQ(sources(*back, 20000), sources(block, 20000));
    EXPECT_LE(back->pieces.size(), block.pieces.size());
    EXPECT_EQ(encode_block(*back), encode_block(block));
  }
}

// A message may carry thousands of them: each must not move all those before it.
TEST(BlockEncoding, AppendsManyWithoutMovingThemEachTime) {
  test::Random random(2);
  const Block block = test::random_block(random, 20);
  Encoder out;
  std::size_t moves = 0;
  for (int i = 0; i < 4096; ++i) {
    const std::size_t before = out.bytes().capacity();
    block.encode(out);
    moves += out.bytes().capacity() != before ? 1 : 0;
  }
  EXPECT_LE(moves, 24u);
}

TEST(BlockEncoding, JoinsWhatContinuesAndDropsUnusedSets) {
  test::Random random(2);
  Block block;
  block.placements = {Placement::copies_on({9}), Placement::copies_on({1, 2}),
                      Placement::copies_on({1, 2})};
  const Fingerprint f = test::random_fingerprint(random);
  block.pieces = {
      {0, 100, 0, 0, 0, {}},  {100, 50, 0, 0, 7, {}},   // zeros
      {150, 10, 0, 30, 1, f}, {160, 20, 10, 30, 2, f},  // one chunk
      {180, 30, 0, 30, 1, f},                           // the same again: does not continue it
  };
  const auto back = decode_block(encode_block(block));
  ASSERT_TRUE(back.is_ok());
  ASSERT_EQ(back->pieces.size(), 3u);
  EXPECT_EQ(back->pieces[0].length, 150u);
  EXPECT_EQ(back->pieces[1].length, 30u);
  EXPECT_EQ(back->pieces[2].begin, 180u);
  EXPECT_EQ(back->placements, std::vector{Placement::copies_on({1, 2})});
}

TEST(BlockEncoding, TakesAtMostThirtySixBytesAChunk) {
  test::Random random(3);
  Block block;
  block.placements = {Placement::copies_on({0, 1, 2})};
  for (std::uint32_t i = 0; i < 1024; ++i) {
    block.pieces.push_back({i * 4096, 4096, 0, 4096, 0, test::random_fingerprint(random)});
  }
  EXPECT_LE(encode_block(block).size(), 1024u * 34);
}

// What data repeat within a block is named once.
TEST(BlockEncoding, NamesAFingerprintOnce) {
  test::Random random(5);
  std::vector<Fingerprint> names;
  for (int i = 0; i < 100; ++i) names.push_back(test::random_fingerprint(random));
  names[7] = {};  // of content that nobody knows
  Block block;
  block.placements = {Placement::copies_on({0, 1, 2}), Placement::copies_on({3})};
  for (std::uint32_t i = 0; i < 1024; ++i) {
    if (i % 10 == 9) {
      block.pieces.push_back({i * 4096, 4096, 0, 0, 0, {}});
      continue;
    }
    const std::size_t name = i < names.size() ? i : test::below(random, names.size());
    // One that is kept in two ways, and parts of one.
    block.pieces.push_back(
        {i * 4096, 4096, i % 5 == 0 ? 100u : 0u, 8192, i % 50 == 0 ? 1u : 0u, names[name]});
  }
  Encoder out;
  block.encode(out);
  EXPECT_LE(out.size(), 100 * 38 + 924 * 8);
  Decoder in(out.bytes());
  const Block back = Block::decode(in);
  ASSERT_TRUE(in.ok() && in.at_end());
  ASSERT_EQ(back.pieces.size(), block.pieces.size());
  EXPECT_EQ(sources(back, kBlockSpan / 64), sources(block, kBlockSpan / 64));
  for (std::size_t i = 0; i < block.pieces.size(); ++i) {
    if (block.pieces[i].is_zero()) continue;
    EXPECT_EQ(back.pieces[i].fingerprint, block.pieces[i].fingerprint) << i;
    EXPECT_EQ(back.pieces[i].placement, block.pieces[i].placement) << i;
  }
}

// Whoever has changed a piece has changed what stands for it and for the next of its kind alone.
TEST(BlockEncoding, StaysAsItWasFarFromAChange) {
  test::Random random(6);
  Block block;
  block.placements = {Placement::copies_on({0, 1})};
  std::vector<Fingerprint> names;
  for (int i = 0; i < 50; ++i) names.push_back(test::random_fingerprint(random));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    block.pieces.push_back({i * 4096, 4096, 0, 4096, 0, names[i % names.size()]});
  }
  const Bytes before = encode_block(block);
  block.pieces[500].fingerprint = test::random_fingerprint(random);
  const Bytes after = encode_block(block);
  const auto first = std::mismatch(before.begin(), before.end(), after.begin());
  const auto last = std::mismatch(before.rbegin(), before.rend(), after.rbegin());
  EXPECT_LE((before.end() - first.first) - (last.first - before.rbegin()), 200);
}

TEST(BlockEncoding, RefusesAFingerprintOfNoPiece) {
  // One placement on node 0, and two pieces, of which the second repeats the first.
  Block block;
  block.placements = {Placement::copies_on({0})};
  block.pieces = {{0, 512, 0, 512, 0, {}}, {512, 512, 0, 512, 0, {}}};
  const Bytes sound = encode_block(block);
  ASSERT_EQ(decode_block(sound)->pieces.size(), 2u);
  ASSERT_EQ(sound.back(), std::byte{1});
  for (const unsigned back : {0u, 2u}) {
    Bytes damaged = sound;
    damaged.back() = static_cast<std::byte>(back);
    EXPECT_EQ(decode_block(damaged).status().code(), Code::kCorrupt);
  }
  // Not with a shortened one.
  Bytes both = sound;
  both[both.size() - 2] |= std::byte{32};
  EXPECT_EQ(decode_block(both).status().code(), Code::kCorrupt);
  // Nor of zeros.
  block.pieces = {{0, 512, 0, 0, 0, {}}, {512, 512, 0, 512, 0, {}}};
  Bytes zeros = encode_block(block);
  zeros.resize(zeros.size() - 20);
  zeros.back() = std::byte{64};
  zeros.push_back(std::byte{1});
  EXPECT_EQ(decode_block(zeros).status().code(), Code::kCorrupt);
}

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  for (const unsigned v : values) bytes.push_back(static_cast<std::byte>(v));
  return bytes;
}

// What stores have: copies on nodes are encoded as they were before there were kinds of placements.
TEST(BlockEncoding, ReadsAndWritesTheBytesOfVersion1) {
  Bytes bytes = bytes_of({
      2,
      2,
      0,
      1,
      1,
      0x80,
      4,  // placements: on 0 and 2, and on 512
      3,  // pieces
      4,
      0x80,
      0x20,  // a whole chunk of 4096 bytes
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,  // its name
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      1,
      1 | 2 | 4,
      10,
      100,  // after 10 bytes, 100 zeros
      2 | 4 | 8 | 16 | 32,
      5,
      7,
      1,
      9,  // after 5 bytes, 7 of the 9 bytes of a chunk, from the second
      1,
      9,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,  // the second placement, a name of 20 bytes
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
  });
  const auto block = decode_block(bytes);
  ASSERT_TRUE(block.is_ok()) << block.status().message();
  EXPECT_EQ(block->placements,
            (std::vector{Placement::copies_on({0, 2}), Placement::copies_on({512})}));
  ASSERT_EQ(block->pieces.size(), 3u);
  EXPECT_EQ(block->pieces[0].placement, 0u);
  EXPECT_EQ(block->pieces[0].fingerprint.bytes[31], 1);
  EXPECT_TRUE(block->pieces[1].is_zero());
  EXPECT_EQ(block->pieces[2].placement, 1u);
  EXPECT_EQ(block->pieces[2].begin, 4096u + 10 + 100 + 5);
  EXPECT_EQ(block->pieces[2].fingerprint.bytes[0], 9);
  EXPECT_EQ(encode_block(*block), bytes);
}

TEST(BlockEncoding, NamesAKindOfPlacementThatItDoesNotKnow) {
  // A placement on node 0, and one of kind 5.
  const auto newer = decode_block(bytes_of({2, 1, 0, 0x85, 0x80, 4, 1, 2, 3, 0}));
  ASSERT_EQ(newer.status().code(), Code::kVersion);
  EXPECT_NE(newer.status().message().find("kind 5"), std::string::npos);
  const auto damaged = decode_block(bytes_of({2, 1, 0, 0x80, 0x80, 4, 1, 2, 3, 0}));
  EXPECT_EQ(damaged.status().code(), Code::kCorrupt);
}

TEST(BlockEncoding, HandlesTheExtremes) {
  Block block;
  const auto empty = decode_block(encode_block(block));
  ASSERT_TRUE(empty.is_ok());
  EXPECT_TRUE(empty->empty());
  block.pieces = {{0, static_cast<std::uint32_t>(kBlockSpan), 0, 0, 0, {}}};
  const auto zeros = decode_block(encode_block(block));
  ASSERT_TRUE(zeros.is_ok());
  EXPECT_EQ(zeros->pieces[0].length, kBlockSpan);
  block.placements = {Placement::copies_on({0, 0xffff}), {}};
  block.pieces = {{kBlockSpan - 1, 1, kMaxChunkSize - 1, kMaxChunkSize, 0, {}}};
  const auto last = decode_block(encode_block(block));
  ASSERT_TRUE(last.is_ok());
  EXPECT_EQ(last->pieces[0].chunk_offset, kMaxChunkSize - 1);
  EXPECT_EQ(last->placements[0], Placement::copies_on({0, 0xffff}));
}

// Bytes from anywhere give a valid block or an error.
TEST(BlockEncoding, RefusesWhatCannotBe) {
  test::Random random(4);
  Block block = test::random_block(random, 5000);
  block.pieces.resize(std::min<std::size_t>(block.pieces.size(), 8));
  test::for_each_damage(encode_block(block), [](const Bytes& damaged) {
    const auto back = decode_block(damaged);
    EXPECT_TRUE(!back.is_ok() || is_valid(*back));
  });
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto back = decode_block(test::random_bytes(random, test::below(random, 60)));
    if (back.is_ok()) {
      EXPECT_TRUE(is_valid(*back));
    } else {
      const Code code = back.status().code();
      EXPECT_TRUE(code == Code::kCorrupt || code == Code::kVersion);  // another kind of placement
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000);
  // A count of 2^28 sets in five bytes must not allocate them.
  const Bytes many(5, std::byte{0x80});
  EXPECT_FALSE(decode_block(many).is_ok());
}

}  // namespace
}  // namespace dedup::store
