// A log that becomes a segment, too (Store::adopt_log).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "store/chunk_header.h"
#include "store/files/log_file.h"
#include "store/files/segment_file.h"
#include "store/log.h"
#include "test/hooks/names.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::random_bytes;
using test::TempDir;

constexpr std::uint64_t kNumber = 3;
constexpr std::size_t kPage = 4096;

class LogSegment : public testing::Test {
 protected:
  void SetUp() override {
    auto log = LogFileWriter::create(log_path(), Id128::random(), kNumber);
    ASSERT_TRUE(log.is_ok()) << log.status().message();
    log_ = std::move(*log);
    if (!has_views()) GTEST_SKIP() << "the kernel cannot bring a log into memory";
  }

  // Linux 5.14 and newer.
  bool has_views() {
    const auto at = log_->append(Bytes(1));
    return at.is_ok() && log_->view(*at, 1).is_ok() && log_->clear(LogWriter::Space::kFree).is_ok();
  }
  std::string log_path() const { return dir_ / "log"; }
  std::string segment_path() const { return dir_ / "segment"; }

  // So many pages of it, in the log's memory.
  LogView append(std::size_t pages) {
    const Bytes data = random_bytes(random_, pages * kPage);
    const auto at = log_->append(data);
    EXPECT_TRUE(at.is_ok());
    auto view = log_->view(*at, data.size());
    EXPECT_TRUE(view.is_ok()) << view.status().message();
    return *std::move(view);
  }
  void adopt() {
    auto adopted = log_->adopt(segment_path());
    ASSERT_TRUE(adopted.is_ok()) << adopted.status().message();
    adopted_ = std::move(*adopted);
  }
  // The i-th page as a single chunk.
  SegmentChunk page(const LogView& view, std::size_t i) {
    const auto data = view.bytes().subspan(i * kPage, kPage);
    return {test::single_name(data, ++names_), data};
  }
  ChunkLocation keep(const SegmentChunk& chunk) {
    ChunkLocation location;
    EXPECT_TRUE(adopted_->append({&chunk, 1}, {&location, 1}).is_ok());
    return location;
  }
  static Status read(const SegmentReader& reader, const SegmentChunk& chunk,
                     const ChunkLocation& location) {
    Bytes out(chunk.data.size());
    DEDUP_TRY(reader.read(location, chunk.fingerprint, out));
    return std::ranges::equal(out, chunk.data) ? Status::ok()
                                               : Status(Code::kInternal, "other bytes");
  }

  const TempDir dir_;
  test::Random random_{1};
  std::uint64_t names_ = 0;
  std::unique_ptr<LogFileWriter> log_;
  std::unique_ptr<AdoptedLog> adopted_;
};

TEST_F(LogSegment, HasChunksWhereTheyStandInTheLog) {
  const LogView view = append(8);
  adopt();
  EXPECT_EQ(adopted_->number(), kNumber);
  EXPECT_FALSE(log_->adopt(dir_ / "other").is_ok()) << "once";
  std::vector<std::pair<SegmentChunk, ChunkLocation>> kept;
  for (const std::size_t i : {1, 2, 5}) {
    const SegmentChunk chunk = page(view, i);
    EXPECT_NE(adopted_->place_of(chunk.data), AdoptedLog::kNowhere);
    kept.emplace_back(chunk, keep(chunk));
    EXPECT_EQ(kept.back().second.segment, kNumber);
    EXPECT_EQ(kept.back().second.offset, adopted_->place_of(chunk.data));
  }
  EXPECT_EQ(kept[1].second.offset, kept[0].second.offset + kPage);
  const auto reader = SegmentFileReader::open(segment_path());
  ASSERT_TRUE(reader.is_ok()) << reader.status().message();
  const auto expect_all = [&] {
    for (const auto& [chunk, location] : kept) {
      EXPECT_TRUE(read(**reader, chunk, location).is_ok());
    }
  };
  expect_all();
  EXPECT_TRUE(adopted_->flush().is_ok());
  // Guesses, of what follows and of what does not.
  std::vector<Fingerprint> names;
  std::vector<Bytes> outs(3, Bytes(kPage));
  std::vector<std::span<std::byte>> spans;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    names.push_back(kept[i].first.fingerprint);
    spans.emplace_back(outs[i]);
  }
  EXPECT_EQ((*reader)->read_following(kept[0].second.offset, names, spans), 2u);
  EXPECT_FALSE((*reader)->group_at(kept[0].second.offset, names[0], kPage));
}

