#include "store/chunk_reader.h"
#include "store/files/segment_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

#include "base/hasher.h"
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
};

// Of at least so many bytes no chunk begins with the salt, by which readers guess, by accident.
constexpr std::size_t kAsSalt = 8;

// Chunks in segments of a directory, and where each of them is.
class Chunks : public ChunkReader {
 public:
  explicit Chunks(StretchEnds* ends = nullptr) : ChunkReader(ends) {}

  std::size_t looked_up = 0;
  std::map<Fingerprint, ChunkLocation> locations;

  void write(std::uint64_t number, std::span<const Chunk> chunks) {
    auto writer = SegmentFileWriter::create(path(number), test::random_id(random), number);
    ASSERT_TRUE(writer.is_ok());
    std::vector<SegmentChunk> what;
    std::vector<ChunkLocation> where(chunks.size());
    for (const Chunk& chunk : chunks) what.push_back({chunk.fingerprint, chunk.data});
    ASSERT_TRUE((*writer)->append(what, where).is_ok());
    for (std::size_t i = 0; i < chunks.size(); ++i) locations[chunks[i].fingerprint] = where[i];
    ASSERT_TRUE((*writer)->write_out().is_ok());
  }
  std::vector<Chunk> some(std::size_t count, std::size_t shortest = 1) {
    std::vector<Chunk> out;
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back(
          {random_fingerprint(random), random_bytes(random, shortest + test::below(random, 500))});
    }
    return out;
  }
  void damage(const Chunk& chunk) {
    const ChunkLocation& location = locations.at(chunk.fingerprint);
    Bytes bytes = test::get_file(path(location.segment));
    bytes[chunk_end(chunk.fingerprint, location) - 1] ^= std::byte{1};
    test::put_file(path(location.segment), bytes);
  }
  Bytes file(std::uint64_t number) const { return test::get_file(path(number)); }
  std::uint64_t end_of(const Chunk& chunk) const {
    return chunk_end(chunk.fingerprint, locations.at(chunk.fingerprint));
  }
  void remove(std::uint64_t number) { std::filesystem::remove(path(number)); }

  // Those that cannot be had; all others are compared.
  std::vector<std::size_t> read(const std::vector<Chunk>& wanted) {
    std::vector<Bytes> got;
    std::vector<ChunkTarget> targets;
    for (const Chunk& chunk : wanted) got.emplace_back(chunk.data.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      targets.push_back({wanted[i].fingerprint, got[i]});
    }
    looked_up = 0;
    const std::vector<std::size_t> failed = ChunkReader::read(targets);
    std::size_t next = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (next < failed.size() && failed[next] == i) {
        ++next;
      } else {
        EXPECT_EQ(got[i], wanted[i].data) << "chunk " << i;
      }
    }
    EXPECT_EQ(next, failed.size()) << "positions, ascending";
    return failed;
  }

  test::Random random{1};

 private:
  std::string path(std::uint64_t number) const { return dir_ / std::to_string(number); }
  std::optional<std::vector<ChunkLocation>> locate(
      std::span<const Fingerprint> fingerprints) override {
    std::vector<ChunkLocation> out;
    looked_up += fingerprints.size();
    if (locations.empty()) return std::nullopt;
    for (const Fingerprint& f : fingerprints) {
      const auto it = locations.find(f);
      out.push_back(it == locations.end() ? ChunkLocation{} : it->second);
    }
    return out;
  }
  std::shared_ptr<const SegmentReader> segment(std::uint64_t number) override {
    auto opened = SegmentFileReader::open(path(number));
    return opened.is_ok() ? std::move(*opened) : nullptr;
  }

  TempDir dir_;
};

const std::vector<std::size_t> kNone;

TEST(ChunkReader, LooksUpFewOfThoseThatStandAsTheyAreWanted) {
  Chunks chunks;
  const auto wanted = chunks.some(1000);
  chunks.write(1, wanted);
  EXPECT_EQ(chunks.read(wanted), kNone);
  EXPECT_EQ(chunks.looked_up, 1u);
  EXPECT_EQ(chunks.read({wanted[0]}), kNone);
  EXPECT_EQ(chunks.read({wanted[999]}), kNone);
  EXPECT_EQ(chunks.read({}), kNone);
}

TEST(ChunkReader, FollowsFromSegmentToSegment) {
  Chunks chunks;
  const auto wanted = chunks.some(1000);
  // In turn to three segments, 100 at once, as a store has the chunks of several writers.
  std::vector<Chunk> of[3];
  for (std::size_t i = 0; i < wanted.size(); ++i) of[i / 100 % 3].push_back(wanted[i]);
  for (std::uint64_t s = 0; s < 3; ++s) chunks.write(s, of[s]);
  EXPECT_EQ(chunks.read(wanted), kNone);
  EXPECT_LT(chunks.looked_up, 200u);
}

