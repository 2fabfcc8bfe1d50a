#include "store/files/index_file.h"
#include "store/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "test/hooks/names.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::random_fingerprint;
using test::TempDir;

std::vector<IndexEntry> random_entries(test::Random& random, std::size_t count) {
  std::vector<IndexEntry> entries(count);
  for (auto& entry : entries) {
    entry.fingerprint = random_fingerprint(random);
    // Many fingerprints with a common beginning, as the numbers of mode `none` have.
    if (test::below(random, 2) == 0) std::fill_n(entry.fingerprint.bytes.begin(), 28, 0x55);
    entry.location = {test::below(random, 5), random(),
                      static_cast<std::uint32_t>(1 + test::below(random, 4096))};
  }
  const auto less = [](const IndexEntry& a, const IndexEntry& b) {
    return a.fingerprint < b.fingerprint;
  };
  const auto same = [](const IndexEntry& a, const IndexEntry& b) {
    return a.fingerprint == b.fingerprint;
  };
  std::sort(entries.begin(), entries.end(), less);
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  std::shuffle(entries.begin(), entries.end(), random);
  return entries;
}

TEST(Index, KnowsTheirPositions) {
  const TempDir dir;
  test::Random random(2);
  const auto entries = random_entries(random, 1000);
  const std::string path = dir / "index";
  ASSERT_TRUE(
      test::write_index(path, test::random_id(random), test::random_id(random), entries, false)
          .is_ok());
  const auto reader = IndexFileReader::open(path);
  ASSERT_TRUE(reader.is_ok());
  for (std::uint64_t i = 0; i < (*reader)->size(); ++i) {
    const auto position = (*reader)->position((*reader)->at(i)->fingerprint);
    ASSERT_TRUE(position.is_ok());
    EXPECT_EQ(*position, i);
  }
  EXPECT_EQ((*reader)->position(random_fingerprint(random)).status().code(), Code::kNotFound);
}

TEST(Index, FindsWhatItHasAndNothingElse) {
  const TempDir dir;
  test::Random random(1);
  for (const std::size_t count : {0, 1, 2, 72, 73, 74, 146, 147, 5000, 100000}) {
    SCOPED_TRACE(count);
    const auto entries = random_entries(random, count);
    const Id128 attempt = test::random_id(random);
    const std::string path = dir / std::to_string(count);
    ASSERT_TRUE(test::write_index(path, Id128::random(), attempt, entries, count == 74).is_ok());
    auto reader = IndexFileReader::open(path);
    ASSERT_TRUE(reader.is_ok()) << reader.status().message();
    EXPECT_EQ((*reader)->attempt(), attempt);
    ASSERT_EQ((*reader)->size(), entries.size());
    std::map<std::uint64_t, std::uint64_t> live;
    for (const auto& entry : entries) {
      const auto found = (*reader)->find(entry.fingerprint);
      ASSERT_TRUE(found.is_ok()) << found.status().message();
      ASSERT_EQ(found->location, entry.location);
      live[entry.location.segment] += kChunkHeaderSize + entry.location.length;
    }
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ((*reader)->find(random_fingerprint(random)).status().code(), Code::kNotFound);
    }
    EXPECT_EQ((*reader)->find(Fingerprint{}).status().code(), Code::kNotFound);
    Fingerprint before;
    for (std::uint64_t i = 0; i < (*reader)->size(); ++i) {
      const auto entry = (*reader)->at(i);
      ASSERT_TRUE(entry.is_ok());
      ASSERT_LT(before, entry->fingerprint);
      before = entry->fingerprint;
    }
    EXPECT_EQ((*reader)->at((*reader)->size()).status().code(), Code::kArgument);
    std::map<std::uint64_t, std::uint64_t> got;
    for (const auto& use : (*reader)->segments()) got[use.segment] = use.live_bytes;
    EXPECT_EQ(got, live);
  }
}

TEST(Index, FindsChunksByTheirContent) {
  const TempDir dir;
  test::Random random(6);
  std::vector<IndexEntry> entries = random_entries(random, 500);
  std::vector<Fingerprint> contents;
  for (int i = 0; i < 500; ++i) {
    contents.push_back(test::content_name(test::random_bytes(random, 20)));
    const bool single = i % 2 == 0;
    entries.push_back({single ? name_of_single(contents.back(), random()) : contents.back(),
                       {1, static_cast<std::uint64_t>(i), 1}});
  }
  // Two names of one content, and one of its hash that has another checksum.
  entries.push_back({name_of_single(contents[0], 7), {2, 0, 1}});
  entries.push_back({contents[0], {2, 1, 1}});
  Fingerprint alike = contents[1];
  alike.bytes[19] ^= 1;
  entries.push_back({alike, {2, 2, 1}});
  const std::string path = dir / "index";
  ASSERT_TRUE(
      test::write_index(path, test::random_id(random), test::random_id(random), entries, false)
          .is_ok());
  const auto reader = IndexFileReader::open(path);
  ASSERT_TRUE(reader.is_ok());
  for (const IndexEntry& entry : entries) {
    const auto found = (*reader)->find_content(content_of(entry.fingerprint));
    ASSERT_TRUE(found.is_ok()) << found.status().message();
    EXPECT_EQ(content_of(found->fingerprint), content_of(entry.fingerprint));
    EXPECT_EQ((*reader)->find(found->fingerprint)->location, found->location);
  }
  for (int i = 0; i < 100; ++i) {
    const Fingerprint none = test::content_name(test::random_bytes(random, 21));
    EXPECT_EQ((*reader)->find_content(none).status().code(), Code::kNotFound);
  }
  Fingerprint last;
  last.bytes.fill(0xff);
  for (const Fingerprint& none : {last, Fingerprint{}}) {
    EXPECT_EQ((*reader)->find_content(none).status().code(), Code::kNotFound);
  }
}

