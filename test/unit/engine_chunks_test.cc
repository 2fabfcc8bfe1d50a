// The stages of a dump that need no MPI, one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "engine/chunks/copies.h"
#include "engine/chunks/cut_chunks.h"
#include "engine/chunks/judge.h"
#include "engine/chunks/known_chunks.h"
#include "engine/chunks/name_chunks.h"
#include "engine/chunks/node_chunks.h"
#include "engine/chunks/own_units.h"
#include "engine/chunks/sends.h"
#include "test/hooks/names.h"

namespace dedup::engine {
namespace {

constexpr std::uint32_t kChunk = 64;

// One chunk for each number: 0 is zeros.
Bytes data_of(const std::vector<std::uint64_t>& contents) {
  Bytes bytes(contents.size() * kChunk);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    std::memcpy(bytes.data() + i * kChunk, &contents[i], sizeof contents[i]);
  }
  return bytes;
}

Fingerprint named(std::uint64_t a, std::uint64_t b = 0) {
  Fingerprint f;
  std::memcpy(f.bytes.data(), &a, sizeof a);
  std::memcpy(f.bytes.data() + 8, &b, sizeof b);
  return f;
}

// What a rank would cut of `contents`, in one round.
struct OneRank {
  explicit OneRank(const std::vector<std::uint64_t>& contents) : data(data_of(contents)) {
    const DumpRun run{0, data.data(), data.size()};
    RunCursor cursor(std::span(&run, 1), kChunk);
    pieces.reserve(contents.size());
    FirstError error;
    chunks = cut_distinct(cursor, contents.size() + 1, test::keyed_namer(), pieces, error);
  }
  Bytes data;
  std::vector<DumpedPiece> pieces;
  CutChunks chunks;
};

TEST(CutChunks, TakesEqualChunksOnceAndLeavesZerosOut) {
  const OneRank rank({7, 0, 9, 7, 0, 0, 7});
  ASSERT_EQ(rank.chunks.size(), 2u);
  EXPECT_EQ(rank.chunks.data(0).data(), rank.data.data());
  EXPECT_EQ(rank.chunks.data(1).data(), rank.data.data() + 2 * kChunk);
  ASSERT_EQ(rank.pieces.size(), 6u);  // two of the zeros follow each other
  std::vector<std::uint32_t> numbers;
  for (const DumpedPiece& piece : rank.pieces) {
    if (!piece.zero) numbers.push_back(piece.placement);
  }
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 0, 0}));
  EXPECT_EQ(rank.pieces[4].length, 2 * kChunk);
  EXPECT_EQ(rank.chunks.sums().cut, 7 * kChunk);
  EXPECT_EQ(rank.chunks.sums().zero, 3 * kChunk);
  EXPECT_EQ(rank.chunks.sums().unique, 2 * kChunk);
}

TEST(CutChunks, GoesOnInTheNextRoundWhereTheLastOneEnded) {
  const Bytes data = data_of({1, 2, 0, 3, 2});
  const std::vector<DumpRun> runs = {{1000, data.data(), 3 * kChunk},
                                     {5000, data.data() + 3 * kChunk, 2 * kChunk}};
  RunCursor cursor(runs, kChunk);
  std::vector<DumpedPiece> pieces;
  pieces.reserve(5);
  FirstError error;
  EXPECT_EQ(cut_distinct(cursor, 1, test::keyed_namer(), pieces, error).size(), 1u);
  const CutChunks second = cut_distinct(cursor, 3, test::keyed_namer(), pieces, error);
  EXPECT_EQ(second.size(), 2u);  // the last one equals the round's first
  ASSERT_EQ(second.pieces().size(), 4u);
  EXPECT_EQ(second.pieces()[0].file_offset, 1000 + kChunk);
  EXPECT_EQ(second.pieces()[2].file_offset, 5000u);
  EXPECT_EQ(second.pieces()[3].placement, 0u);
  EXPECT_EQ(cut_distinct(cursor, 9, test::keyed_namer(), pieces, error).size(), 0u);
}

TEST(CutChunks, KeepsPrefixesOfOneAnotherApart) {
  const Bytes data = data_of({5, 5});
  const std::vector<DumpRun> runs = {{0, data.data(), kChunk}, {500, data.data(), kChunk / 2}};
  RunCursor cursor(runs, kChunk);
  std::vector<DumpedPiece> pieces;
  pieces.reserve(2);
  FirstError error;
  EXPECT_EQ(cut_distinct(cursor, 2, test::keyed_namer(), pieces, error).size(), 2u);
  EXPECT_TRUE(error.none());
}

