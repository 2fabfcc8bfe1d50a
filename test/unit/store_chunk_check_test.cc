#include "store/chunk_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/hasher.h"
#include "store/files/segment_file.h"
#include "store/segment.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

// A store with one generation: 20 chunks in each of three segments.
class ChunkCheckTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSegments = 3;
  static constexpr std::uint64_t kChunks = 20;

  void SetUp() override {
    auto opened = Store::open(temp_ / "store", true);
    ASSERT_TRUE(opened.is_ok()) << opened.status().message();
    store_ = std::move(*opened);
    ASSERT_TRUE(store_->create_file(identity_, "/file").is_ok());
    ASSERT_TRUE(store_->begin_attempt(identity_, attempt_).is_ok());
    auto hasher = Hasher::create(DigestKind::kSha256);
    ASSERT_TRUE(hasher.is_ok());
    for (std::uint64_t s = 1; s <= kSegments; ++s) {
      auto writer =
          SegmentFileWriter::create(test::layout_of(*store_).segment(identity_, s), identity_, s);
      ASSERT_TRUE(writer.is_ok());
      for (std::uint64_t i = 0; i < kChunks; ++i) {
        const Bytes data = test::random_bytes(random_, 100 + i);
        const Fingerprint fingerprint = *hasher->hash(data);
        entries_.push_back({fingerprint, *(*writer)->append(fingerprint, data)});
      }
      ASSERT_TRUE((*writer)->write_out().is_ok());
    }
    write_index();
  }

  void write_index() {
    std::filesystem::remove(test::layout_of(*store_).index(identity_, attempt_));
    ASSERT_TRUE(test::write_index(test::layout_of(*store_).index(identity_, attempt_), identity_,
                                  attempt_, entries_, false)
                    .is_ok());
  }

  ChunkCheck check() {
    auto result = check_chunks(*store_, identity_, attempt_);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    return std::move(*result);
  }

  test::TempDir temp_;
  test::Random random_{7};
  Id128 identity_ = test::random_id(random_);
  Id128 attempt_ = test::random_id(random_);
  std::unique_ptr<Store> store_;
  std::vector<IndexEntry> entries_;
};

TEST_F(ChunkCheckTest, FindsASoundStoreSound) {
  const ChunkCheck result = check();
  EXPECT_EQ(result.chunks, kSegments * kChunks);
  EXPECT_EQ(result.bytes, kSegments * (kChunks * 100 + kChunks * (kChunks - 1) / 2));
  EXPECT_TRUE(result.bad.empty());
  EXPECT_TRUE(result.texts.empty());
}

// As in files of which chunks were taken as equal by their SHA-1.
TEST_F(ChunkCheckTest, ReadsChunksThatAreNamedAfterTheirSha1AndSaysSo) {
  auto hasher = Hasher::create(DigestKind::kSha1);
  ASSERT_TRUE(hasher.is_ok());
  auto writer =
      SegmentFileWriter::create(test::layout_of(*store_).segment(identity_, 9), identity_, 9);
  ASSERT_TRUE(writer.is_ok());
  for (int i = 0; i < 5; ++i) {
    const Bytes data = test::random_bytes(random_, 4096);
    const Fingerprint fingerprint = *hasher->hash(data);
    entries_.push_back({fingerprint, *(*writer)->append(fingerprint, data)});
  }
  ASSERT_TRUE((*writer)->write_out().is_ok());
  EXPECT_EQ(check().unproven, 0u);
  write_index();
  const ChunkCheck result = check();
  EXPECT_EQ(result.chunks, kSegments * kChunks + 5);
  EXPECT_EQ(result.unproven, 5u);
  EXPECT_TRUE(result.bad.empty());
}

TEST_F(ChunkCheckTest, PartsShareTheChunks) {
  std::uint64_t chunks = 0;
  for (unsigned part = 0; part < 2; ++part) {
    const auto result = check_chunks(*store_, identity_, attempt_, part, 2);
    ASSERT_TRUE(result.is_ok());
    EXPECT_GT(result->chunks, 0u);
    chunks += result->chunks;
  }
  EXPECT_EQ(chunks, kSegments * kChunks);
}

TEST_F(ChunkCheckTest, FindsAChangedByte) {
  const std::string path = test::layout_of(*store_).segment(identity_, 2);
  Bytes bytes = test::get_file(path);
  bytes[entries_[25].location.offset + kChunkHeaderSize + 3] ^= std::byte{1};
  test::put_file(path, bytes);
  const ChunkCheck result = check();
  ASSERT_EQ(result.bad, std::vector<Fingerprint>{entries_[25].fingerprint});
  ASSERT_EQ(result.texts.size(), 1u);
  EXPECT_NE(result.texts[0].find(path), std::string::npos) << result.texts[0];
  EXPECT_NE(result.texts[0].find("1 of 20"), std::string::npos) << result.texts[0];
}

// As if a chunk was stored under a wrong name: its checksum holds.
TEST_F(ChunkCheckTest, FindsAChunkThatIsNotWhatItIsNamed) {
  auto writer =
      SegmentFileWriter::create(test::layout_of(*store_).segment(identity_, 9), identity_, 9);
  ASSERT_TRUE(writer.is_ok());
  entries_[4].location =
      *(*writer)->append(entries_[4].fingerprint, test::random_bytes(random_, 50));
  ASSERT_TRUE((*writer)->write_out().is_ok());
  write_index();
  const ChunkCheck result = check();
  ASSERT_EQ(result.bad, std::vector<Fingerprint>{entries_[4].fingerprint});
  EXPECT_NE(result.texts[0].find("another content"), std::string::npos) << result.texts[0];
}

TEST_F(ChunkCheckTest, FindsALostAndACutSegment) {
  std::filesystem::remove(test::layout_of(*store_).segment(identity_, 1));
  std::filesystem::resize_file(test::layout_of(*store_).segment(identity_, 3),
                               entries_[50].location.offset + kChunkHeaderSize);
  ChunkCheck result = check();
  EXPECT_EQ(result.chunks, kSegments * kChunks);
  std::vector<Fingerprint> expected;
  for (std::size_t i = 0; i < 20; ++i) expected.push_back(entries_[i].fingerprint);
  for (std::size_t i = 50; i < 60; ++i) expected.push_back(entries_[i].fingerprint);
  std::sort(expected.begin(), expected.end());
  std::sort(result.bad.begin(), result.bad.end());
  EXPECT_EQ(result.bad, expected);
  EXPECT_EQ(result.texts.size(), 2u);
}

TEST_F(ChunkCheckTest, SaysThatAPageOfTheIndexIsDamaged) {
  const std::string path = test::layout_of(*store_).index(identity_, attempt_);
  Bytes bytes = test::get_file(path);
  bytes[4096 + 100] ^= std::byte{1};  // the first page of entries, of one
  test::put_file(path, bytes);
  const ChunkCheck result = check();
  EXPECT_EQ(result.chunks, 0u);
  EXPECT_EQ(result.texts.size(), 1u);
}

TEST_F(ChunkCheckTest, NeedsAnIndex) {
  std::filesystem::remove(test::layout_of(*store_).index(identity_, attempt_));
  EXPECT_EQ(check_chunks(*store_, identity_, attempt_).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace dedup::store
