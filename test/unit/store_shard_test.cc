// Recipe shards as files, and blocks that stay in older ones.
#include "store/files/shard_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "store/files/difference.h"
#include "store/files/layout.h"
#include "store/shard.h"
#include "test/hooks/forwarding_system.h"
#include "test/unit/shard_helpers.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::below;
using test::TempDir;

struct ShardFile {
  Id128 identity, attempt;
  std::uint32_t shard = 3;
  Digest digest{};
  test::EncodedBlocks blocks;

  auto open(const std::string& path) const {
    return ShardFileReader::open(path, attempt, shard, digest);
  }
  ShardBase base() const { return {attempt, digest}; }
};

test::EncodedBlocks random_blocks(test::Random& random, std::size_t blocks, std::size_t pieces) {
  test::EncodedBlocks out;
  std::uint64_t number = 3;
  for (std::size_t i = 0; i < blocks; ++i) {
    Block block = test::random_block(random, 5000);
    if (block.pieces.size() > pieces) block.pieces.resize(pieces);
    out[number] = encode_block(block);
    number += 10 * (1 + below(random, 3));
  }
  return out;
}

// What is as in the base is carried over.
ShardFile write_shard(const std::string& path, test::Random& random, test::EncodedBlocks blocks,
                      const ShardFile* base = nullptr, const std::string& base_path = {}) {
  ShardFile file{base ? base->identity : test::random_id(random),
                 test::random_id(random),
                 3,
                 {},
                 std::move(blocks)};
  std::shared_ptr<const ShardFileReader> reader;
  if (base != nullptr) {
    auto opened = base->open(base_path);
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    if (opened.is_ok()) reader = std::move(*opened);
  }
  auto writer = ShardFileWriter::create(path, file.identity, file.attempt, 3, reader);
  EXPECT_TRUE(writer.is_ok()) << writer.status().message();
  if (!writer.is_ok()) return file;
  for (const auto& [number, bytes] : file.blocks) {
    const auto block = with_checksum(number, bytes);
    const auto is_carried = (*writer)->carry(summary_of(block));
    EXPECT_TRUE(is_carried.is_ok()) << is_carried.status().message();
    if (is_carried.is_ok() && *is_carried) continue;
    EXPECT_TRUE((*writer)->add(block).is_ok());
  }
  EXPECT_TRUE((*writer)->finish().is_ok());
  file.digest = test::digest_of(file.identity, file.attempt, 3, file.blocks);
  return file;
}

void expect_blocks(const ShardFile& file, const std::string& path) {
  auto reader = file.open(path);
  ASSERT_TRUE(reader.is_ok()) << reader.status().message();
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, bytes] : file.blocks) {
    numbers.push_back(number);
    const auto got = (*reader)->read(number);
    ASSERT_TRUE(got.is_ok()) << got.status().message();
    EXPECT_EQ(*got, bytes);
    EXPECT_TRUE((*reader)->read(number + 1)->empty());
  }
  EXPECT_EQ((*reader)->block_numbers(), numbers);
  EXPECT_TRUE((*reader)->read(~std::uint64_t{0})->empty());
}

TEST(Shard, GivesBackItsBlocks) {
  const TempDir dir;
  test::Random random(5);
  for (const std::size_t blocks : {0, 1, 2, 100}) {
    const ShardFile file = write_shard(dir / "s", random, random_blocks(random, blocks, 1000));
    expect_blocks(file, dir / "s");
  }
}

TEST(Shard, TakesBlocksInAnyOrder) {
  const TempDir dir;
  test::Random random(8);
  const auto blocks = random_blocks(random, 20, 100);
  ShardFile file{test::random_id(random), test::random_id(random), 3, {}, blocks};
  file.digest = test::digest_of(file.identity, file.attempt, 3, blocks);
  auto writer = ShardFileWriter::create(dir / "s", file.identity, file.attempt, 3, nullptr);
  ASSERT_TRUE(writer.is_ok());
  for (auto at = blocks.rbegin(); at != blocks.rend(); ++at) {
    ASSERT_TRUE((*writer)->add(with_checksum(at->first, at->second)).is_ok());
  }
  ASSERT_TRUE((*writer)->finish().is_ok());
  expect_blocks(file, dir / "s");
}