TEST(ChunkReader, ReadsChunksInAnyOrder) {
  Chunks chunks;
  auto wanted = chunks.some(1000);
  chunks.write(1, std::span(wanted).first(600));
  chunks.write(2, std::span(wanted).subspan(600));
  for (int i = 0; i < 10; ++i) {
    std::shuffle(wanted.begin(), wanted.end(), chunks.random);
    EXPECT_EQ(chunks.read(wanted), kNone);
    EXPECT_LT(chunks.looked_up, 1100u);
  }
  for (std::size_t i = 0; i < 100; ++i) wanted.push_back(Chunk(wanted[i]));  // twice
  EXPECT_EQ(chunks.read(wanted), kNone);
}

TEST(ChunkReader, GivesEverythingButWhatIsMissingOrDamaged) {
  for (unsigned round = 0; round < 30; ++round) {
    Chunks chunks;
    chunks.random.seed(round);
    auto wanted = chunks.some(300);
    chunks.write(1, std::span(wanted).first(200));
    chunks.write(2, std::span(wanted).subspan(200));
    if (round % 2 == 1) std::shuffle(wanted.begin() + 50, wanted.end(), chunks.random);
    std::vector<std::size_t> bad;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (test::below(chunks.random, 1 + 4 * round) != 0) continue;
      bad.push_back(i);
      const std::size_t how = test::below(chunks.random, 3);
      if (how == 0) chunks.damage(wanted[i]);
      if (how == 1) chunks.locations.erase(wanted[i].fingerprint);
      if (how == 2) wanted[i].data.emplace_back();  // wanted longer than it is
    }
    const std::vector<std::size_t> failed = chunks.read(wanted);
    for (const std::size_t i : failed) {
      EXPECT_TRUE(std::binary_search(bad.begin(), bad.end(), i)) << "chunk " << i;
    }
    // One that nobody knows of may be found behind the one before it: then it was compared.
    for (const std::size_t i : bad) {
      if (!chunks.locations.contains(wanted[i].fingerprint)) continue;
      EXPECT_TRUE(std::binary_search(failed.begin(), failed.end(), i)) << "chunk " << i;
    }
  }
}

// As a rank that wrote them alone: numbered from anywhere on.
std::vector<Chunk> named_single(std::vector<Chunk> chunks, std::uint64_t number) {
  for (Chunk& chunk : chunks) chunk.fingerprint = test::single_name(chunk.data, number++);
  return chunks;
}

TEST(ChunkReader, FollowsTheNumbersOfChunksWithoutHeaders) {
  Chunks chunks;
  // Among others.
  auto mixed = chunks.some(512, kAsSalt);
  std::uint64_t number = 7;
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    if (i % 5 == 3) continue;
    mixed[i].fingerprint = test::single_name(mixed[i].data, number++);
  }
  chunks.write(1, mixed);
  EXPECT_EQ(chunks.read(mixed), kNone);
  EXPECT_LE(chunks.looked_up, 2u);

  auto alone = named_single(chunks.some(512, kAsSalt), (std::uint64_t{1} << 48) - 100);
  chunks.write(2, alone);
  EXPECT_EQ(chunks.read(alone), kNone);
  EXPECT_EQ(chunks.looked_up, 2u) << "a group ends where the numbers do";
  alone = named_single(chunks.some(512, kAsSalt), 1000);
  chunks.write(3, alone);
  EXPECT_EQ(chunks.read(alone), kNone);
  EXPECT_EQ(chunks.looked_up, 1u);
  std::vector<Chunk> some;
  for (std::size_t i = 0; i < 100; ++i) some.push_back(alone[5 * i]);
  EXPECT_EQ(chunks.read(some), kNone);
  EXPECT_EQ(chunks.looked_up, 100u) << "nothing is guessed where numbers leave some out";
}

// A segment of groups, as appends make them, of chunks whose numbers go on.
std::vector<Chunk> write_groups(Chunks& chunks, std::uint64_t number, std::size_t groups) {
  const auto all = named_single(chunks.some(groups * kRunChunks, kAsSalt), 1000);
  chunks.write(number, all);
  return all;
}

TEST(ChunkReader, GoesOnInTheNextGroup) {
  Chunks chunks;
  const auto all = write_groups(chunks, 1, 3);
  EXPECT_EQ(chunks.read(all), kNone);
  EXPECT_EQ(chunks.looked_up, 1u);
  EXPECT_EQ(chunks.read({all.begin() + 500, all.end()}), kNone);
  EXPECT_EQ(chunks.looked_up, 1u) << "that it ends after 12 was not known";
}

TEST(ChunkReader, GoesOnWhereAReadHasEnded) {
  StretchEnds ends;
  Chunks chunks(&ends);
  const auto all = write_groups(chunks, 1, 2);
  const auto other = named_single(chunks.some(100, kAsSalt), 500);
  chunks.write(2, other);
  // Two that read in turns, neither with an eye on groups.
  std::size_t looked_up = 0;
  for (std::size_t at = 0; at + 10 <= all.size(); at += 10) {
    EXPECT_EQ(chunks.read({all.begin() + static_cast<std::ptrdiff_t>(at),
                           all.begin() + static_cast<std::ptrdiff_t>(at) + 10}),
              kNone);
    looked_up += chunks.looked_up;
    if (at >= other.size()) continue;
    EXPECT_EQ(chunks.read({other[at], other[at + 1]}), kNone);
    EXPECT_EQ(chunks.looked_up, 1u) << "some are left out";
  }
  EXPECT_EQ(looked_up, 1u);
}