TEST_F(LogSegment, KeepsTheSpaceOfItsChunksAlone) {
  const LogView view = append(64);
  adopt();
  const SegmentChunk first = page(view, 3), second = page(view, 40);
  const ChunkLocation at_first = keep(first), at_second = keep(second);
  const Bytes copy(first.data.begin(), first.data.end());
  const Bytes other(second.data.begin(), second.data.end());
  ASSERT_TRUE(log_->clear(LogWriter::Space::kKeep).is_ok());
  EXPECT_TRUE(log_->has_ended());
  struct stat about = {};
  EXPECT_NE(::stat(log_path().c_str(), &about), 0) << "it is no log any more";
  ASSERT_EQ(::stat(segment_path().c_str(), &about), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(about.st_size), at_second.offset + kPage);
  EXPECT_LE(about.st_blocks * 512, static_cast<std::int64_t>(2 * kPage + 2 * kPage));
  const auto reader = SegmentFileReader::open(segment_path());
  ASSERT_TRUE(reader.is_ok());
  EXPECT_TRUE(read(**reader, {first.fingerprint, copy}, at_first).is_ok());
  EXPECT_TRUE(read(**reader, {second.fingerprint, other}, at_second).is_ok());
  // Whoever has it open may flush it after the log has ended.
  Worker worker;
  EXPECT_TRUE(adopted_->begin_flush(worker).is_ok());
  EXPECT_TRUE(adopted_->end_flush().is_ok());
}

TEST_F(LogSegment, GoesAgainIfNothingStaysInIt) {
  append(4);
  adopt();
  ASSERT_TRUE(log_->clear(LogWriter::Space::kFree).is_ok());
  EXPECT_FALSE(log_->has_ended());
  struct stat about = {};
  EXPECT_NE(::stat(segment_path().c_str(), &about), 0);
  const LogView view = append(4);
  adopted_.reset();
  adopt();
  keep(page(view, 1));
  EXPECT_EQ(::stat(segment_path().c_str(), &about), 0);
}

TEST_F(LogSegment, IsReadAsALogUntilItIsCleared) {
  const Bytes data = random_bytes(random_, 5000);
  const auto at = log_->append(data);
  ASSERT_TRUE(at.is_ok());
  const auto before = LogFileReader::open(log_path());
  const auto view = log_->view(*at, data.size());
  ASSERT_TRUE(view.is_ok());
  adopt();
  const auto after = LogFileReader::open(log_path());
  ASSERT_TRUE(before.is_ok() && after.is_ok());
  keep({test::single_name(view->bytes().first(100), 1), view->bytes().first(100)});
  for (const auto* reader : {&*before, &*after}) {
    Bytes out(data.size());
    EXPECT_TRUE((*reader)->read(*at, out).is_ok());
    EXPECT_EQ(out, data);
  }
  ASSERT_TRUE(log_->clear(LogWriter::Space::kFree).is_ok());
  for (const auto* reader : {&*before, &*after}) {
    Bytes out(data.size());
    EXPECT_EQ((*reader)->read(*at, out).code(), Code::kNotFound);
  }
}

TEST_F(LogSegment, TakesNothingThatDoesNotStandInIt) {
  const LogView view = append(2);
  adopt();
  const Bytes elsewhere = random_bytes(random_, kPage);
  const SegmentChunk chunks[] = {{test::single_name(elsewhere, 1), elsewhere},
                                 {test::content_name(view.bytes()), view.bytes()},
                                 {test::single_name({}, 2), {}}};
  for (const SegmentChunk& chunk : chunks) {
    ChunkLocation location;
    EXPECT_EQ(adopted_->append({&chunk, 1}, {&location, 1}).code(), Code::kArgument);
  }
  EXPECT_EQ(adopted_->place_of(elsewhere), AdoptedLog::kNowhere);
}

// Whoever makes data may make any: what looks like a header in a log is none.
TEST_F(LogSegment, TakesNoDataForAChunkWithAHeader) {
  const Bytes data = random_bytes(random_, 1000);
  const SegmentChunk chunk{test::content_name(data), data};
  Bytes with_header;
  put_number(with_header, 0, 8);  // the salt that the log's header has
  put_name(with_header, chunk);
  put_number(with_header, chunk_checksum(with_header, data), 8);
  with_header.insert(with_header.end(), data.begin(), data.end());
  const auto offset = log_->append(with_header);
  ASSERT_TRUE(offset.is_ok());
  const auto view = log_->view(*offset, with_header.size());
  ASSERT_TRUE(view.is_ok());
  adopt();
  const ChunkLocation place{kNumber, adopted_->place_of(view->bytes()), 1000};
  const auto reader = SegmentFileReader::open(segment_path());
  ASSERT_TRUE(reader.is_ok());
  EXPECT_EQ(read(**reader, chunk, place).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace dedup::store