// Every byte of the file `damaged`, which belongs to the shard at `path`. In a difference are bits
// that say nothing.
void expect_no_wrong_blocks(const ShardFile& file, const std::string& path,
                            const std::string& damaged, std::size_t most_failures,
                            bool has_differences = false) {
  const Bytes whole = test::get_file(damaged);
  std::size_t failed_points = 0;
  test::for_each_file_damage(damaged, [&] {
    auto reader = file.open(path);
    if (!reader.is_ok()) {
      ++failed_points;
      return;
    }
    std::size_t failures = 0;
    for (const auto& [number, bytes] : file.blocks) {
      const auto got = (*reader)->read(number);
      if (got.is_ok()) {
        EXPECT_EQ(*got, bytes);
      } else {
        ++failures;
      }
    }
    if (path == damaged && !has_differences) {
      EXPECT_EQ(failures, 1u);
    }
    EXPECT_LE(failures, most_failures);
    if (failures > 0) ++failed_points;
  });
  EXPECT_GT(failed_points, 0u);
  test::put_file(damaged, whole);
}

TEST(Shard, NeverGivesWrongBlocks) {
  const TempDir dir;
  test::Random random(6);
  const ShardFile file = write_shard(dir / "s", random, random_blocks(random, 3, 3));
  expect_no_wrong_blocks(file, dir / "s", dir / "s", 1);
}

TEST(Shard, NeverGivesWrongBlocksOfADonor) {
  const TempDir dir;
  test::Random random(6);
  const ShardFile old = write_shard(dir / "old", random, random_blocks(random, 4, 3));
  auto blocks = old.blocks;
  blocks.begin()->second = encode_block(test::random_block(random, 5000));
  const ShardFile file = write_shard(dir / "s", random, blocks, &old, dir / "old");
  const std::string donor = donor_path(dir / "s", old.attempt);
  ASSERT_TRUE(std::filesystem::exists(donor));
  std::filesystem::remove(dir / "old");
  expect_blocks(file, dir / "s");
  expect_no_wrong_blocks(file, dir / "s", donor, 3);
  expect_no_wrong_blocks(file, dir / "s", dir / "s", 1);
}

TEST(Shard, RefusesOtherShardsAttemptsAndVersions) {
  const TempDir dir;
  test::Random random(7);
  const ShardFile file = write_shard(dir / "s", random, random_blocks(random, 3, 3));
  for (int field = 0; field < 3; ++field) {
    ShardFile other = file;
    if (field == 0) other.attempt = Id128::random();
    if (field == 1) other.shard = 4;
    if (field == 2) other.digest[5] ^= 1;
    EXPECT_EQ(other.open(dir / "s").status().code(), Code::kCorrupt) << field;
  }
  Bytes bytes = test::get_file(dir / "s");
  bytes[8] = std::byte{6};
  test::put_file(dir / "s", bytes);
  const Status newer = file.open(dir / "s").status();
  EXPECT_EQ(newer.code(), Code::kVersion);
  EXPECT_NE(newer.message().find("version 6"), std::string::npos) << newer.message();
  EXPECT_NE(newer.message().find("version 5"), std::string::npos) << newer.message();
}

// ---- Blocks that stay ---------------------------------------------------------------------------

class NoSecondNames final : public ForwardingSystem {
 public:
  NoSecondNames() : ForwardingSystem(kernel()) {}
  ~NoSecondNames() override { use_system(before_); }
  int link(const char*, const char*) override {
    errno = EPERM;
    return -1;
  }

 private:
  System& before_ = use_system(*this);
};

// A shard of each generation after the other; each has its directory.
class CarriedBlocks : public testing::Test {
 protected:
  CarriedBlocks() { next(random_blocks(random_, 40, 20)); }

