// The two-phase exchange without MPI: all ranks of a write simulated here, against the file image
// that writing byte by byte gives.
#include "plan/domains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace dedup::plan {
namespace {

// One rank's access, with storage of its own. Every byte tells who wrote it where.
struct Writer {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> memory_offsets{0};
  std::vector<std::int64_t> memory_lengths{1};
  std::vector<std::byte> memory;
  Access access;

  void finish(std::int64_t displacement, std::int64_t extent, std::uint64_t bytes,
              std::mt19937& random) {
    std::int64_t size = 0;
    for (const std::int64_t length : lengths) size += length;
    memory.resize(bytes);
    for (auto& b : memory) b = static_cast<std::byte>(random());
    access = {displacement,  {offsets, lengths, extent, size},       0,
              memory.data(), {memory_offsets, memory_lengths, 1, 1}, bytes};
  }
};

// Values that may stand at a byte of the file: several where ranks overlap.
using Image = std::map<std::uint64_t, std::vector<std::byte>>;

Image image_of(const std::vector<std::unique_ptr<Writer>>& writers) {
  Image image;
  for (const auto& w : writers) {
    FragmentWalk walk(w->access);
    for (Fragment f = walk.next(); f.length != 0; f = walk.next()) {
      for (std::uint64_t i = 0; i < f.length; ++i) image[f.file_offset + i].push_back(f.memory[i]);
    }
  }
  return image;
}

struct Limits {
  std::uint64_t budget = 1 << 16;
  std::uint32_t chunk_size = 512;
  std::uint64_t largest = 4096;
};

// Exchanges everything, checks the promises on the way; returns the number of windows.
int exchange_all(const std::vector<std::unique_ptr<Writer>>& writers, const Limits& limits) {
  const auto ranks = static_cast<unsigned>(writers.size());
  std::vector<FragmentCursor> cursors;
  for (const auto& w : writers) cursors.emplace_back(w->access);
  Image image = image_of(writers);
  std::vector<std::byte> out(limits.budget + kMessageSlack * (ranks + 1));
  std::vector<std::uint32_t> sizes(ranks);
  DomainBuffer buffer(limits.largest);
  std::map<std::uint64_t, std::byte> written;
  for (int windows = 0;; ++windows) {
    Reach all;
    for (const FragmentCursor& cursor : cursors) {
      const Reach r = look_ahead(cursor, limits.budget, ranks * limits.largest);
      all.next = std::min(all.next, r.next);
      all.limit = std::min(all.limit, r.limit);
      all.end = std::max(all.end, r.end);
    }
    if (all.next == kNoOffset) {
      EXPECT_EQ(image.size(), written.size());
      for (const auto& [offset, value] : written) {
        const auto found = image.find(offset);
        if (found == image.end() ||
            std::count(found->second.begin(), found->second.end(), value) == 0) {
          ADD_FAILURE() << "byte " << offset;
          return windows;
        }
      }
      return windows;
    }
    const Domains domains = Domains::agree(all, ranks, limits.chunk_size, limits.largest);
    EXPECT_EQ(all.next, domains.begin());
    EXPECT_GT(domains.end(), domains.begin());
    EXPECT_LE(domains.end(), all.limit);
    std::uint64_t at = domains.begin();
    for (unsigned r = 0; r < ranks; ++r) {
      const ByteRange domain = domains.domain(r);
      if (domain.length == 0) continue;
      EXPECT_EQ(at, domain.offset);
      EXPECT_LE(domain.length, limits.largest);
      EXPECT_TRUE(at == domains.begin() || at % limits.chunk_size == 0);
      EXPECT_EQ(r, domains.owner(domain.offset));
      EXPECT_EQ(r, domains.owner(domain.end() - 1));
      at = domain.end();
    }
    EXPECT_EQ(domains.end(), at);
    // messages[r]: what goes to rank r, one after the other with their sizes.
    std::vector<std::vector<std::vector<std::byte>>> in(ranks);
    for (FragmentCursor& cursor : cursors) {
      pack(cursor, domains, out, sizes);
      const std::byte* from = out.data();
      for (unsigned r = 0; r < ranks; ++r) {
        if (sizes[r] != 0) in[r].emplace_back(from, from + sizes[r]);
        from += sizes[r];
      }
      EXPECT_LE(from, out.data() + out.size());
    }
    for (unsigned r = 0; r < ranks; ++r) {
      if (in[r].empty()) continue;
      buffer.reset(domains.domain(r));
      for (const auto& message : in[r]) EXPECT_TRUE(buffer.merge(message));
      std::uint64_t end = 0;
      for (MemoryRun run = buffer.next_run(); run.length != 0; run = buffer.next_run()) {
        EXPECT_TRUE(end == 0 || run.file_offset > end);  // else it would be one run
        end = run.file_offset + run.length;
        EXPECT_GE(run.file_offset, domains.domain(r).offset);
        EXPECT_LE(end, domains.domain(r).end());
        for (std::uint64_t i = 0; i < run.length; ++i) written[run.file_offset + i] = run.data[i];
      }
    }
    if (testing::Test::HasFailure()) return windows;
  }
}

std::unique_ptr<Writer> random_writer(std::mt19937& random, std::uint64_t within) {
  auto w = std::make_unique<Writer>();
  const std::size_t pieces = 1 + random() % 6;
  std::int64_t at = random() % 20;
  const std::uint32_t scale = random() % 3 == 0 ? 300 : 12;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::int64_t length = random() % scale;
    w->offsets.push_back(at);
    w->lengths.push_back(length);
    at += length + (random() % 2 == 0 ? 0 : random() % (2 * scale));
  }
  w->lengths.back() += 1;
  at += 1;
  // Sometimes repetitions go back behind the one before.
  const std::int64_t extent = random() % 10 == 0 ? at / 2 : at + random() % 50;
  w->finish(static_cast<std::int64_t>(random() % within), extent, random() % 3000, random);
  return w;
}

