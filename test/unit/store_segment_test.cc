#include "store/segment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/hasher.h"
#include "base/piece.h"
#include "store/files/segment_file.h"
#include "store/fs.h"
#include "test/hooks/names.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::random_bytes;
using test::random_fingerprint;
using test::TempDir;

struct Chunk {
  Fingerprint fingerprint;
  Bytes data;
  ChunkLocation location;
};

enum class Named { kStrongly, kAfterFastHash };  // the latter have no header

Chunk make(test::Random& random, std::size_t size, Named named, std::uint64_t number = 7) {
  Chunk chunk{random_fingerprint(random), random_bytes(random, size), {}};
  if (named == Named::kAfterFastHash) {
    chunk.fingerprint = test::single_name(chunk.data, number);
  }
  return chunk;
}

Chunk append(SegmentWriter& writer, test::Random& random, std::size_t size) {
  Chunk chunk = make(random, size, Named::kStrongly);
  const auto location = writer.append(chunk.fingerprint, chunk.data);
  EXPECT_TRUE(location.is_ok()) << location.status().message();
  if (location.is_ok()) chunk.location = *location;
  return chunk;
}

std::vector<Chunk> write_segment(const std::string& path, test::Random& random,
                                 const std::vector<std::size_t>& sizes) {
  auto writer = SegmentFileWriter::create(path, test::random_id(random), 7);
  EXPECT_TRUE(writer.is_ok()) << writer.status().message();
  std::vector<Chunk> chunks;
  for (const auto size : sizes) chunks.push_back(append(**writer, random, size));
  EXPECT_TRUE((*writer)->flush().is_ok());
  return chunks;
}

void append_together(SegmentWriter& writer, std::span<Chunk> chunks) {
  std::vector<SegmentChunk> what;
  std::vector<ChunkLocation> locations(chunks.size());
  for (const Chunk& chunk : chunks) what.push_back({chunk.fingerprint, chunk.data});
  const Status status = writer.append(what, locations);
  EXPECT_TRUE(status.is_ok()) << status.message();
  for (std::size_t i = 0; i < chunks.size(); ++i) chunks[i].location = locations[i];
}

// The segment has these chunks, where they say, and no others.
void expect_all(const std::string& path, std::span<const Chunk> chunks) {
  const auto reader = SegmentFileReader::open(path);
  ASSERT_TRUE(reader.is_ok()) << reader.status().message();
  for (const auto& chunk : chunks) {
    Bytes out(chunk.data.size());
    const Status status = (*reader)->read(chunk.location, chunk.fingerprint, out);
    ASSERT_TRUE(status.is_ok()) << status.message();
    ASSERT_EQ(out, chunk.data);
  }
  std::size_t i = 0;
  const Status status = (*reader)->scan([&](const Fingerprint& f, const ChunkLocation& location) {
    ASSERT_LT(i, chunks.size());
    EXPECT_EQ(f, chunks[i].fingerprint);
    EXPECT_EQ(location, chunks[i].location);
    ++i;
  });
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(i, chunks.size());
}

// Chunks of both kinds in one segment, in runs of many sizes.
std::vector<Chunk> write_mixed(const std::string& path, test::Random& random, std::size_t count,
                               std::size_t most_bytes) {
  std::vector<Chunk> chunks;
  Named named = Named::kAfterFastHash;
  std::uint64_t number = ~std::uint64_t{0} - 50;
  for (std::size_t i = 0; i < count; ++i) {
    if (test::below(random, 4) == 0) {
      named = test::below(random, 2) == 0 ? Named::kStrongly : Named::kAfterFastHash;
    }
    chunks.push_back(make(random, 1 + test::below(random, most_bytes), named, number));
    if (test::below(random, 20) != 0) ++number;
  }
  auto writer = SegmentFileWriter::create(path, test::random_id(random), 7);
  EXPECT_TRUE(writer.is_ok()) << writer.status().message();
  for (std::size_t begin = 0, end; begin < count; begin = end) {
    end = std::min(count, begin + 1 + test::below(random, 2 * kRunChunks));
    append_together(**writer, std::span(chunks).subspan(begin, end - begin));
  }
  EXPECT_TRUE((*writer)->flush().is_ok());
  return chunks;
}