TEST(Index, NeverGivesWrongLocations) {
  const TempDir dir;
  test::Random random(2);
  const auto entries = random_entries(random, 76);
  ASSERT_TRUE(
      test::write_index(dir / "i", Id128::random(), Id128::random(), entries, false).is_ok());
  const auto size = test::get_file(dir / "i").size();
  const auto absent = random_fingerprint(random);
  test::for_each_file_damage(dir / "i", [&] {
    auto reader = IndexFileReader::open(dir / "i");
    if (!reader.is_ok()) return;
    EXPECT_EQ(std::filesystem::file_size(dir / "i"), size);
    int failures = 0;
    for (const auto& entry : entries) {
      const auto found = (*reader)->find(entry.fingerprint);
      if (found.is_ok()) {
        EXPECT_EQ(found->location, entry.location);
      } else {
        EXPECT_EQ(found.status().code(), Code::kCorrupt);
        ++failures;
      }
    }
    EXPECT_GE(failures, 1);
    EXPECT_FALSE((*reader)->find(absent).is_ok());
  });
}

TEST(Index, RefusesPagesOfAnotherIndex) {
  const TempDir dir;
  test::Random random(3);
  const auto entries = random_entries(random, 70);
  const Id128 identity = Id128::random();
  ASSERT_TRUE(test::write_index(dir / "a", identity, Id128::random(), entries, false).is_ok());
  ASSERT_TRUE(test::write_index(dir / "b", identity, Id128::random(), entries, false).is_ok());
  Bytes a = test::get_file(dir / "a");
  const Bytes b = test::get_file(dir / "b");
  std::copy_n(b.begin() + 4096, 4096, a.begin() + 4096);
  test::put_file(dir / "a", a);
  auto reader = IndexFileReader::open(dir / "a");
  ASSERT_TRUE(reader.is_ok());
  EXPECT_EQ((*reader)->find(entries[0].fingerprint).status().code(), Code::kCorrupt);
}

TEST(Index, RefusesANewerVersion) {
  const TempDir dir;
  ASSERT_TRUE(test::write_index(dir / "i", Id128::random(), Id128::random(), {}, false).is_ok());
  Bytes bytes = test::get_file(dir / "i");
  bytes[8] = std::byte{5};
  test::put_file(dir / "i", bytes);
  EXPECT_EQ(IndexFileReader::open(dir / "i").status().code(), Code::kVersion);
}

TEST(Index, KnowsHowChunksAreKept) {
  const TempDir dir;
  const auto here = plan::Placement::copies_on({2});
  const auto on_two = plan::Placement::copies_on({0, 7});
  auto writer = *IndexFileWriter::create(dir / "i", Id128::random(), Id128::random());
  EXPECT_EQ(writer->number(on_two), 1u);
  EXPECT_EQ(writer->number(here), 2u);
  EXPECT_EQ(writer->number(on_two), 1u);
  std::array<Fingerprint, 4> names;
  for (std::uint8_t i = 0; i < names.size(); ++i) names[i].bytes[0] = i + 1;
  ASSERT_TRUE(writer->add({names[0], {1, 64, 10}, 2}).is_ok());
  ASSERT_TRUE(writer->add({names[1], {1, 128, 10}}).is_ok());
  ASSERT_TRUE(writer->add({names[2], {1, 192, 10}, 1}).is_ok());
  EXPECT_EQ(writer->add({names[3], {1, 256, 10}, 3}).code(), Code::kInternal);
  ASSERT_TRUE(writer->finish(false).is_ok());
  const auto reader = IndexFileReader::open(dir / "i");
  ASSERT_TRUE(reader.is_ok()) << reader.status().message();
  const auto placement_of = [&](const Fingerprint& name) {
    return (*reader)->placement((*reader)->find(name)->placement);
  };
  EXPECT_EQ(placement_of(names[0]), here);
  EXPECT_EQ(placement_of(names[1]), plan::Placement());
  EXPECT_EQ(placement_of(names[2]), on_two);
  EXPECT_EQ((*reader)->placement(3), plan::Placement());
}

TEST(Index, RefusesDuplicatesAndOverwriting) {
  const TempDir dir;
  const IndexEntry entry{{}, {1, 64, 10}};
  EXPECT_EQ(test::write_index(dir / "twice", Id128::random(), {}, {entry, entry}, false).code(),
            Code::kInternal);
  ASSERT_TRUE(test::write_index(dir / "i", Id128::random(), {}, {entry}, false).is_ok());
  EXPECT_EQ(test::write_index(dir / "i", Id128::random(), {}, {entry}, false).code(),
            Code::kFileExists);
}

TEST(Index, ReportsAFullDisk) {
  const TempDir dir;
  test::Random random(4);
  const auto entries = random_entries(random, 1000);
  const test::FileSizeLimit limit(20000);
  EXPECT_FALSE(test::write_index(dir / "i", Id128::random(), {}, entries, false).is_ok());
}

}  // namespace
}  // namespace dedup::store