TEST(CutChunks, NumbersEachChunkInModeNone) {
  const Bytes data = data_of({7, 7, 0, 7});
  const DumpRun run{0, data.data(), data.size()};
  RunCursor cursor(std::span(&run, 1), kChunk);
  std::vector<DumpedPiece> pieces;
  pieces.reserve(4);
  UniqueNumbers numbers;
  const CutChunks chunks = cut_numbered(cursor, 4, numbers, pieces);
  ASSERT_EQ(chunks.size(), 3u);
  const std::set<Fingerprint> names{chunks.name(0), chunks.name(1), chunks.name(2)};
  EXPECT_EQ(names.size(), 3u);
  EXPECT_EQ(kind_of(chunks.name(0)), NameKind::kNumber);
  EXPECT_EQ(chunks.checksum(0), fast_hash(chunks.data(0)).low);
}

// Says of chunks' data where they stand.
class LogOf : public store::AdoptedLog {
 public:
  std::map<const std::byte*, std::uint64_t> places;

  std::uint64_t place_of(std::span<const std::byte> data) const override {
    const auto found = places.find(data.data());
    return found == places.end() ? kNowhere : found->second;
  }
  Status append(std::span<const store::SegmentChunk>, std::span<store::ChunkLocation>) override {
    return {};
  }
  Status write_out() override { return {}; }
  Status flush() override { return {}; }
  Status begin_flush(Worker&) override { return {}; }
  Status end_flush() override { return {}; }
  void start_write_back(Worker&) override {}
  std::uint64_t number() const override { return 0; }
  std::uint64_t size() const override { return 0; }
};

// A reader takes what stands behind a chunk for the one with the next number.
TEST(NameChunks, NumbersGoOnWhereChunksStandOneAfterTheOther) {
  OneRank rank({1, 2, 3, 4, 5, 6, 7});
  NamedChunks chunks(std::move(rank.chunks), NamedChunks::Kind::kOpen);
  LogOf log;
  const auto stands = [&](std::size_t i, std::uint64_t place) {
    log.places[chunks.data(i).data()] = place;
  };
  const std::uint64_t size = chunks.length(0);
  stands(0, 1000);
  stands(1, 1000 + size);
  stands(3, 1000 + 2 * size);  // between them is one that stands nowhere
  stands(4, 7000);
  SingleNumbers numbers;
  const std::uint64_t before = numbers.next();
  name_the_rest(chunks, numbers, &log);
  std::vector<std::uint64_t> steps;
  std::uint64_t last = before;
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    const std::uint64_t number = number_of_single(chunks.name(i));
    steps.push_back(number - last);
    last = number;
  }
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{2, 1, 2, 2, 2, 2, 1}));
}

TEST(NameChunks, NamesByWhoMayHaveTheSame) {
  OneRank rank({1, 2, 3});
  const Fingerprint in_store = named(77);
  SingleNumbers numbers;
  NamedChunks chunks(std::move(rank.chunks), NamedChunks::Kind::kOpen);
  const auto here = plan::Placement::copies_on({3, 5});
  chunks.name_held(1, in_store, here);  // single there, and the same
  share_twins(chunks, {1, 1, 0});
  EXPECT_TRUE(chunks.is_open(2));
  name_the_rest(chunks, numbers);
  EXPECT_EQ(chunks.name(0), test::content_name(chunks.data(0)));
  EXPECT_EQ(chunks.name(1), in_store);
  EXPECT_EQ(kind_of(chunks.name(2)), NameKind::kKeyedSingle);
  EXPECT_EQ(content_of(chunks.name(2)), test::content_name(chunks.data(2)));
  EXPECT_EQ(chunks.singles(), 1u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(chunks.is_single(i), i == 2);
    EXPECT_EQ(chunks.is_held(i), i == 1);
    EXPECT_FALSE(chunks.is_open(i));
  }
  const ChunkRecords shared = chunks.take_records();
  ASSERT_EQ(shared.list.size(), 2u);
  EXPECT_EQ(shared.list[1].fingerprint, in_store);
  EXPECT_EQ(shared.list[1].length, kChunk);
  EXPECT_EQ(shared.placements[shared.list[1].held], here);
  EXPECT_EQ(shared.list[0].held, ChunkRecord::kNotHeld);
}