  void next(test::EncodedBlocks blocks, bool with_base = true) {
    const std::string before = path();
    std::filesystem::create_directory(dir_ / std::to_string(++generation_));
    file_ = write_shard(path(), random_, std::move(blocks),
                        generation_ > 1 && with_base ? &file_ : nullptr, before);
  }
  void change(test::EncodedBlocks& blocks, std::size_t which) {
    auto at = blocks.begin();
    std::advance(at, which);
    at->second = encode_block(test::random_block(random_, 5000));
  }
  void drop(unsigned generation) { std::filesystem::remove_all(dir_ / std::to_string(generation)); }
  std::string path() const { return dir_ / std::to_string(generation_) + "/shard-3"; }
  std::string directory() const { return dir_ / std::to_string(generation_); }
  std::size_t names() const {
    const std::filesystem::directory_iterator all(directory());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  std::uint64_t taken() const { return *fs::allocated_below(directory()); }
  static std::uint64_t size_of(const test::EncodedBlocks& blocks) {
    std::uint64_t sum = 0;
    for (const auto& [number, bytes] : blocks) sum += bytes.size();
    return sum;
  }

  TempDir dir_;
  test::Random random_{11};
  unsigned generation_ = 0;
  ShardFile file_;
};

TEST_F(CarriedBlocks, StandInOneFileWhoseNameEachGenerationHas) {
  const std::uint64_t whole = std::filesystem::file_size(path());
  auto blocks = file_.blocks;
  change(blocks, 7);
  auto at = blocks.begin();
  std::advance(at, 7);
  const std::uint64_t changed = at->second.size();
  next(blocks);
  expect_blocks(file_, path());
  EXPECT_EQ(names(), 2u);
  // Header, the block, a donor, the table, the footer.
  EXPECT_EQ(std::filesystem::file_size(path()), 64 + changed + 24 + blocks.size() * 32 + 48);
  EXPECT_LT(std::filesystem::file_size(path()), whole / 4);
  drop(1);
  expect_blocks(file_, path());
  // Unchanged, again: the donor's donor is the donor.
  next(blocks);
  EXPECT_EQ(names(), 3u);
  drop(2);
  expect_blocks(file_, path());
}

TEST_F(CarriedBlocks, AreNotMoreGarbageThanWhatIsUsed) {
  for (int i = 0; i < 300; ++i) {
    auto blocks = file_.blocks;
    const std::uint64_t before = size_of(blocks);
    const std::size_t changes = 1 + below(random_, i % 10 == 0 ? 40 : 4);
    for (std::size_t c = 0; c < changes; ++c) change(blocks, below(random_, blocks.size()));
    next(std::move(blocks));
    if (generation_ > 2) drop(generation_ - 2);
    expect_blocks(file_, path());
    EXPECT_LE(names(), 1 + ShardFileWriter::kMostDonors);
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory())) {
      bytes += entry.file_size();
    }
    // Twice what the base used stays at most, and tables, headers and footers.
    const std::uint64_t tables = (1 + ShardFileWriter::kMostDonors) * (40 * 32 + 400);
    EXPECT_LE(bytes, size_of(file_.blocks) + 2 * before + tables);
  }
}

TEST_F(CarriedBlocks, OfADonorThatIsMostlyUnusedAreCopied) {
  auto blocks = file_.blocks;
  for (std::size_t i = 0; i < 35; ++i) change(blocks, i);
  next(blocks);
  EXPECT_EQ(names(), 2u);
  change(blocks, 0);
  next(blocks);
  drop(1);
  drop(2);
  expect_blocks(file_, path());
  EXPECT_EQ(names(), 2u);  // the second one only
}

TEST_F(CarriedBlocks, AreCopiedWhereFilesHaveNoSecondNames) {
  const NoSecondNames system;
  auto blocks = file_.blocks;
  change(blocks, 3);
  next(blocks);
  EXPECT_EQ(names(), 1u);
  drop(1);
  expect_blocks(file_, path());
}

TEST_F(CarriedBlocks, ThatAreDamagedAreNot) {
  const auto blocks = file_.blocks;
  Bytes bytes = test::get_file(path());
  bytes[70] ^= std::byte{1};
  test::put_file(path(), bytes);
  next(blocks);
  EXPECT_EQ(names(), 2u);
  expect_blocks(file_, path());
  // Also in a donor, and if that is gone.
  for (const auto& entry : std::filesystem::directory_iterator(directory())) {
    if (entry.path() != path()) std::filesystem::remove(entry.path());
  }
  EXPECT_EQ(file_.open(path()).status().code(), Code::kOk);
  next(blocks);
  drop(1);
  drop(2);
  expect_blocks(file_, path());
}