TEST(Domains, WriteWhatTheRanksWrite) {
  std::mt19937 random(1);
  for (int round = 0; round < 120; ++round) {
    std::vector<std::unique_ptr<Writer>> writers;
    const std::size_t ranks = 1 + random() % 12;
    for (std::size_t r = 0; r < ranks; ++r) {
      writers.push_back(random_writer(random, round % 2 == 0 ? 100 : 100000));
    }
    Limits limits;
    limits.budget = 64 + random() % 4000;
    limits.chunk_size = std::vector<std::uint32_t>{1, 7, 512, 513}[random() % 4];
    limits.largest = limits.chunk_size * (1 + random() % 8);
    exchange_all(writers, limits);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// Blocks dealt to thousands of ranks in turn, as a row of a global array is.
TEST(Domains, ThousandsOfRanksInterleaved) {
  std::mt19937 random(2);
  for (const std::size_t ranks : {1000, 3000}) {
    constexpr std::int64_t kPiece = 8;
    std::vector<std::unique_ptr<Writer>> writers;
    for (std::size_t r = 0; r < ranks; ++r) {
      auto w = std::make_unique<Writer>();
      w->offsets = {0};
      w->lengths = {kPiece};
      const auto row = static_cast<std::int64_t>(ranks) * kPiece;
      w->finish(1000 + static_cast<std::int64_t>(r) * kPiece, row, 6 * kPiece, random);
      writers.push_back(std::move(w));
    }
    // All of it fits into one window, rounded up to chunks.
    EXPECT_EQ(1, exchange_all(writers, {4096, 64, 128}));
    EXPECT_LT(1, exchange_all(writers, {64, 64, 64}));
  }
}

TEST(Domains, HolesCostNoWindows) {
  std::mt19937 random(3);
  std::vector<std::unique_ptr<Writer>> writers;
  for (std::int64_t r = 0; r < 4; ++r) {
    auto w = std::make_unique<Writer>();
    w->offsets = {0};
    w->lengths = {10};
    w->finish(r * 10, std::int64_t{1} << 40, 50, random);
    writers.push_back(std::move(w));
  }
  EXPECT_EQ(5, exchange_all(writers, {}));
}

TEST(Domains, OfAWindowSplitEquallyAtChunks) {
  Reach all;
  all.next = 1000;
  all.end = 1000 + 10 * 512;
  const Domains d = Domains::agree(all, 4, 512, 1 << 20);
  // From 512 on: 11 chunks, three a rank.
  EXPECT_EQ((ByteRange{1000, 512 + 3 * 512 - 1000}), d.domain(0));
  EXPECT_EQ((ByteRange{4 * 512, 3 * 512}), d.domain(1));
  EXPECT_EQ((ByteRange{7 * 512, 3 * 512}), d.domain(2));
  EXPECT_EQ((ByteRange{10 * 512, 1000 + 10 * 512 - 10 * 512}), d.domain(3));
  const Domains few = Domains::agree(all, 100, 512, 1 << 20);
  EXPECT_EQ(0, few.domain(50).length);
}

TEST(DomainBuffer, RefusesWhatIsNoMessage) {
  DomainBuffer buffer(100);
  const auto merges = [&](std::vector<int> numbers) {
    std::vector<std::byte> message;
    for (const int n : numbers) message.push_back(static_cast<std::byte>(n));
    buffer.reset({1000, 100});
    return buffer.merge(message);
  };
  EXPECT_TRUE(merges({}));
  EXPECT_TRUE(merges({0, 2, 1, 1}));
  EXPECT_TRUE(merges({98, 2, 1, 1}));
  EXPECT_FALSE(merges({99, 2, 1, 1}));  // beyond the domain
  EXPECT_FALSE(merges({101, 0}));       // so is this
  EXPECT_FALSE(merges({0, 3, 1, 1}));   // too little data
  EXPECT_FALSE(merges({0}));            // no length
  EXPECT_FALSE(merges({128, 128}));     // a number without an end
  EXPECT_FALSE(merges({128, 128, 128, 128, 128, 128, 128, 128, 128, 2, 0}));  // 65 bits
  std::mt19937 random(4);
  for (int i = 0; i < 20000; ++i) {
    std::vector<int> numbers(random() % 30);
    for (int& n : numbers)
      n = static_cast<int>(random() % 256) / (1 + static_cast<int>(random() % 30));
    merges(numbers);
    std::uint64_t end = 1000;
    for (MemoryRun run = buffer.next_run(); run.length != 0; run = buffer.next_run()) {
      EXPECT_LE(end, run.file_offset);
      end = run.file_offset + run.length;
    }
    EXPECT_LE(end, 1100);
  }
}

TEST(DomainBuffer, FindsRunsAtAllBoundariesOfWords) {
  DomainBuffer buffer(300);
  for (int begin = 0; begin < 200; ++begin) {
    for (int length : {1, 2, 63, 64, 65, 100}) {
      std::vector<std::byte> message;
      for (int number : {begin, length}) {
        if (number >= 128) {
          message.push_back(static_cast<std::byte>(number | 128));
          number >>= 7;
        }
        message.push_back(static_cast<std::byte>(number));
      }
      message.resize(message.size() + static_cast<std::size_t>(length), std::byte{9});
      buffer.reset({5000, 300});
      ASSERT_TRUE(buffer.merge(message));
      const MemoryRun run = buffer.next_run();
      ASSERT_EQ(5000u + static_cast<unsigned>(begin), run.file_offset);
      ASSERT_EQ(static_cast<unsigned>(length), run.length);
      ASSERT_EQ(0, buffer.next_run().length);
    }
  }
}

}  // namespace
}  // namespace dedup::plan