TEST(KnownChunks, CountsOnlyStoresOfTheJobAndItsOwn) {
  KnownChunks known(3);
  known.hold(0, plan::Placement::copies_on({2, 5, 9}), 4, plan::LiveNodes(8));
  EXPECT_TRUE(known.is_held(0));
  EXPECT_EQ(known.placement(0), plan::Placement::copies_on({2, 4, 5}));
  known.settle(1, plan::Placement::copies_on({1, 2}));
  EXPECT_TRUE(known.is_settled(1));
  EXPECT_EQ(known.placement(1), plan::Placement::copies_on({1, 2}));
  EXPECT_TRUE(known.is_new(2));
}

ChunkRecords records_of(std::vector<ChunkRecord> list) {
  return {std::move(list), {}};
}

TEST(KnownChunks, AreWhatWasSettledAndWhatAnyRankFound) {
  ChunkRecords records =
      records_of({{named(1), 10}, {named(2), 20}, {named(2), 20}, {named(3), 30}});
  const std::uint32_t number = records.placements.number(plan::Placement::copies_on({5, 9}));
  records.list[0].held = records.list[2].held = number;
  const NodeChunks chunks(std::move(records), {2, 2});
  plan::SettledChunks settled(10);
  settled.add({{named(1), plan::Placement::copies_on({1, 2})}}, 1);
  const KnownChunks known = look_up(chunks, settled, 4, plan::LiveNodes(8));
  EXPECT_TRUE(known.is_settled(0));
  EXPECT_TRUE(known.is_held(1));
  EXPECT_EQ(known.placement(1), plan::Placement::copies_on({4, 5}));
  EXPECT_TRUE(known.is_new(2));
}

TEST(NodeChunks, TravelWithWhatIsKnownOfThem) {
  const auto first = plan::Placement::copies_on({1, 2});
  const auto second = plan::Placement::copies_on({7});
  ChunkRecords mine;
  std::map<Fingerprint, const plan::Placement*> expected;
  for (std::uint32_t n = 0; n < 60; ++n) {
    ChunkRecord record{named(n, n * 7), 10 + n};
    const plan::Placement* placement = n % 3 == 0 ? nullptr : n % 3 == 1 ? &first : &second;
    if (placement != nullptr) record.held = mine.placements.number(*placement);
    expected[record.fingerprint] = placement;
    mine.list.push_back(record);
  }
  const DealtRecords dealt = deal_records(std::move(mine), {4, 4});
  std::size_t begin = 0;
  std::size_t seen = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    const Bytes part(dealt.bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                     dealt.bytes.begin() + static_cast<std::ptrdiff_t>(begin + dealt.sizes[r]));
    begin += dealt.sizes[r];
    const auto chunks = NodeChunks::read(part, {part.size()});
    ASSERT_TRUE(chunks.is_ok());
    EXPECT_EQ(chunks->size(), dealt.counts[r]);
    seen += chunks->size();
    for (std::uint32_t c = 0; c < chunks->size(); ++c) {
      const Fingerprint& name = (*chunks)[c].fingerprint;
      EXPECT_EQ((Lanes{4, 4}.decider(name)), static_cast<int>(r));
      ASSERT_EQ(chunks->held(c) != nullptr, expected.at(name) != nullptr);
      if (chunks->held(c) != nullptr) {
        EXPECT_EQ(*chunks->held(c), *expected.at(name));
      }
    }
    // Cut anywhere else than between two records, or of another length than was said.
    for (std::size_t size = 0; size < part.size(); ++size) {
      const Bytes cut(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(size));
      const auto read = NodeChunks::read(cut, {size});
      EXPECT_TRUE(!read.is_ok() || read->size() < chunks->size()) << size;
      EXPECT_FALSE(NodeChunks::read(cut, {part.size()}).is_ok()) << size;
      EXPECT_FALSE(NodeChunks::read(part, {size}).is_ok()) << size;
    }
  }
  EXPECT_EQ(seen, 60u);
  EXPECT_EQ(begin, dealt.bytes.size());
}

