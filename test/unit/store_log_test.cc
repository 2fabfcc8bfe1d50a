#include "store/files/log_file.h"
#include "store/log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::random_bytes;
using test::TempDir;

TEST(Log, IsReadWhileItIsWritten) {
  const TempDir dir;
  test::Random random(1);
  auto writer = LogFileWriter::create(dir / "l", Id128::random(), 3);
  ASSERT_TRUE(writer.is_ok()) << writer.status().message();
  auto reader = LogFileReader::open(dir / "l");
  ASSERT_TRUE(reader.is_ok()) << reader.status().message();
  std::vector<std::pair<std::uint64_t, Bytes>> all;
  std::uint64_t total = 0;
  for (int i = 0; i < 300; ++i) {
    Bytes data = random_bytes(random, test::below(random, 5000));
    const auto offset = (*writer)->append(data);
    ASSERT_TRUE(offset.is_ok());
    total += data.size();
    all.emplace_back(*offset, std::move(data));
    const auto& [at, wanted] = all[test::below(random, all.size())];
    Bytes out(wanted.size());
    ASSERT_TRUE((*reader)->read(at, out).is_ok());
    EXPECT_EQ(out, wanted);
  }
  EXPECT_EQ((*writer)->size(), total);
  EXPECT_EQ((*writer)->number(), 3u);
  EXPECT_TRUE((*writer)->flush().is_ok());
}

TEST(Log, ReadsPartsAndNothingBeyondItsEnd) {
  const TempDir dir;
  test::Random random(2);
  auto writer = LogFileWriter::create(dir / "l", Id128::random(), 0);
  ASSERT_TRUE(writer.is_ok());
  const Bytes data = random_bytes(random, 100);
  const auto offset = (*writer)->append(data);
  ASSERT_TRUE(offset.is_ok());
  auto reader = LogFileReader::open(dir / "l");
  ASSERT_TRUE(reader.is_ok());
  Bytes out(50);
  ASSERT_TRUE((*reader)->read(*offset + 50, out).is_ok());
  EXPECT_TRUE(std::equal(out.begin(), out.end(), data.begin() + 50));
  EXPECT_EQ((*reader)->read(*offset + 51, out).code(), Code::kCorrupt);
  EXPECT_EQ((*reader)->read(~std::uint64_t{0}, out).code(), Code::kCorrupt);
}

TEST(Log, TellsALateReaderThatItWasCleared) {
  const TempDir dir;
  test::Random random(3);
  auto writer = LogFileWriter::create(dir / "l", Id128::random(), 0);
  ASSERT_TRUE(writer.is_ok());
  auto reader = LogFileReader::open(dir / "l");
  ASSERT_TRUE(reader.is_ok());
  const auto old = (*writer)->append(random_bytes(random, 1 << 20));
  ASSERT_TRUE(old.is_ok());
  ASSERT_TRUE((*writer)->clear(LogWriter::Space::kFree).is_ok());
  EXPECT_EQ((*writer)->size(), 0u);
  struct stat s;
  ASSERT_EQ(::stat((dir / "l").c_str(), &s), 0);
  EXPECT_LE(s.st_blocks * 512, 8192);
  Bytes out(1000);
  EXPECT_EQ((*reader)->read(*old, out).code(), Code::kNotFound);
  const Bytes data = random_bytes(random, 1000);
  const auto fresh = (*writer)->append(data);
  ASSERT_TRUE(fresh.is_ok());
  EXPECT_GT(*fresh, *old);
  EXPECT_EQ((*reader)->read(*old, out).code(), Code::kNotFound);
  ASSERT_TRUE((*reader)->read(*fresh, out).is_ok());
  EXPECT_EQ(out, data);
}