TEST(ChunkReader, LooksUpWhatDoesNotStandWhereAReadHasEnded) {
  StretchEnds ends;
  Chunks chunks(&ends);
  const auto first = named_single(chunks.some(10, kAsSalt), 100);
  auto second = named_single(chunks.some(10, kAsSalt), 105);  // some have the same numbers
  chunks.write(1, first);
  chunks.write(2, second);
  EXPECT_EQ(chunks.read({first.begin(), first.begin() + 6}), kNone);
  EXPECT_EQ(chunks.read({second.begin() + 1, second.end()}), kNone);
  EXPECT_EQ(chunks.looked_up, 1u) << "number 106, of which there are two";
  EXPECT_EQ(chunks.read({first.begin() + 6, first.end()}), kNone);
  EXPECT_EQ(chunks.looked_up, 1u) << "the end was given away";

  EXPECT_EQ(chunks.read({first[0]}), kNone);
  chunks.damage(first[1]);
  EXPECT_EQ(chunks.read({first[1]}), std::vector<std::size_t>{0});
  EXPECT_EQ(chunks.read({first[2]}), kNone);
  chunks.remove(1);
  EXPECT_EQ(chunks.read({first[3]}), std::vector<std::size_t>{0});
}

TEST(ChunkReader, ReadsChunksOfOldNames) {
  Chunks chunks;
  std::vector<Chunk> old = chunks.some(100, kAsSalt);
  std::uint64_t number = ~std::uint64_t{0} - 50;
  for (Chunk& chunk : old) chunk.fingerprint = test::old_single_name(chunk.data, number++);
  chunks.write(1, old);
  EXPECT_EQ(chunks.read(old), kNone);
  EXPECT_EQ(chunks.looked_up, 1u);
  Chunk other = old[1];
  other.fingerprint = test::old_single_name(old[2].data, number);
  chunks.locations[other.fingerprint] = chunks.locations[old[1].fingerprint];
  EXPECT_EQ(chunks.read({other}), std::vector<std::size_t>{0});
}

// Whoever makes data that look like a chunk behind its header does not know the salt; and what is
// guessed where a group ends is not taken for data, whatever the hash is.
TEST(ChunkReader, GuessesNothingBehindAGroup) {
  Chunks chunks;
  const auto stored = named_single(chunks.some(3), 10);
  const auto between = chunks.some(1);
  chunks.write(1, std::vector{stored[0], between[0]});
  const Bytes file = chunks.file(1);
  // The bytes behind the first chunk, as if they were one.
  const auto end = static_cast<std::ptrdiff_t>(chunks.end_of(stored[0]));
  Chunk behind{{}, Bytes(file.begin() + end, file.begin() + end + 60)};
  behind.fingerprint = test::single_name(behind.data, 11);
  EXPECT_EQ(chunks.read({stored[0], behind}), std::vector<std::size_t>{1});
  chunks.locations[behind.fingerprint] = {1, chunks.end_of(stored[0]), 60};
  EXPECT_EQ(chunks.read({stored[0], behind}), kNone) << "it is where the index says";
}

// A chunk of another number never stands behind one without a list between them.
TEST(ChunkReader, FindsGroupsOfOtherNumbers) {
  Chunks chunks;
  auto wanted = named_single(chunks.some(10), 10);
  for (const Chunk& other : named_single(chunks.some(10), 500)) wanted.push_back(other);
  chunks.write(1, wanted);
  EXPECT_EQ(chunks.end_of(wanted[4]), chunks.locations[wanted[5].fingerprint].offset);
  EXPECT_GT(chunks.locations[wanted[10].fingerprint].offset, chunks.end_of(wanted[9]));
  EXPECT_EQ(chunks.read(wanted), kNone);
  EXPECT_EQ(chunks.looked_up, 2u);
}

// One content under two names: one may stand where the other would be guessed, if only checksums
// were compared.
TEST(ChunkReader, GuessesNoChunkOfAnotherNumber) {
  Chunks chunks;
  const auto stored = named_single(chunks.some(2), 10);
  auto other = stored[1];
  other.fingerprint = name_of_single(content_of(other.fingerprint), 99);
  chunks.write(1, stored);
  EXPECT_EQ(chunks.read({stored[0], other}), std::vector<std::size_t>{1});
  EXPECT_EQ(chunks.read(stored), kNone);
}

TEST(ChunkReader, LosesWhatIsInASegmentThatIsGone) {
  Chunks chunks;
  const auto wanted = chunks.some(100);
  chunks.write(1, std::span(wanted).first(30));
  chunks.write(2, std::span(wanted).subspan(30));
  chunks.remove(1);
  std::vector<std::size_t> lost(30);
  std::iota(lost.begin(), lost.end(), std::size_t{0});
  EXPECT_EQ(chunks.read(wanted), lost);
  chunks.locations.clear();  // nothing can be looked up
  EXPECT_EQ(chunks.read(wanted).size(), wanted.size());
}

}  // namespace
}  // namespace dedup::store