TEST(NodeChunks, FindsWhatSeveralRanksHave) {
  const NodeChunks chunks(
      records_of({{named(1), 10}, {named(2), 20}, {named(2), 20}, {named(3), 30}, {named(2), 20}}),
      {2, 2, 1});
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[1].length, 20u);
  EXPECT_EQ(chunks.ranks(0), 1u);
  EXPECT_EQ(chunks.ranks(1), 3u);
}

TEST(NodeChunks, TellsOneRankToActAndAllOfTheHolders) {
  for (std::uint64_t n = 0; n < 20; ++n) {
    ChunkRecords records = records_of({{named(n), 10}, {named(n), 10}, {named(n), 10}});
    NodeVerdicts verdicts;
    const Verdict verdict{true, {4, 6}, plan::Placement::copies_on({1, 4, 6})};
    verdicts.of = {verdicts.list.number(verdict)};
    const Answers answers = NodeChunks(std::move(records), {1, 1, 1}).answer(verdicts);
    ASSERT_EQ(answers.sizes.size(), 3u);
    std::size_t begin = 0;
    unsigned told = 0;
    for (const std::uint64_t size : answers.sizes) {
      const Bytes part(answers.bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                       answers.bytes.begin() + static_cast<std::ptrdiff_t>(begin + size));
      begin += size;
      Numbered<Verdict> list;
      const auto numbers = read_answers(part, {1}, list);
      ASSERT_TRUE(numbers.is_ok());
      const Verdict& got = list[(*numbers)[0]];
      EXPECT_EQ(got.placement, verdict.placement);
      told += got.keep ? 1 : 0;
      EXPECT_EQ(got.targets.size(), got.keep ? 2u : 0u);
    }
    EXPECT_EQ(told, 1u) << n;
  }
}

TEST(NodeChunks, RefusesAnswersThatCannotBe) {
  NodeVerdicts verdicts;
  verdicts.of = {verdicts.list.number(Verdict{true, {4}, plan::Placement::copies_on({1, 4})})};
  const Answers answers = NodeChunks(records_of({{named(1), 10}}), {1}).answer(verdicts);
  Numbered<Verdict> list;
  EXPECT_TRUE(read_answers(answers.bytes, {1}, list).is_ok());
  for (std::size_t size = 0; size < answers.bytes.size(); ++size) {
    const Bytes cut(answers.bytes.begin(),
                    answers.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(read_answers(cut, {1}, list).is_ok()) << size;
  }
  Bytes longer = answers.bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read_answers(longer, {1}, list).is_ok());
  Bytes other = answers.bytes;
  other[other.size() - 4] = std::byte{1};  // a verdict that is not there
  EXPECT_FALSE(read_answers(other, {1}, list).is_ok());
}

TEST(Judge, LeavesOutOfTheReductionWhatConcernsNobodyElse) {
  const NodeIndex self = 4;
  const plan::LiveNodes live(8);
  const Fingerprint single = test::single_name(data_of({1}), 3);
  const Fingerprint single_too_few = test::single_name(data_of({2}), 3);
  const Fingerprint strong = named(~std::uint64_t{0}, 9);
  NodeView view{self,
                NodeChunks(records_of({{single, 10}, {single_too_few, 20}, {strong, 30}}), {3}),
                KnownChunks(3),
                {}};
  const auto on_two = plan::Placement::copies_on({4, 6});
  view.known.hold(0, on_two, self, live);
  view.known.hold(1, plan::Placement(), self, live);
  view.known.hold(2, on_two, self, live);
  const auto names_in = [&](unsigned copies) {
    view.wanted = plan::Redundancy::copies(copies);
    std::set<Fingerprint> names;
    const plan::FrequentSet part = frequent_part(view, 0, {copies, 100, 8});
    for (const auto& element : part.elements()) names.insert(element.fingerprint);
    return names;
  };
  EXPECT_EQ(names_in(2), (std::set{single_too_few, strong}));
  EXPECT_EQ(names_in(3), (std::set{single, single_too_few, strong}));
  EXPECT_EQ(names_in(1), (std::set{strong}));
}

