#include "store/files/shard_file.h"
#include "store/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using plan::Placement;
using test::below;
using test::TempDir;

std::uint32_t below32(test::Random& random, std::uint64_t bound) {
  return static_cast<std::uint32_t>(below(random, bound));
}

Block random_block(test::Random& random, std::uint32_t longest) {
  Block block;
  const auto sets = 1 + below(random, 4);
  for (std::uint64_t i = 0; i < sets; ++i) {
    NodeSet nodes;
    for (NodeIndex n = 0; n < 12; ++n) {
      if (below(random, 3) == 0) nodes.push_back(static_cast<NodeIndex>(n * n * 400));
    }
    block.placements.push_back(Placement::copies_on(nodes));
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
      piece.fingerprint = test::random_fingerprint(random);
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
  for (int i = 0; i < 300; ++i) {
    const Block block = random_block(random, i % 2 == 0 ? 20 : 5000);
    ASSERT_TRUE(is_valid(block));
    const auto back = decode_block(encode_block(block));
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    ASSERT_TRUE(is_valid(*back));
    EXPECT_EQ(sources(*back, 20000), sources(block, 20000));
    EXPECT_LE(back->pieces.size(), block.pieces.size());
    EXPECT_EQ(encode_block(*back), encode_block(block));
  }
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
  Block block = random_block(random, 5000);
  block.pieces.resize(std::min<std::size_t>(block.pieces.size(), 8));
  test::for_each_damage(encode_block(block), [](const Bytes& damaged) {
    const auto back = decode_block(damaged);
    EXPECT_TRUE(!back.is_ok() || is_valid(*back));
  });
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto back = decode_block(test::random_bytes(random, below(random, 60)));
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

struct ShardFile {
  Id128 identity, attempt;
  std::uint32_t shard = 3;
  Digest digest{};
  std::map<std::uint64_t, Bytes> blocks;

  auto open(const std::string& path) const {
    return ShardFileReader::open(path, identity, attempt, shard, digest);
  }
};

ShardFile write_shard(const std::string& path, test::Random& random, std::size_t blocks,
                      std::size_t pieces) {
  ShardFile file{test::random_id(random), test::random_id(random), 3, {}, {}};
  ShardBuilder builder(file.identity, file.attempt, file.shard);
  Bytes all = builder.header();
  const auto append = [&](const Bytes& bytes) {
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  std::uint64_t number = file.shard;
  for (std::size_t i = 0; i < blocks; ++i) {
    Block block = random_block(random, 5000);
    if (block.pieces.size() > pieces) block.pieces.resize(pieces);
    append(builder.add(number, block));
    file.blocks[number] = encode_block(block);
    number += 10 * (1 + below(random, 3));
  }
  append(builder.finish());
  file.digest = builder.digest();
  test::put_file(path, all);
  return file;
}

TEST(Shard, GivesBackItsBlocks) {
  const TempDir dir;
  test::Random random(5);
  for (const std::size_t blocks : {0, 1, 2, 100}) {
    const ShardFile file = write_shard(dir / "s", random, blocks, 1000);
    auto reader = file.open(dir / "s");
    ASSERT_TRUE(reader.is_ok()) << reader.status().message();
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, bytes] : file.blocks) {
      numbers.push_back(number);
      const auto got = (*reader)->read(number);
      ASSERT_TRUE(got.is_ok());
      EXPECT_EQ(*got, bytes);
      EXPECT_TRUE((*reader)->read(number + 1)->empty());
    }
    EXPECT_EQ((*reader)->block_numbers(), numbers);
    EXPECT_TRUE((*reader)->read(~std::uint64_t{0})->empty());
  }
}

TEST(Shard, NeverGivesWrongBlocks) {
  const TempDir dir;
  test::Random random(6);
  const ShardFile file = write_shard(dir / "s", random, 3, 3);
  test::for_each_file_damage(dir / "s", [&] {
    auto reader = file.open(dir / "s");
    if (!reader.is_ok()) return;
    int failures = 0;
    for (const auto& [number, bytes] : file.blocks) {
      const auto got = (*reader)->read(number);
      if (got.is_ok()) {
        EXPECT_EQ(*got, bytes);
      } else {
        ++failures;
      }
    }
    EXPECT_EQ(failures, 1);
  });
}

TEST(Shard, RefusesOtherShardsAttemptsAndVersions) {
  const TempDir dir;
  test::Random random(7);
  const ShardFile file = write_shard(dir / "s", random, 3, 3);
  for (int field = 0; field < 4; ++field) {
    ShardFile other = file;
    if (field == 0) other.identity = Id128::random();
    if (field == 1) other.attempt = Id128::random();
    if (field == 2) other.shard = 4;
    if (field == 3) other.digest[5] ^= 1;
    EXPECT_EQ(other.open(dir / "s").status().code(), Code::kCorrupt) << field;
  }
  Bytes bytes = test::get_file(dir / "s");
  bytes[8] = std::byte{2};
  test::put_file(dir / "s", bytes);
  EXPECT_EQ(file.open(dir / "s").status().code(), Code::kVersion);
}

}  // namespace
}  // namespace dedup::store