TEST_F(CarriedBlocks, MayBeOfAShardOfVersion1) {
  const auto [bytes, digest] =
      test::shard_of_version1(file_.identity, file_.attempt, 3, file_.blocks);
  test::put_file(path(), bytes);
  file_.digest = digest;
  expect_blocks(file_, path());
  expect_no_wrong_blocks(file_, path(), path(), 1);
  test::put_file(path(), bytes);
  auto blocks = file_.blocks;
  change(blocks, 1);
  next(blocks);
  drop(1);
  EXPECT_EQ(names(), 2u);
  expect_blocks(file_, path());
}

TEST_F(CarriedBlocks, OfADonorOfANewerVersionAreRefusedByName) {
  const auto old = file_;
  auto blocks = file_.blocks;
  change(blocks, 1);
  next(blocks);
  const std::string donor = donor_path(path(), old.attempt);
  Bytes bytes = test::get_file(donor);
  bytes[8] = std::byte{9};
  test::put_file(donor, bytes);
  const auto reader = file_.open(path());
  ASSERT_TRUE(reader.is_ok());
  const Status newer = (*reader)->read(blocks.begin()->first).status();
  EXPECT_EQ(newer.code(), Code::kVersion);
  EXPECT_NE(newer.message().find("version 9"), std::string::npos) << newer.message();
}

// ---- Differences --------------------------------------------------------------------------------

Bytes random_bytes(test::Random& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = std::byte(below(random, 256));
  return bytes;
}

TEST(Difference, GivesBackTheBytes) {
  test::Random random(31);
  DifferenceWriter differences;
  for (const std::size_t size : {0, 1, 100, 34'000, 300'000, 1 << 19}) {
    const Bytes base = random_bytes(random, size);
    Bytes bytes = base;
    for (std::size_t i = 0; i < size / 1000; ++i) bytes[below(random, size)] ^= std::byte{1};
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(size / 2), size < 1 << 19 ? 5 : 0,
                 std::byte{7});
    const auto difference = differences.between(base, bytes, size + 100);
    ASSERT_TRUE(difference) << size;
    EXPECT_LE(difference->size(), size / 8 + 100);
    const auto again = apply_difference(base, *difference, bytes.size());
    ASSERT_TRUE(again.is_ok()) << again.status().message();
    EXPECT_EQ(*again, bytes);
    EXPECT_FALSE(differences.between(base, bytes, difference->size() - 1));
  }
}

TEST(Difference, OfOtherLengthsIsRefused) {
  test::Random random(32);
  const Bytes base = random_bytes(random, 1000);
  DifferenceWriter differences;
  const auto made = differences.between(base, Bytes(base), 1000);
  ASSERT_TRUE(made);
  const Bytes& difference = *made;
  for (const std::size_t size : {std::size_t{0}, std::size_t{999}, std::size_t{1001},
                                 kMostDifferent, kMostDifferent + 1, std::size_t{0xffffffff}}) {
    EXPECT_EQ(apply_difference(base, difference, size).status().code(), Code::kCorrupt) << size;
  }
  EXPECT_EQ(apply_difference(base, {}, 1000).status().code(), Code::kCorrupt);
}

TEST(Difference, IsNotMadeOfWhatIsLong) {
  DifferenceWriter differences;
  const Bytes longer(kMostDifferent + 1);
  EXPECT_FALSE(differences.between(longer, Bytes(10), 1000));
  EXPECT_FALSE(differences.between(Bytes(10), longer, 1000));
}

// Blocks of 300 chunks each, of which some become others.
class ChangedBlocks : public CarriedBlocks {
 protected:
  static constexpr std::size_t kBlocks = 4;
  static constexpr std::uint32_t kChunk = 4096;

  ChangedBlocks() {
    blocks_.resize(kBlocks);
    for (Block& block : blocks_) {
      block.placements.push_back(plan::Placement::copies_on({1, 2}));
      for (std::uint32_t i = 0; i < 300; ++i) {
        block.pieces.push_back(
            {i * kChunk, kChunk, 0, kChunk, 0, test::random_fingerprint(random_)});
      }
    }
    next(encoded(), false);
  }