TEST(Segment, GivesBackWhatWasAppended) {
  const TempDir dir;
  test::Random random(1);
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 900; ++i) {
    const std::size_t bound[] = {100, 4096, 4096, 200 << 10, kMaxChunkSize};
    sizes.push_back(1 +
                    test::below(random, i % 50 == 0 ? bound[4] : bound[test::below(random, 4)]));
  }
  sizes.push_back(kMaxChunkSize);
  const auto chunks = write_segment(dir / "s", random, sizes);
  for (const auto& chunk : chunks) EXPECT_EQ(chunk.location.segment, 7u);
  expect_all(dir / "s", chunks);
}

TEST(Segment, SealsGoWithChunksWhereverTheyGo) {
  const TempDir dir;
  test::Random random(9);
  std::vector<Chunk> chunks = {make(random, 700, Named::kStrongly),
                               make(random, 900, Named::kAfterFastHash)};
  auto writer = SegmentFileWriter::create(dir / "s", test::random_id(random), 7);
  ASSERT_TRUE(writer.is_ok());
  append_together(**writer, chunks);
  ASSERT_TRUE((*writer)->flush().is_ok());
  const auto reader = SegmentFileReader::open(dir / "s");
  ASSERT_TRUE(reader.is_ok());
  for (Chunk& chunk : chunks) {
    Bytes out(chunk.data.size());
    ChunkSeal seal;
    ASSERT_TRUE((*reader)->read(chunk.location, chunk.fingerprint, out, {&seal, 1}).is_ok());
    EXPECT_TRUE(holds(seal, {chunk.fingerprint, out}));
    EXPECT_TRUE(holds(seal_of({chunk.fingerprint, chunk.data}), {chunk.fingerprint, out}));
    for (std::byte& byte : out) {
      byte ^= std::byte{16};
      EXPECT_FALSE(holds(seal, {chunk.fingerprint, out}));
      EXPECT_FALSE(holds(seal_of({chunk.fingerprint, chunk.data}), {chunk.fingerprint, out}));
      byte ^= std::byte{16};
    }
    EXPECT_FALSE(holds(seal, {random_fingerprint(random), out}));
  }
}

// Runs of any size, small and large chunks, with and without an early start of writing back.
TEST(Segment, RunsAreWrittenAsTheirChunksOneByOne) {
  const TempDir dir;
  test::Random random(11);
  const Id128 identity = test::random_id(random);
  auto single = SegmentFileWriter::create(dir / "single", identity, 3);
  auto runs = SegmentFileWriter::create(dir / "runs", identity, 3);
  ASSERT_TRUE(single.is_ok() && runs.is_ok());
  Worker disk;
  std::vector<Chunk> all;
  for (const std::size_t count : {0u, 1u, 2u, 7u, 511u, 512u, 513u, 1500u, 3u}) {
    std::vector<Bytes> data;
    std::vector<SegmentChunk> run;
    for (std::size_t i = 0; i < count; ++i) {
      data.push_back(random_bytes(random, 1 + test::below(random, count < 8 ? 400 << 10 : 5000)));
    }
    for (const Bytes& bytes : data) run.push_back({random_fingerprint(random), bytes});
    std::vector<ChunkLocation> locations(count);
    const Status status = (*runs)->append(run, locations);
    ASSERT_TRUE(status.is_ok()) << status.message();
    if (count % 2 == 1) (*runs)->start_write_back(disk);
    for (std::size_t i = 0; i < count; ++i) {
      const auto location = (*single)->append(run[i].fingerprint, run[i].data);
      ASSERT_TRUE(location.is_ok()) << location.status().message();
      EXPECT_EQ(*location, locations[i]);
      all.push_back({run[i].fingerprint, data[i], *location});
    }
  }
  ASSERT_TRUE((*single)->flush().is_ok());
  ASSERT_TRUE((*runs)->begin_flush(disk).is_ok() && (*runs)->begin_flush(disk).is_ok());
  EXPECT_TRUE((*runs)->end_flush().is_ok() && (*runs)->end_flush().is_ok());
  // All but the salt is the same.
  expect_all(dir / "single", all);
  expect_all(dir / "runs", all);
  EXPECT_EQ(std::filesystem::file_size(dir / "single"), std::filesystem::file_size(dir / "runs"));
}