TEST(Sends, NeverExceedsNorFallsShortOfWhatWasAnnounced) {
  const std::vector<Send> list = {{3, 0}, {3, 1}, {5, 0}};
  const std::vector<Target> targets = {{3, 10, 4}, {4, 0, 0}, {5, 7, 1}};
  {
    FirstError error;
    const Sends sends =
        number_sends(list, targets, std::vector<std::uint64_t>{2, 0, 0}, true, error);
    EXPECT_TRUE(error.none());
    EXPECT_EQ(sends.ranges, (std::vector<SlotRange>{{3, 12, 2}, {4, 0, 0}, {5, 7, 1}}));
    EXPECT_EQ(sends.chunk_of(0, 1), 1u);
    EXPECT_EQ(sends.chunk_of(2, 0), 0u);
  }
  {
    FirstError error;
    const Sends sends =
        number_sends(list, targets, std::vector<std::uint64_t>{3, 0, 0}, true, error);
    EXPECT_EQ(error.status().code(), Code::kInternal);
    EXPECT_EQ(sends.ranges[0], (SlotRange{3, 13, 1}));
  }
  {
    FirstError error;
    const Sends sends =
        number_sends(list, targets, std::vector<std::uint64_t>{0, 0, 0}, true, error);
    EXPECT_EQ(error.status().code(), Code::kInternal);
    EXPECT_EQ(sends.ranges[0], (SlotRange{3, 10, 4}));
    EXPECT_EQ(sends.chunk_of(0, 2), Sends::kNone);
    EXPECT_EQ(sends.chunk_of(2, 1), Sends::kNone);
  }
  {
    FirstError error;  // a higher rank sends the others
    number_sends(list, targets, std::vector<std::uint64_t>{0, 0, 0}, false, error);
    EXPECT_TRUE(error.none());
  }
}

TEST(Copies, AreOnlyWhatWasSent) {
  const OneRank rank({42});
  const CopyHeader said{named(9), 3, 17, true, rank.chunks.checksum(0)};
  const auto placement = plan::Placement::copies_on({1, 5});
  Bytes header(CopyHeader::size(2));
  said.write(placement, header);
  Numbered<plan::Placement> placements;
  const auto read = [&](std::uint64_t slot, std::uint32_t exchange) {
    return read_parcel({slot, header, rank.chunks.data(0)}, exchange, placements);
  };
  const auto chunk = read(17, 3);
  ASSERT_TRUE(chunk.is_ok());
  EXPECT_EQ(chunk->fingerprint, named(9));
  EXPECT_TRUE(chunk->single);
  EXPECT_EQ(chunk->checksum, rank.chunks.checksum(0));
  EXPECT_EQ(placements[chunk->placement], placement);
  EXPECT_FALSE(read(18, 3).is_ok());
  EXPECT_FALSE(read(17, 4).is_ok());
  for (std::size_t i = 0; i < header.size(); ++i) {
    header[i] ^= std::byte{0x10};
    EXPECT_EQ(read(17, 3).status().code(), Code::kIo) << i;
    header[i] ^= std::byte{0x10};
  }
  Bytes data(rank.chunks.data(0).begin(), rank.chunks.data(0).end());
  data[5] ^= std::byte{1};
  EXPECT_EQ(read_parcel({17, header, data}, 3, placements).status().code(), Code::kIo);
  write_no_copy(header);
  EXPECT_FALSE(read_parcel({0, header, {}}, 0, placements).is_ok());
}

// Chunks of 4 KiB, every third of which several ranks may have, and what becomes of them: the node
// keeps all but the first two alone.
struct Kept {
  static constexpr NodeIndex kNode = 3;
  static constexpr std::uint32_t kLength = 4096;

  explicit Kept(std::size_t count) : data(count * kLength) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(data.data() + i * kLength, &i, sizeof i);
      data[i * kLength + 100] = std::byte{1};
    }
    const DumpRun run{0, data.data(), data.size()};
    RunCursor cursor(std::span(&run, 1), kLength);
    pieces.reserve(count);
    FirstError error;
    chunks = NamedChunks(cut_distinct(cursor, count, test::keyed_namer(), pieces, error),
                         NamedChunks::Kind::kOpen);
    std::vector<std::uint8_t> may_have_twin;
    for (std::size_t i = 0; i < count; ++i) may_have_twin.push_back(i % 3 == 0);
    share_twins(chunks, may_have_twin);
    SingleNumbers numbers;
    name_the_rest(chunks, numbers);
    const auto alone = plan::Placement::copies_on({kNode});
    verdicts.of = {verdicts.list.number({false, {}, plan::Placement::copies_on({1})}),
                   verdicts.list.number({true, {}, plan::Placement::copies_on({1, kNode})})};
    verdicts.of.resize(count, verdicts.list.number({true, {}, alone}));
  }
  OwnUnits units() { return {chunks, verdicts, kNode, 8}; }

  Bytes data;
  std::vector<DumpedPiece> pieces;
  NamedChunks chunks;
  Verdicts verdicts;
};