  test::EncodedBlocks encoded() const {
    test::EncodedBlocks out;
    for (std::size_t b = 0; b < blocks_.size(); ++b) out[3 + 10 * b] = encode_block(blocks_[b]);
    return out;
  }
  void change_chunks(std::size_t block, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto& pieces = blocks_[block].pieces;
      pieces[below(random_, pieces.size())].fingerprint = test::random_fingerprint(random_);
    }
  }
  std::size_t differences() const {
    const auto reader = file_.open(path());
    if (!reader.is_ok()) return 1000;
    const auto& entries = (*reader)->table().entries;
    return static_cast<std::size_t>(std::count_if(
        entries.begin(), entries.end(), [](const auto& entry) { return entry.basis.has_value(); }));
  }
  std::uint64_t own_bytes() const { return std::filesystem::file_size(path()); }

  std::vector<Block> blocks_;
};

TEST_F(ChangedBlocks, StandAsDifferencesToWhatTheyWere) {
  const std::uint64_t whole = own_bytes();
  for (std::size_t b = 0; b < kBlocks; ++b) change_chunks(b, 20);
  next(encoded());
  drop(1);
  EXPECT_EQ(differences(), kBlocks);
  EXPECT_EQ(names(), 2u);
  EXPECT_LT(own_bytes(), whole / 7);
  expect_blocks(file_, path());
  // What is a difference stays so, in a file of its own; another's is to what stands whole.
  change_chunks(1, 10);
  next(encoded());
  drop(2);
  EXPECT_EQ(differences(), kBlocks);
  EXPECT_EQ(names(), 3u);
  EXPECT_LT(own_bytes(), whole / 20);
  expect_blocks(file_, path());
}

TEST_F(ChangedBlocks, StandWholeOnceMostOfThemIsNew) {
  bool was_whole = false;
  bool was_difference = false;
  for (int i = 0; i < 60; ++i) {
    for (std::size_t b = 0; b < kBlocks; ++b) {
      if (below(random_, 4) != 0) change_chunks(b, below(random_, 40));
    }
    next(encoded());
    drop(generation_ - 1);
    expect_blocks(file_, path());
    was_whole |= differences() < kBlocks;
    was_difference |= differences() > 0;
    EXPECT_LE(names(), 1 + ShardFileWriter::kMostDonors);
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory())) {
      bytes += entry.file_size();
    }
    // A block and a difference of half of it; as much that is not used; and tables.
    EXPECT_LE(bytes, 3 * size_of(file_.blocks) + names() * (kBlocks * 64 + 400));
  }
  EXPECT_TRUE(was_whole);
  EXPECT_TRUE(was_difference);
}

TEST_F(ChangedBlocks, MayBeOfAShardOfVersion1) {
  const auto [bytes, digest] =
      test::shard_of_version1(file_.identity, file_.attempt, 3, file_.blocks);
  test::put_file(path(), bytes);
  file_.digest = digest;
  for (std::size_t b = 0; b < kBlocks; ++b) change_chunks(b, 20);
  next(encoded());
  drop(1);
  EXPECT_EQ(differences(), kBlocks);
  expect_blocks(file_, path());
}

TEST_F(ChangedBlocks, StandWholeWhereFilesHaveNoSecondNames) {
  const NoSecondNames system;
  change_chunks(0, 3);
  next(encoded());
  drop(1);
  EXPECT_EQ(names(), 1u);
  EXPECT_EQ(differences(), 0u);
  expect_blocks(file_, path());
}

TEST_F(ChangedBlocks, StandWholeIfWhatTheyWereIsDamaged) {
  Bytes bytes = test::get_file(path());
  bytes[70] ^= std::byte{1};
  test::put_file(path(), bytes);
  for (std::size_t b = 0; b < kBlocks; ++b) change_chunks(b, 3);
  next(encoded());
  EXPECT_EQ(differences(), kBlocks - 1);
  expect_blocks(file_, path());
}

TEST_F(ChangedBlocks, AreNeverWrongWhateverIsDamaged) {
  blocks_.resize(2);
  for (Block& block : blocks_) block.pieces.resize(12);
  next(encoded(), false);
  const auto donor = file_.attempt;
  change_chunks(0, 1);
  next(encoded());
  ASSERT_EQ(differences(), 1u);
  drop(1);
  drop(2);
  expect_no_wrong_blocks(file_, path(), donor_path(path(), donor), 2);
  expect_no_wrong_blocks(file_, path(), path(), 1, true);
}

}  // namespace
}  // namespace dedup::store
