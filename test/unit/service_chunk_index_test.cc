#include "service/chunk_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/piece.h"
#include "service/fingerprint_numbers.h"
#include "test/hooks/names.h"
#include "test/unit/store_helpers.h"

namespace dedup::service {
namespace {

using test::below;
using test::Random;
using test::random_bytes;
using test::random_fingerprint;

// What is left of a hash that is a number: everything but a few bytes is the same.
Fingerprint numbered(std::uint64_t number) {
  Fingerprint f;
  for (unsigned i = 0; i < 8; ++i) f.bytes[8 + i] = static_cast<std::uint8_t>(number >> (8 * i));
  f.bytes[23] = 1;
  return f;
}

store::ChunkLocation random_location(Random& random) {
  return {1 + below(random, 20), below(random, std::uint64_t{1} << 43),
          static_cast<std::uint32_t>(1 + below(random, kMaxChunkSize))};
}

// The same, the plain way.
struct Reference {
  struct Chunk {
    bool claimed = false;  // else registered
    store::ChunkLocation location;
    plan::Placement placement;
    bool marked = false;
  };
  std::map<Fingerprint, Chunk> chunks;

  bool registered(const Fingerprint& f) const {
    const auto it = chunks.find(f);
    return it != chunks.end() && !it->second.claimed;
  }
};

void expect_same(const ChunkIndex& index, const Reference& reference,
                 const std::vector<Fingerprint>& universe) {
  std::uint64_t registered = 0;
  for (const Fingerprint& f : universe) {
    store::ChunkLocation location;
    const plan::Placement* placement = nullptr;
    ASSERT_EQ(index.find(f, &location, &placement), reference.registered(f));
    if (!reference.registered(f)) continue;
    ++registered;
    ASSERT_EQ(location, reference.chunks.at(f).location);
    ASSERT_EQ(*placement, reference.chunks.at(f).placement);
  }
  EXPECT_EQ(index.size(), registered);
  std::vector<Fingerprint> marked;
  for (const std::uint32_t number : index.marked_in_order()) {
    const store::IndexEntry entry = index.at(number);
    marked.push_back(entry.fingerprint);
    EXPECT_EQ(entry.location, reference.chunks.at(entry.fingerprint).location);
    EXPECT_EQ(index.placement(entry.placement), reference.chunks.at(entry.fingerprint).placement);
  }
  std::vector<Fingerprint> expected;
  for (const auto& [f, chunk] : reference.chunks) {
    if (!chunk.claimed && chunk.marked) expected.push_back(f);
  }
  EXPECT_EQ(marked, expected);
}

TEST(ServiceChunkIndex, AgreesWithAMap) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    std::vector<Fingerprint> universe;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      universe.push_back(seed % 2 == 0 ? random_fingerprint(random) : numbered(i));
    }
    std::vector<plan::Placement> placements;
    for (const NodeSet& nodes : {NodeSet{0}, {0, 1}, {1, 2, 3}, {}, {7, 9}}) {
      placements.push_back(plan::Placement::copies_on(nodes));
    }
    ChunkIndex index;
    Reference reference;
    for (int step = 0; step < 20000; ++step) {
      const Fingerprint& f = universe[below(random, universe.size())];
      const auto it = reference.chunks.find(f);
      switch (below(random, 7)) {
        case 0:
          ASSERT_EQ(index.claim(f), it == reference.chunks.end());
          if (it == reference.chunks.end()) reference.chunks[f].claimed = true;
          break;
        case 1:
          index.release(f);
          if (it != reference.chunks.end() && it->second.claimed) reference.chunks.erase(it);
          break;
        case 2:
        case 3: {
          const store::ChunkLocation location = random_location(random);
          const plan::Placement& placement = placements[below(random, placements.size())];
          index.put(f, location, index.intern(placement));
          if (reference.registered(f)) {
            it->second.placement = placement;
          } else {
            reference.chunks[f] = {false, location, placement, false};
          }
          break;
        }
        case 4: {
          const plan::Placement& placement = placements[below(random, placements.size())];
          ASSERT_EQ(index.mark(f, index.intern(placement)), reference.registered(f));
          if (reference.registered(f)) {
            it->second.placement = placement;
            it->second.marked = true;
          }
          break;
        }
        case 5:
          index.forget(f);
          if (reference.registered(f)) reference.chunks.erase(f);
          break;
        case 6: {
          const std::uint64_t segment = 1 + below(random, 20);
          const auto rare = below(random, 500);
          if (rare == 0) {
            index.forget_segment(segment);
            std::erase_if(reference.chunks, [&](const auto& item) {
              return !item.second.claimed && item.second.location.segment == segment;
            });
          } else if (rare == 1) {
            index.keep_from(segment);
            std::erase_if(reference.chunks, [&](const auto& item) {
              return item.second.claimed || item.second.location.segment < segment;
            });
            for (auto& [name, chunk] : reference.chunks) chunk.marked = false;
          } else if (rare == 2) {
            index.clear_marks();
            for (auto& [name, chunk] : reference.chunks) chunk.marked = false;
          }
          break;
        }
      }
    }
    expect_same(index, reference, universe);
  }
}