TEST(Segment, FindsBothKindsOfChunks) {
  const TempDir dir;
  test::Random random(12);
  const auto chunks = write_mixed(dir / "s", random, 3000, 3000);
  expect_all(dir / "s", chunks);
  std::uint64_t bytes = 0;
  for (const auto& chunk : chunks) {
    bytes += stored_size(chunk.fingerprint, chunk.location.length);
  }
  EXPECT_LE(bytes, std::filesystem::file_size(dir / "s"));
}

TEST(Segment, ChunksWithoutHeadersTouchEachOther) {
  const TempDir dir;
  test::Random random(13);
  auto writer = SegmentFileWriter::create(dir / "s", test::random_id(random), 7);
  ASSERT_TRUE(writer.is_ok());
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 100; ++i) {
    chunks.push_back(make(random, 4096, Named::kAfterFastHash, i));
  }
  append_together(**writer, chunks);
  EXPECT_EQ((*writer)->size(), 64u + 24u + 100u * (kGroupEntrySize + 4096u));
  Bytes all;
  for (const Chunk& chunk : chunks) {
    EXPECT_EQ(chunk.location.offset, chunks[0].location.offset + all.size());
    all.insert(all.end(), chunk.data.begin(), chunk.data.end());
  }
  ASSERT_TRUE((*writer)->write_out().is_ok());
  const Bytes file = test::get_file(dir / "s");
  EXPECT_EQ(all, Bytes(file.end() - 100 * 4096, file.end()));
}

// Whoever knows where a chunk is does not need the list; whoever walks the segment does.
TEST(Segment, NeverGivesWrongBytesOfChunksWithoutHeaders) {
  const TempDir dir;
  test::Random random(14);
  auto writer = SegmentFileWriter::create(dir / "s", test::random_id(random), 7);
  ASSERT_TRUE(writer.is_ok());
  std::vector<Chunk> chunks = {make(random, 30, Named::kAfterFastHash, 1),
                               make(random, 1, Named::kAfterFastHash, 2),
                               make(random, 20, Named::kStrongly)};
  append_together(**writer, chunks);
  ASSERT_TRUE((*writer)->write_out().is_ok());
  test::for_each_file_damage(dir / "s", [&] {
    const auto reader = SegmentFileReader::open(dir / "s");
    if (!reader.is_ok()) return;
    for (const auto& chunk : chunks) {
      Bytes out(chunk.data.size());
      const Status status = (*reader)->read(chunk.location, chunk.fingerprint, out);
      EXPECT_TRUE(status.is_ok() || status.code() == Code::kCorrupt);
      const bool given = out == chunk.data;
      if (is_single(chunk.fingerprint)) {
        EXPECT_EQ(status.is_ok(), given) << status.message();
      } else {
        EXPECT_TRUE(given || !status.is_ok());
      }
    }
    std::size_t sound = 0;
    const Status status = (*reader)->scan([&](const Fingerprint& f, const ChunkLocation& l) {
      ++sound;
      EXPECT_TRUE(std::ranges::any_of(
          chunks, [&](const Chunk& c) { return c.fingerprint == f && c.location == l; }));
    });
    EXPECT_TRUE(status.is_ok() || status.code() == Code::kCorrupt);
    EXPECT_LT(sound, chunks.size());
  });
}