TEST(Log, UsesItsSpaceAgain) {
  const TempDir dir;
  test::Random random(5);
  auto writer = LogFileWriter::create(dir / "l", Id128::random(), 0);
  ASSERT_TRUE(writer.is_ok());
  auto reader = LogFileReader::open(dir / "l");
  ASSERT_TRUE(reader.is_ok());
  std::uint64_t last = 0;
  Bytes out(100000);
  for (int round = 0; round < 5; ++round) {
    const Bytes data = random_bytes(random, out.size());
    const auto offset = (*writer)->append(data);
    ASSERT_TRUE(offset.is_ok());
    EXPECT_GT(*offset, last);
    if (round > 0) {
      EXPECT_EQ((*reader)->read(last, out).code(), Code::kNotFound);
    }
    ASSERT_TRUE((*reader)->read(*offset, out).is_ok());
    EXPECT_EQ(out, data);
    last = *offset;
    EXPECT_LE(std::filesystem::file_size(dir / "l"), 200000u);
    ASSERT_TRUE((*writer)->clear(LogWriter::Space::kKeep).is_ok());
    EXPECT_EQ((*writer)->size(), 0u);
    EXPECT_EQ((*reader)->read(last, out).code(), Code::kNotFound);
  }
}

TEST(Log, IsLookedAtWhereItIs) {
  const TempDir dir;
  test::Random random(6);
  auto writer = LogFileWriter::create(dir / "l", Id128::random(), 0);
  ASSERT_TRUE(writer.is_ok());
  for (int round = 0; round < 3; ++round) {
    const Bytes data = random_bytes(random, 50000);
    const auto offset = (*writer)->append(data);
    ASSERT_TRUE(offset.is_ok());
    for (const auto& [from, bytes] :
         {std::pair{0u, 50000u}, {0u, 1u}, {4095u, 4098u}, {49999u, 1u}}) {
      const auto view = (*writer)->view(*offset + from, bytes);
      ASSERT_TRUE(view.is_ok()) << view.status().message();
      ASSERT_EQ(view->bytes().size(), bytes);
      EXPECT_TRUE(std::equal(view->bytes().begin(), view->bytes().end(), data.begin() + from));
    }
    for (const auto& [from, bytes] : {std::pair{0u, 50001u}, {50000u, 1u}, {0u, 0u}}) {
      EXPECT_EQ((*writer)->view(*offset + from, bytes).status().code(), Code::kIo);
    }
    EXPECT_EQ((*writer)->view(*offset - 1, 1).status().code(), Code::kIo);
    EXPECT_EQ((*writer)->view(*offset, ~std::uint64_t{0}).status().code(), Code::kIo);
    ASSERT_TRUE((*writer)->clear(LogWriter::Space::kKeep).is_ok());
  }
}

TEST(Log, IsAsItWasAfterAFailedAppend) {
  const TempDir dir;
  test::Random random(4);
  auto writer = LogFileWriter::create(dir / "l", Id128::random(), 0);
  ASSERT_TRUE(writer.is_ok());
  const Bytes data = random_bytes(random, 6000);
  const auto before = (*writer)->append(data);
  ASSERT_TRUE(before.is_ok());
  {
    const test::FileSizeLimit limit(10000);
    EXPECT_FALSE((*writer)->append(random_bytes(random, 6000)).is_ok());
    EXPECT_EQ((*writer)->size(), 6000u);
  }
  const Bytes more = random_bytes(random, 6000);
  const auto after = (*writer)->append(more);
  ASSERT_TRUE(after.is_ok());
  auto reader = LogFileReader::open(dir / "l");
  ASSERT_TRUE(reader.is_ok());
  Bytes out(6000);
  ASSERT_TRUE((*reader)->read(*before, out).is_ok());
  EXPECT_EQ(out, data);
  ASSERT_TRUE((*reader)->read(*after, out).is_ok());
  EXPECT_EQ(out, more);
}

TEST(Log, RefusesOtherFiles) {
  const TempDir dir;
  ASSERT_TRUE(LogFileWriter::create(dir / "l", Id128::random(), 0).is_ok());
  const Bytes whole = test::get_file(dir / "l");
  const Bytes header(whole.begin(), whole.begin() + 64);
  test::for_each_damage(header, [&](const Bytes& damaged) {
    test::put_file(dir / "d", damaged);
    EXPECT_FALSE(LogFileReader::open(dir / "d").is_ok());
  });
  Bytes newer = whole;
  newer[8] = std::byte{9};
  test::put_file(dir / "l", newer);
  EXPECT_EQ(LogFileReader::open(dir / "l").status().code(), Code::kVersion);
}

}  // namespace
}  // namespace dedup::store