TEST(ServiceChunkIndex, FindsChunksByTheirContent) {
  Random random(3);
  ChunkIndex index;
  const std::uint32_t placement = index.intern(plan::Placement::copies_on({0}));
  std::vector<Fingerprint> contents;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    contents.push_back(test::content_name(random_bytes(random, 20)));
    const bool single = i % 2 == 0;
    index.put(single ? name_of_single(contents[i], i) : contents[i], {1, i, 1}, placement);
    index.put(random_fingerprint(random), {2, i, 1}, placement);
  }
  Fingerprint name;
  for (std::uint64_t i = 0; i < contents.size(); ++i) {
    ASSERT_TRUE(index.find_content(contents[i], name));
    EXPECT_EQ(name, i % 2 == 0 ? name_of_single(contents[i], i) : contents[i]);
    Fingerprint other = contents[i];
    other.bytes[12] ^= 1;
    EXPECT_FALSE(index.find_content(other, name));
  }
  // Claimed only, or forgotten: not there.
  const Fingerprint claimed = test::content_name(random_bytes(random, 21));
  index.claim(name_of_single(claimed, 3));
  EXPECT_FALSE(index.find_content(claimed, name));
  index.forget(contents[7]);
  EXPECT_FALSE(index.find_content(contents[7], name));
  EXPECT_FALSE(ChunkIndex().find_content(claimed, name));
}

TEST(ServiceChunkIndex, TakesAtMost64BytesAChunk) {
  ChunkIndex index;
  const std::uint32_t placement = index.intern(plan::Placement::copies_on({0, 3, 5}));
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < 300000; ++i) {
    index.put(numbered(i), {i / 10000, i % 10000 * 4140, 4096}, placement);
    if (i + 1 >= 10000) most = std::max(most, index.memory() * 1000 / (i + 1));
  }
  EXPECT_LE(most, 64000u);
  EXPECT_GE(most, 48000u);  // it does count
  EXPECT_EQ(index.size(), 300000u);
}

TEST(ServiceChunkIndex, KnowsWhichPlacesItCannotTake) {
  const std::uint64_t end = std::uint64_t{1} << 43;
  EXPECT_TRUE(ChunkIndex::possible({1, end - 1, kMaxChunkSize}));
  EXPECT_FALSE(ChunkIndex::possible({1, end, 1}));
  EXPECT_FALSE(ChunkIndex::possible({1, 0, 0}));
  EXPECT_FALSE(ChunkIndex::possible({1, 0, kMaxChunkSize + 1}));
  ChunkIndex index;
  const store::ChunkLocation last{~std::uint64_t{0}, end - 1, kMaxChunkSize};
  index.put(numbered(1), last, index.intern(plan::Placement::copies_on({1})));
  store::ChunkLocation found;
  ASSERT_TRUE(index.find(numbered(1), &found));
  EXPECT_EQ(found, last);
}

TEST(ServiceFingerprintNumbers, AgreeWithAMap) {
  Random random(7);
  FingerprintNumbers numbers;
  std::map<Fingerprint, std::set<std::uint32_t>> reference;
  const auto expect_same = [&] {
    const auto sorted = numbers.sorted();
    ASSERT_EQ(sorted.size(), reference.size());
    auto expected = reference.begin();
    for (const auto& item : sorted) {
      ASSERT_EQ(item.fingerprint, expected->first);
      ASSERT_TRUE(expected->second.contains(item.number));
      ++expected;
    }
  };
  for (std::uint32_t step = 0; step < 60000; ++step) {
    const Fingerprint f = numbered(below(random, 40000));
    numbers.insert(f, step);
    reference[f].insert(step);
    if (step % 10000 == 0) expect_same();
  }
  expect_same();
}

TEST(ServiceFingerprintNumbers, TakeAtMost54BytesEachHoweverOftenTheyCome) {
  FingerprintNumbers numbers;
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    for (int again = 0; again < 3; ++again) numbers.insert(numbered(i), 1);
    if (i + 1 >= 20000) most = std::max(most, numbers.memory() * 1000 / (i + 1));
  }
  EXPECT_LE(most, 54000u);
  EXPECT_GE(most, 36000u);
  EXPECT_EQ(numbers.sorted().size(), 100000u);
}

}  // namespace
}  // namespace dedup::service