TEST(Segment, ReadsRunsWithGaps) {
  const TempDir dir;
  test::Random random(2);
  const auto chunks = write_mixed(dir / "s", random, 2000, 600);
  auto reader = SegmentFileReader::open(dir / "s");
  ASSERT_TRUE(reader.is_ok());
  for (int gaps = 0; gaps < 4; ++gaps) {
    std::vector<ChunkLocation> locations;
    std::vector<Fingerprint> fingerprints;
    std::vector<Bytes> got, wanted;
    for (const auto& chunk : chunks) {
      if (gaps != 0 && test::below(random, 10 * static_cast<unsigned>(gaps)) == 0) continue;
      locations.push_back(chunk.location);
      fingerprints.push_back(chunk.fingerprint);
      got.emplace_back(chunk.data.size());
      wanted.push_back(chunk.data);
    }
    const std::vector<std::span<std::byte>> outs(got.begin(), got.end());
    const Status status = (*reader)->read_run(locations, fingerprints, outs);
    ASSERT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(got, wanted);
  }
}

TEST(Segment, FollowsChunksAsFarAsTheyStand) {
  const TempDir dir;
  test::Random random(4);
  const auto chunks = write_segment(dir / "s", random, std::vector<std::size_t>(1200, 50));
  auto reader = SegmentFileReader::open(dir / "s");
  ASSERT_TRUE(reader.is_ok());
  const auto follow = [&](std::size_t first, std::size_t count, std::size_t other) {
    std::vector<Fingerprint> fingerprints;
    std::vector<Bytes> got(count, Bytes(50));
    for (std::size_t i = first; i < first + count; ++i) {
      fingerprints.push_back(i == other || i >= chunks.size() ? random_fingerprint(random)
                                                              : chunks[i].fingerprint);
    }
    const std::size_t done =
        (*reader)->read_following(chunks[first].location.offset, fingerprints,
                                  std::vector<std::span<std::byte>>(got.begin(), got.end()));
    for (std::size_t i = 0; i < done; ++i) EXPECT_EQ(got[i], chunks[first + i].data);
    return done;
  };
  EXPECT_EQ(follow(0, chunks.size(), SIZE_MAX), chunks.size());
  EXPECT_EQ(follow(100, 0, SIZE_MAX), 0u);
  for (const std::size_t other :
       std::initializer_list<std::size_t>{100, 101, 99 + kRunChunks, 100 + kRunChunks, 1100}) {
    EXPECT_EQ(follow(100, 1100, other), other - 100);
  }
  EXPECT_EQ(follow(1199, 2, SIZE_MAX), 1u);
  EXPECT_EQ(follow(1100, 300, SIZE_MAX), 100u);
  // Cut off in the middle of a chunk, and in a header.
  std::filesystem::resize_file(dir / "s", chunks[50].location.offset + kChunkHeaderSize + 49);
  EXPECT_EQ(follow(0, 100, SIZE_MAX), 50u);
  std::filesystem::resize_file(dir / "s", chunks[50].location.offset + kChunkHeaderSize - 1);
  EXPECT_EQ(follow(0, 100, SIZE_MAX), 50u);
  EXPECT_EQ(follow(0, 50, SIZE_MAX), 50u);
}

TEST(Segment, ReadsNoSpoiledChunk) {
  const TempDir dir;
  test::Random random(5);
  const auto chunks = write_segment(dir / "s", random, {100, 200, 300});
  auto reader = SegmentFileReader::open(dir / "s");
  ASSERT_TRUE(reader.is_ok());
  ASSERT_TRUE(spoil_chunk(dir / "s", chunks[1].location).is_ok());
  for (const std::size_t i : {0u, 1u, 2u}) {
    Bytes out(chunks[i].data.size());
    const Status status = (*reader)->read(chunks[i].location, chunks[i].fingerprint, out);
    EXPECT_EQ(status.code(), i == 1 ? Code::kCorrupt : Code::kOk) << i;
  }
  std::size_t sound = 0;
  const Status scanned =
      (*reader)->scan([&](const Fingerprint&, const ChunkLocation&) { ++sound; });
  EXPECT_TRUE(scanned.is_ok()) << "what follows is found";
  EXPECT_EQ(sound, 2u);
  EXPECT_EQ(spoil_chunk(dir / "none", chunks[1].location).status().code(), Code::kNoSuchFile);
}