TEST(OwnUnits, AreWholeOnesOfWhatTheNodeKeepsAlone) {
  for (const auto& [count, full] :
       {std::pair{2u, 0u}, {129u, 0u}, {130u, 1u}, {257u, 1u}, {258u, 2u}}) {
    Kept kept(count);
    const OwnUnits units = kept.units();
    ASSERT_EQ(units.count(), full) << count;
    EXPECT_EQ(units.longest(), full == 0 ? 0 : plan::kUnitBytes);
    for (std::uint32_t u = 0; u < full; ++u) {
      const plan::UnitChunks unit = units.unit(u);
      ASSERT_EQ(unit.size(), 128u);
      for (std::size_t i = 0; i < unit.size(); ++i) {
        EXPECT_EQ(unit[i].fingerprint, kept.chunks.name(2 + u * 128 + i));
      }
    }
  }
}

TEST(OwnUnits, HaveAsManyChunksAsATableHasRoomFor) {
  OneRank rank([] {
    std::vector<std::uint64_t> contents(5000);
    std::iota(contents.begin(), contents.end(), 1);
    return contents;
  }());
  const NamedChunks chunks(std::move(rank.chunks), NamedChunks::Kind::kSingle);
  Verdicts verdicts;
  verdicts.of.resize(chunks.size(),
                     verdicts.list.number({true, {}, plan::Placement::copies_on({0})}));
  const OwnUnits units(chunks, verdicts, 0, 8);
  const std::size_t most = plan::most_unit_chunks(8);
  ASSERT_EQ(units.count(), 5000 / most);
  EXPECT_EQ(units.unit(0).size(), most);
}

TEST(OwnUnits, GiveTheirBytesSealed) {
  Kept kept(300);
  const OwnUnits units = kept.units();
  Bytes bytes(plan::kUnitBytes);
  const auto seals = units.read(1, bytes.data());
  ASSERT_TRUE(seals);
  const plan::UnitChunks unit = units.unit(1);
  ASSERT_EQ(seals->size(), unit.size());
  for (std::size_t i = 0; i < unit.size(); ++i) {
    const auto chunk = std::span(bytes).subspan(i * Kept::kLength, Kept::kLength);
    EXPECT_TRUE(store::holds((*seals)[i], {unit[i].fingerprint, chunk}));
  }
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), kept.data.begin() + 130 * Kept::kLength));
}

// One whose name says what it is, is found out by who receives it.
TEST(OwnUnits, AreNotGivenOnceAChunkHasChanged) {
  Kept kept(300);
  const OwnUnits units = kept.units();
  Bytes bytes(plan::kUnitBytes);
  kept.data[3 * Kept::kLength + 7] ^= std::byte{1};
  EXPECT_FALSE(units.read(0, bytes.data()));
  EXPECT_TRUE(units.read(1, bytes.data()));
  kept.data[130 * Kept::kLength + 7] ^= std::byte{1};
  const auto seals = units.read(1, bytes.data());
  ASSERT_TRUE(seals);
  EXPECT_FALSE(store::holds((*seals)[0],
                            {units.unit(1)[0].fingerprint, std::span(bytes).first(Kept::kLength)}));
}

TEST(OwnUnits, SayHowTheyAreKept) {
  Kept kept(300);
  OwnUnits units = kept.units();
  const auto alone = plan::Placement::copies_on({Kept::kNode});
  const auto placed = plan::Placement::in_stripe({Id128{{1}}, 0, 2, {Kept::kNode, 4, 5}});
  units.place(1, placed);
  EXPECT_EQ(kept.verdicts[129].placement, alone);
  EXPECT_EQ(kept.verdicts[130].placement, placed);
  EXPECT_EQ(kept.verdicts[257].placement, placed);
  EXPECT_TRUE(kept.verdicts[257].keep);
  EXPECT_EQ(kept.verdicts[258].placement, alone);
  units.take_back(1);
  for (std::size_t i = 2; i < 300; ++i) EXPECT_EQ(kept.verdicts[i].placement, alone);
  EXPECT_FALSE(kept.verdicts[0].keep);
}

}  // namespace
}  // namespace dedup::engine