TEST(Segment, ReadsWhatWasWrittenOutBeforeAFlush) {
  const TempDir dir;
  test::Random random(3);
  auto writer = SegmentFileWriter::create(dir / "s", Id128::random(), 0);
  ASSERT_TRUE(writer.is_ok());
  ASSERT_TRUE((*writer)->write_out().is_ok());
  auto reader = SegmentFileReader::open(dir / "s");
  ASSERT_TRUE(reader.is_ok()) << reader.status().message();
  const auto chunk = append(**writer, random, 1000);
  Bytes out(1000);
  EXPECT_EQ((*reader)->read(chunk.location, chunk.fingerprint, out).code(), Code::kCorrupt);
  ASSERT_TRUE((*writer)->write_out().is_ok());
  EXPECT_TRUE((*reader)->read(chunk.location, chunk.fingerprint, out).is_ok());
  EXPECT_EQ(out, chunk.data);
  EXPECT_EQ((*writer)->size(), 64u + kChunkHeaderSize + 1000u);
}

TEST(Segment, NeverGivesWrongBytes) {
  const TempDir dir;
  test::Random random(4);
  const auto chunks = write_segment(dir / "s", random, {40, 1, 100});
  test::for_each_file_damage(dir / "s", [&] {
    int failures = 0;
    auto reader = SegmentFileReader::open(dir / "s");
    if (!reader.is_ok()) {
      EXPECT_TRUE(reader.status().code() == Code::kCorrupt ||
                  reader.status().code() == Code::kVersion);
      return;
    }
    for (const auto& chunk : chunks) {
      Bytes out(chunk.data.size());
      const Status status = (*reader)->read(chunk.location, chunk.fingerprint, out);
      if (status.is_ok()) {
        EXPECT_EQ(out, chunk.data);
      } else {
        EXPECT_EQ(status.code(), Code::kCorrupt);
        ++failures;
      }
    }
    EXPECT_GE(failures, 1);
    std::size_t sound = 0;
    const Status status = (*reader)->scan([&](const Fingerprint& f, const ChunkLocation& l) {
      ++sound;
      bool known = false;
      for (const auto& chunk : chunks) known |= chunk.fingerprint == f && chunk.location == l;
      EXPECT_TRUE(known);
    });
    EXPECT_TRUE(status.is_ok() || status.code() == Code::kCorrupt);
    EXPECT_LT(sound, chunks.size());
  });
}

TEST(Segment, RefusesImpossibleLocations) {
  const TempDir dir;
  test::Random random(5);
  const auto chunks = write_segment(dir / "s", random, {100, 100});
  auto reader = SegmentFileReader::open(dir / "s");
  ASSERT_TRUE(reader.is_ok());
  Bytes out(100);
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{65}, std::uint64_t{1} << 40,
                                     ~std::uint64_t{0}, (~std::uint64_t{0} >> 1) - 10}) {
    EXPECT_EQ((*reader)->read({7, offset, 100}, chunks[0].fingerprint, out).code(), Code::kCorrupt);
  }
  EXPECT_EQ((*reader)->read(chunks[0].location, chunks[1].fingerprint, out).code(), Code::kCorrupt);
  EXPECT_EQ((*reader)->read({7, 64, 99}, chunks[0].fingerprint, out).code(), Code::kArgument);
  Bytes shorter(99);
  EXPECT_EQ((*reader)->read({7, 64, 99}, chunks[0].fingerprint, shorter).code(), Code::kCorrupt);
}

TEST(Segment, RefusesANewerVersionAndOtherFiles) {
  const TempDir dir;
  test::Random random(6);
  write_segment(dir / "s", random, {10});
  Bytes bytes = test::get_file(dir / "s");
  bytes[8] = std::byte{4};
  test::put_file(dir / "s", bytes);
  const auto newer = SegmentFileReader::open(dir / "s");
  ASSERT_EQ(newer.status().code(), Code::kVersion);
  EXPECT_NE(newer.status().message().find("newer version of dedup"), std::string::npos);
  EXPECT_NE(newer.status().message().find("version 4"), std::string::npos);
  EXPECT_NE(newer.status().message().find("version 3"), std::string::npos);
  bytes[8] = std::byte{1};
  test::put_file(dir / "s", bytes);
  const auto older = SegmentFileReader::open(dir / "s");
  ASSERT_EQ(older.status().code(), Code::kVersion);
  EXPECT_NE(older.status().message().find("older version of dedup"), std::string::npos);
  test::put_file(dir / "text", random_bytes(random, 500));
  EXPECT_EQ(SegmentFileReader::open(dir / "text").status().code(), Code::kCorrupt);
  EXPECT_EQ(SegmentFileReader::open(dir / "none").status().code(), Code::kNoSuchFile);
}

TEST(Segment, IsCreatedOnceAndPrivate) {
  const TempDir dir;
  const mode_t before = ::umask(0);
  ASSERT_TRUE(SegmentFileWriter::create(dir / "s", Id128::random(), 0).is_ok());
  ::umask(0277);
  ASSERT_TRUE(SegmentFileWriter::create(dir / "t", Id128::random(), 0).is_ok());
  ::umask(before);
  for (const char* name : {"s", "t"}) {
    struct stat s;
    ASSERT_EQ(::stat((dir / name).c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 07777, 0600u);
  }
  EXPECT_EQ(SegmentFileWriter::create(dir / "s", Id128::random(), 0).status().code(),
            Code::kFileExists);
}

TEST(Segment, RefusesImpossibleChunks) {
  const TempDir dir;
  auto writer = SegmentFileWriter::create(dir / "s", Id128::random(), 0);
  ASSERT_TRUE(writer.is_ok());
  EXPECT_EQ((*writer)->append(Fingerprint{}, {}).status().code(), Code::kArgument);
  const Bytes data(1);
  const SegmentChunk chunk{{}, data};
  EXPECT_EQ((*writer)->append({&chunk, 1}, {}).code(), Code::kArgument);
  EXPECT_EQ((*writer)->append({}, Bytes(kMaxChunkSize + 1)).status().code(), Code::kArgument);
  EXPECT_TRUE((*writer)->append({}, Bytes(kMaxChunkSize)).is_ok());
}

TEST(Segment, StaysFailedAfterAFailedWrite) {
  const TempDir dir;
  test::Random random(7);
  auto writer = SegmentFileWriter::create(dir / "s", Id128::random(), 0);
  ASSERT_TRUE(writer.is_ok());
  const auto chunk = append(**writer, random, 4096);
  ASSERT_TRUE((*writer)->write_out().is_ok());
  {
    const test::FileSizeLimit limit(100 << 10);
    Status status;
    for (int i = 0; i < 1000 && status.is_ok(); ++i) {
      status = (*writer)->append(random_fingerprint(random), Bytes(4096)).status();
    }
    ASSERT_FALSE(status.is_ok());
    EXPECT_NE(status.message().find(dir / "s"), std::string::npos);
  }
  EXPECT_FALSE((*writer)->append(random_fingerprint(random), Bytes(1)).is_ok());
  EXPECT_FALSE((*writer)->write_out().is_ok());
  EXPECT_FALSE((*writer)->flush().is_ok());
  auto reader = SegmentFileReader::open(dir / "s");
  ASSERT_TRUE(reader.is_ok());
  Bytes out(4096);
  EXPECT_TRUE((*reader)->read(chunk.location, chunk.fingerprint, out).is_ok());
  EXPECT_EQ(out, chunk.data);
}

}  // namespace
}  // namespace dedup::store
