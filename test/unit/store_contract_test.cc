// What every store does, in files or in memory: the promises of store/store.h.
#include "test/unit/store_contract.h"

#include <set>

#include "base/worker.h"
#include "store/chunk_check.h"
#include "store/deletion.h"
#include "store/survey.h"
#include "test/unit/shard_helpers.h"

namespace dedup::store::contract {
namespace {

TYPED_TEST_SUITE(StoreContract, Kinds, KindNames);

// ---- A full disk --------------------------------------------------------------------------------

TYPED_TEST(StoreContract, AFullDiskIsAnErrorThatTakesNothingAway) {
  auto what = this->chunks({1000, 4096});
  this->put(*this->store_, 1, what);
  const CommitRecord committed = this->commit(1, what);
  this->kind_.set_full(true);
  const Bytes data = random_bytes(this->random_, 3 << 20);
  const auto put = [&]() -> Status {
    DEDUP_ASSIGN(const auto writer, this->store_->create_segment(this->identity_, 2));
    Status status;
    for (std::size_t at = 0; at < data.size() && status.is_ok(); at += kMaxChunkSize) {
      const auto part = std::span(data).subspan(at, kMaxChunkSize);
      status = writer->append(random_fingerprint(this->random_), part).status();
    }
    if (status.is_ok()) status = writer->write_out();
    // It stays failed.
    if (!status.is_ok()) {
      EXPECT_EQ(writer->write_out().code(), status.code());
    }
    return status;
  };
  EXPECT_EQ(put().code(), Code::kNoSpace);
  const auto log = [&]() -> Status {
    DEDUP_ASSIGN(const auto writer, this->store_->create_log(this->identity_, 1));
    return writer->append(data).status();
  };
  EXPECT_EQ(log().code(), Code::kNoSpace);
  // What was there is there, for whoever opens it as well.
  Bytes out;
  const auto opened = this->kind_.open(false);
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  const Store& other = **opened;
  for (const Chunk& chunk : what) {
    EXPECT_TRUE(TestFixture::get(other, this->identity_, chunk, out).is_ok());
    EXPECT_EQ(out, chunk.data);
  }
  const auto found = other.find(TestFixture::kPath);
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  ASSERT_EQ(found->records.size(), 1u);
  EXPECT_EQ(found->records[0].attempt, committed.attempt);
  // And when there is room again, it goes on.
  this->kind_.set_full(false);
  auto more = this->chunks({3000});
  this->put(*this->store_, 3, more);
  EXPECT_EQ(this->commit(2, more, committed.attempt).number, 2u);
}

// ---- Chunks -------------------------------------------------------------------------------------

TYPED_TEST(StoreContract, GivesBackWhatWasPutToWhoeverOpensIt) {
  auto what = this->chunks({1, 1, 511, 512, 513, 4096, 4096, kMaxChunkSize, kMaxChunkSize});
  this->put(*this->store_, 1, what);
  const auto other = this->open();
  EXPECT_EQ(other->uuid(), this->store_->uuid());
  Bytes out;
  for (const Store* const store : {this->store_.get(), other.get()}) {
    for (const Chunk& chunk : what) {
      const Status got = TestFixture::get(*store, this->identity_, chunk, out);
      EXPECT_TRUE(got.is_ok()) << got.message();
      EXPECT_EQ(out, chunk.data);
    }
  }
}

TYPED_TEST(StoreContract, TakesNoChunkOfNoOrOfTooManyBytes) {
  auto writer = this->store_->create_segment(this->identity_, 1);
  ASSERT_TRUE(writer.is_ok());
  EXPECT_EQ((*writer)->append(random_fingerprint(this->random_), {}).status().code(),
            Code::kArgument);
  const Bytes large(kMaxChunkSize + 1);
  EXPECT_EQ((*writer)->append(random_fingerprint(this->random_), large).status().code(),
            Code::kArgument);
}

TYPED_TEST(StoreContract, ShowsWhatIsWrittenOutAndNoSooner) {
  auto what = this->chunks({1000});
  auto writer = this->store_->create_segment(this->identity_, 1);
  ASSERT_TRUE(writer.is_ok());
  const auto at = (*writer)->append(what[0].fingerprint, what[0].data);
  ASSERT_TRUE(at.is_ok());
  what[0].location = *at;
  const std::uint64_t end = chunk_end(what[0].fingerprint, *at);
  EXPECT_LT(*this->store_->segment_size(this->identity_, 1), end);
  Worker worker;
  ASSERT_TRUE((*writer)->begin_flush(worker).is_ok());
  ASSERT_TRUE((*writer)->end_flush().is_ok());
  EXPECT_GE(*this->store_->segment_size(this->identity_, 1), end);
  Bytes out;
  EXPECT_TRUE(TestFixture::get(*this->store_, this->identity_, what[0], out).is_ok());
  EXPECT_TRUE(this->store_->flush_segment(this->identity_, 1).is_ok());
}

TYPED_TEST(StoreContract, SaysThatAChunkIsAnotherOrIsNotThere) {
  auto what = this->chunks({1000, 1000});
  this->put(*this->store_, 1, what);
  Bytes out;
  Chunk other = what[0];
  other.fingerprint = random_fingerprint(this->random_);
  EXPECT_EQ(TestFixture::get(*this->store_, this->identity_, other, out).code(), Code::kCorrupt);
  Chunk gone = what[0];
  gone.location.segment = 2;
  EXPECT_EQ(TestFixture::get(*this->store_, this->identity_, gone, out).code(), Code::kNotFound);
  EXPECT_EQ(TestFixture::get(*this->store_, random_id(this->random_), what[0], out).code(),
            Code::kNotFound);
  EXPECT_EQ(this->store_->segment_size(this->identity_, 2).status().code(), Code::kNotFound);
  EXPECT_FALSE(this->store_->flush_segment(this->identity_, 2).is_ok());
  EXPECT_EQ(this->store_->create_segment(this->identity_, 1).status().code(), Code::kFileExists);
}

TYPED_TEST(StoreContract, ReadsNoChunkThatWasSpoiled) {
  auto what = this->chunks({1000, 1000, 1000});
  this->put(*this->store_, 1, what);
  ASSERT_TRUE(this->store_->spoil_chunk(this->identity_, what[2].location).is_ok());
  Bytes out;
  EXPECT_EQ(TestFixture::get(*this->store_, this->identity_, what[2], out).code(), Code::kCorrupt);
  EXPECT_TRUE(TestFixture::get(*this->store_, this->identity_, what[0], out).is_ok());
  ASSERT_TRUE(this->store_->spoil_chunk(this->identity_, what[2].location).is_ok());
  EXPECT_TRUE(TestFixture::get(*this->store_, this->identity_, what[2], out).is_ok());
}

// What is appended one after the other can be guessed: a run with headers, or one without whose
// numbers go on. Guessing ends where something else stands.
TYPED_TEST(StoreContract, FindsWhatFollowsWithoutLookingItUp) {
  auto with = this->chunks({700});
  for (int i = 0; i < 9; ++i) with.push_back(this->chunks({700})[0]);
  auto without = this->chunks(std::vector<std::size_t>(10, 700), true);
  this->put(*this->store_, 1, with);
  this->put(*this->store_, 2, without);
  for (const auto* const what : {&with, &without}) {
    const auto reader = this->store_->segment(this->identity_, (*what)[0].location.segment);
    ASSERT_TRUE(reader.is_ok());
    std::vector<Fingerprint> names;
    std::vector<Bytes> bytes(what->size(), Bytes(700));
    std::vector<std::span<std::byte>> outs(bytes.begin(), bytes.end());
    for (const Chunk& chunk : *what) names.push_back(chunk.fingerprint);
    std::vector<ChunkSeal> seals(names.size());
    EXPECT_EQ((*reader)->read_following((*what)[0].location.offset, names, outs, seals), 10u);
    for (std::size_t i = 0; i < what->size(); ++i) {
      EXPECT_EQ(bytes[i], (*what)[i].data);
      EXPECT_TRUE(holds(seals[i], {names[i], bytes[i]}));
    }
    names[4] = random_fingerprint(this->random_);
    EXPECT_EQ((*reader)->read_following((*what)[0].location.offset, names, outs), 4u);
    EXPECT_EQ((*reader)->read_following((*what)[0].location.offset + 1, names, outs), 0u);
  }
}

TYPED_TEST(StoreContract, RemovesASegment) {
  auto what = this->chunks({1000});
  this->put(*this->store_, 1, what);
  EXPECT_TRUE(this->store_->remove_segment(this->identity_, 1).is_ok());
  EXPECT_TRUE(this->store_->remove_segment(this->identity_, 1).is_ok());
  Bytes out;
  EXPECT_EQ(TestFixture::get(*this->store_, this->identity_, what[0], out).code(), Code::kNotFound);
  EXPECT_TRUE(this->store_->segments(this->identity_)->empty());
}

// ---- Logs ---------------------------------------------------------------------------------------

TYPED_TEST(StoreContract, LogsGiveBackWhatWasAppendedUntilTheyAreCleared) {
  auto log = this->store_->create_log(this->identity_, 3);
  ASSERT_TRUE(log.is_ok());
  EXPECT_EQ(this->store_->create_log(this->identity_, 3).status().code(), Code::kFileExists);
  const Bytes data = random_bytes(this->random_, 3001);
  const auto at = (*log)->append(data);
  ASSERT_TRUE(at.is_ok());
  EXPECT_EQ((*log)->size(), data.size());
  const auto other = this->open();
  Bytes out(data.size());
  const auto reader = other->log(this->identity_, 3);
  ASSERT_TRUE(reader.is_ok());
  EXPECT_TRUE((*reader)->read(*at, out).is_ok());
  EXPECT_EQ(out, data);
  const auto view = (*log)->view(*at, data.size());
  // Where the kernel cannot bring them into memory, that is told.
  EXPECT_TRUE(view.is_ok() ? std::ranges::equal(view->bytes(), data)
                           : view.status().code() == Code::kIo);
  EXPECT_EQ((*reader)->read(*at + 1, out).code(), Code::kCorrupt);
  for (const auto space : {LogWriter::Space::kKeep, LogWriter::Space::kFree}) {
    ASSERT_TRUE((*log)->clear(space).is_ok());
    EXPECT_EQ((*reader)->read(*at, out).code(), Code::kNotFound);
    const auto again = (*log)->append(data);
    ASSERT_TRUE(again.is_ok());
    EXPECT_GT(*again, *at);
  }
  EXPECT_EQ(other->log(this->identity_, 4).status().code(), Code::kNotFound);
  EXPECT_EQ(*this->store_->logs(this->identity_), (std::vector<std::uint64_t>{3}));
}

TYPED_TEST(StoreContract, LeasesAreSharedWithWhoeverOpensTheLog) {
  auto log = this->store_->create_log(this->identity_, 3);
  ASSERT_TRUE(log.is_ok());
  EXPECT_EQ(this->store_->leases(this->identity_, 3).status().code(), Code::kCorrupt);
  EXPECT_EQ(this->store_->leases(this->identity_, 4).status().code(), Code::kNotFound);
  const auto mine = (*log)->make_leases();
  ASSERT_TRUE(mine.is_ok());
  const auto other = this->open();
  const auto theirs = other->leases(this->identity_, 3);
  ASSERT_TRUE(theirs.is_ok());
  (*mine)->begin(2, 9);
  EXPECT_EQ((*mine)->note(2, {10, 20, 30}), LeaseTable::Noted::kYes);
  const auto writes = (*theirs)->recall(2, 9);
  ASSERT_TRUE(writes);
  ASSERT_EQ(writes->size(), 1u);
  EXPECT_EQ((*writes)[0].length, 20u);
  EXPECT_EQ((*mine)->note(2, {50, 20, 60}), LeaseTable::Noted::kRecalled);
}

// ---- Shards and indexes -------------------------------------------------------------------------

TYPED_TEST(StoreContract, ReadsShardsThatAreWholeAndTheRightOnes) {
  const Id128 attempt = random_id(this->random_);
  ASSERT_TRUE(this->store_->begin_attempt(this->identity_, attempt).is_ok());
  Block block;
  block.placements = {plan::Placement::copies_on({0})};
  block.pieces.push_back({0, 100, 0, 100, 0, random_fingerprint(this->random_)});
  const test::EncodedBlocks blocks{{7, encode_block(block)}, {12, encode_block({})}};
  const Digest digest = test::digest_of(this->identity_, attempt, 2, blocks);
  const auto begin = [&] {
    auto writer = this->store_->create_shard(this->identity_, attempt, 2, {});
    EXPECT_TRUE(writer.is_ok()) << writer.status().message();
    return std::move(*writer);
  };
  const auto read = [&] { return this->store_->shard(this->identity_, attempt, 2, digest); };
  const auto is_not_there = [&] { return !read().is_ok(); };
  EXPECT_EQ(read().status().code(), Code::kNotFound);
  const auto write = [&](bool twice) {
    const auto writer = begin();
    EXPECT_FALSE(writer->can_carry());
    for (const std::uint64_t number : {std::uint64_t{12}, std::uint64_t{7}}) {
      ASSERT_TRUE(writer->add(with_checksum(number, blocks.at(number))).is_ok());
    }
    EXPECT_TRUE(is_not_there());
    if (twice) {
      const Status again = writer->add(with_checksum(7, blocks.at(7)));
      EXPECT_FALSE(again.is_ok() && writer->finish().is_ok());
      EXPECT_TRUE(is_not_there());
    } else {
      ASSERT_TRUE(writer->finish().is_ok());
    }
  };
  write(true);
  write(false);
  const auto shard = read();
  ASSERT_TRUE(shard.is_ok()) << shard.status().message();
  EXPECT_EQ((*shard)->block_numbers(), (std::vector<std::uint64_t>{7, 12}));
  EXPECT_EQ(*(*shard)->read(7), encode_block(block));
  EXPECT_TRUE((*shard)->read(8)->empty());
  EXPECT_EQ(this->store_->shard(this->identity_, attempt, 2, Digest{}).status().code(),
            Code::kCorrupt);
  // Begun anew: who reads it does not get the old one.
  const auto writer = begin();
  EXPECT_TRUE(is_not_there());
}

// Three generations: what stays is in all of them, whatever becomes of the others.
TYPED_TEST(StoreContract, CarriesBlocksOfAShardFromGenerationToGeneration) {
  const auto encoded = [&](std::uint32_t bytes) {
    Block block;
    block.placements = {plan::Placement::copies_on({0})};
    block.pieces.push_back({0, bytes, 0, bytes, 0, random_fingerprint(this->random_)});
    return encode_block(block);
  };
  test::EncodedBlocks blocks;
  for (std::uint64_t number = 2; number < 80; number += 5) blocks[number] = encoded(100);
  ShardBase base;
  std::map<Id128, std::pair<Digest, test::EncodedBlocks>> written;
  for (std::uint32_t generation = 0; generation < 12; ++generation) {
    const Id128 attempt = random_id(this->random_);
    ASSERT_TRUE(this->store_->begin_attempt(this->identity_, attempt).is_ok());
    const std::uint64_t changed = 2 + 5 * (generation % 16);
    blocks[changed] = encoded(200 + generation);
    const auto made = this->store_->create_shard(this->identity_, attempt, 2, base);
    ASSERT_TRUE(made.is_ok());
    ShardWriter& writer = **made;
    EXPECT_EQ(writer.can_carry(), generation > 0);
    for (const auto& [number, bytes] : blocks) {
      const auto block = with_checksum(number, bytes);
      const auto is_carried = writer.carry(summary_of(block));
      ASSERT_TRUE(is_carried.is_ok());
      EXPECT_EQ(*is_carried, generation > 0 && number != changed);
      if (!*is_carried) {
        ASSERT_TRUE(writer.add(block).is_ok());
      }
    }
    // Neither one that the base does not have, nor one that is other than it has it.
    auto other = summary_of(with_checksum(7, blocks[7]));
    ++other.checksum;
    EXPECT_FALSE(*writer.carry(other));
    EXPECT_FALSE(*writer.carry({3, 10, 1}));
    ASSERT_TRUE(writer.finish().is_ok());
    base = {attempt, test::digest_of(this->identity_, attempt, 2, blocks)};
    written[attempt] = {base.digest, blocks};
    if (generation == 6) {
      // The older ones go.
      for (auto at = written.begin(); at != written.end();) {
        if (at->first == attempt) {
          ++at;
          continue;
        }
        ASSERT_TRUE(this->store_->abandon(this->identity_, at->first).is_ok());
        at = written.erase(at);
      }
    }
    for (const auto& [which, what] : written) {
      const auto shard = this->store_->shard(this->identity_, which, 2, what.first);
      ASSERT_TRUE(shard.is_ok()) << shard.status().message();
      for (const auto& [number, bytes] : what.second) {
        const auto read = (*shard)->read(number);
        ASSERT_TRUE(read.is_ok()) << read.status().message();
        EXPECT_EQ(*read, bytes);
      }
    }
  }
  // A base that is not here, or is another one than is meant.
  const Id128 attempt = random_id(this->random_);
  ASSERT_TRUE(this->store_->begin_attempt(this->identity_, attempt).is_ok());
  for (const ShardBase& wrong :
       {ShardBase{random_id(this->random_), base.digest}, ShardBase{base.attempt, {}}}) {
    const auto writer = this->store_->create_shard(this->identity_, attempt, 2, wrong);
    ASSERT_TRUE(writer.is_ok());
    EXPECT_FALSE((*writer)->can_carry());
    EXPECT_FALSE(*(*writer)->carry(summary_of(with_checksum(7, blocks[7]))));
  }
}

TYPED_TEST(StoreContract, IndexesSayWhereChunksAre) {
  auto what = this->chunks({100, 200, 300, 400, 500, 600});
  this->put(*this->store_, 5, what);
  const Id128 attempt = random_id(this->random_);
  ASSERT_TRUE(this->store_->begin_attempt(this->identity_, attempt).is_ok());
  EXPECT_EQ(this->store_->index(this->identity_, attempt).status().code(), Code::kNotFound);
  ASSERT_TRUE(this->write_index(attempt, {what[0]}).is_ok());
  ASSERT_TRUE(this->write_index(attempt, what).is_ok());  // in place of the other
  const auto index = this->store_->index(this->identity_, attempt);
  ASSERT_TRUE(index.is_ok());
  EXPECT_EQ((*index)->attempt(), attempt);
  EXPECT_EQ((*index)->size(), what.size());
  std::uint64_t live = 0;
  for (const Chunk& chunk : what) {
    live += stored_size(chunk.fingerprint, chunk.location.length);
    const auto found = (*index)->find(chunk.fingerprint);
    ASSERT_TRUE(found.is_ok());
    EXPECT_EQ(found->location, chunk.location);
    EXPECT_EQ((*index)->placement(found->placement), plan::Placement());
    const auto entry = (*index)->at(*(*index)->position(chunk.fingerprint));
    ASSERT_TRUE(entry.is_ok());
    EXPECT_EQ(entry->fingerprint, chunk.fingerprint);
    EXPECT_EQ((*index)->find_content(content_of(chunk.fingerprint))->fingerprint,
              chunk.fingerprint);
  }
  EXPECT_EQ((*index)->find(random_fingerprint(this->random_)).status().code(), Code::kNotFound);
  EXPECT_EQ((*index)->at(what.size()).status().code(), Code::kArgument);
  ASSERT_EQ((*index)->segments().size(), 1u);
  EXPECT_EQ((*index)->segments()[0].segment, 5u);
  EXPECT_EQ((*index)->segments()[0].live_bytes, live);
  const auto unsorted = this->store_->create_index(this->identity_, attempt);
  ASSERT_TRUE(unsorted.is_ok());
  ASSERT_TRUE((*unsorted)->add({what[0].fingerprint, what[0].location}).is_ok());
  EXPECT_EQ((*unsorted)->add({what[0].fingerprint, what[0].location}).code(), Code::kInternal);
  EXPECT_FALSE(this->store_->index(this->identity_, attempt).is_ok());  // never finished
}

TYPED_TEST(StoreContract, IndexesSayHowChunksAreKept) {
  const Id128 attempt = random_id(this->random_);
  ASSERT_TRUE(this->store_->begin_attempt(this->identity_, attempt).is_ok());
  const auto on_two = plan::Placement::copies_on({1, 4});
  const auto on_three = plan::Placement::copies_on({0, 1, 2});
  const auto writer = this->store_->create_index(this->identity_, attempt);
  ASSERT_TRUE(writer.is_ok());
  std::array<Fingerprint, 4> names;
  for (std::uint8_t i = 0; i < names.size(); ++i) names[i].bytes[0] = i;
  const std::uint32_t two = (*writer)->number(on_two);
  const std::uint32_t three = (*writer)->number(on_three);
  EXPECT_EQ((*writer)->number(on_two), two);
  ASSERT_TRUE((*writer)->add({names[0], {5, 64, 1}, three}).is_ok());
  ASSERT_TRUE((*writer)->add({names[1], {5, 65, 1}, two}).is_ok());
  ASSERT_TRUE((*writer)->add({names[2], {5, 66, 1}}).is_ok());
  EXPECT_EQ((*writer)->add({names[3], {5, 67, 1}, three + 1}).code(), Code::kInternal);
  ASSERT_TRUE((*writer)->finish(false).is_ok());
  const auto index = this->store_->index(this->identity_, attempt);
  ASSERT_TRUE(index.is_ok());
  const auto placement_of = [&](const Fingerprint& name) {
    return (*index)->placement((*index)->find(name)->placement);
  };
  EXPECT_EQ(placement_of(names[0]), on_three);
  EXPECT_EQ(placement_of(names[1]), on_two);
  EXPECT_EQ(placement_of(names[2]), plan::Placement());
}

TYPED_TEST(StoreContract, IndexesBeginWithRunsOfAnother) {
  std::vector<std::vector<Chunk>> parts;
  const auto put = [&] {
    parts.push_back(this->chunks({100, 200, 300}));
    this->put(*this->store_, parts.size(), parts.back());
  };
  put();
  const CommitRecord first = this->commit(1, parts[0]);
  const auto begin = [&](std::uint64_t number, const Id128& parent) {
    put();
    const CommitRecord r = this->record(number, parent);
    EXPECT_TRUE(this->store_->begin_attempt(this->identity_, r.attempt).is_ok());
    return r;
  };
  const auto finish = [&](const CommitRecord& r) {
    EXPECT_TRUE(this->store_->prepare(r, true).is_ok());
    EXPECT_TRUE(this->store_->commit(this->identity_, r.attempt, true).is_ok());
    EXPECT_TRUE(this->store_->collect(this->identity_, {r.attempt}, {}, false).is_ok());
  };
  const CommitRecord second = begin(2, first.attempt);
  EXPECT_FALSE(this->write_index(second.attempt, parts[1], {first.attempt, 2}).is_ok());
  ASSERT_TRUE(this->write_index(second.attempt, parts[1], {first.attempt, 1}).is_ok());
  // In place of the other, which had the same run.
  ASSERT_TRUE(this->write_index(second.attempt, parts[1], {first.attempt, 1}).is_ok());
  finish(second);
  const CommitRecord third = begin(3, second.attempt);
  ASSERT_TRUE(this->write_index(third.attempt, parts[2], {second.attempt, 2}).is_ok());
  finish(third);

  const auto index = this->store_->index(this->identity_, third.attempt);
  ASSERT_TRUE(index.is_ok()) << index.status().message();
  EXPECT_EQ((*index)->attempt(), third.attempt);
  EXPECT_EQ((*index)->size(), 9u);
  const auto runs = (*index)->runs();
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].attempt, first.attempt);
  EXPECT_EQ(runs[1].attempt, second.attempt);
  EXPECT_EQ(runs[2].attempt, third.attempt);
  for (const auto& run : runs) EXPECT_EQ(run.entries, 3u);
  for (const std::vector<Chunk>& part : parts) {
    for (const Chunk& chunk : part) {
      const auto found = (*index)->find(chunk.fingerprint);
      ASSERT_TRUE(found.is_ok()) << found.status().message();
      EXPECT_EQ(found->location, chunk.location);
      const auto place = (*index)->position(chunk.fingerprint);
      ASSERT_TRUE(place.is_ok());
      EXPECT_EQ((*index)->at(*place)->fingerprint, chunk.fingerprint);
      EXPECT_EQ((*index)->find_content(content_of(chunk.fingerprint))->fingerprint,
                chunk.fingerprint);
    }
  }
  EXPECT_EQ((*index)->find(random_fingerprint(this->random_)).status().code(), Code::kNotFound);
  EXPECT_EQ((*index)->at(9).status().code(), Code::kArgument);
  ASSERT_EQ((*index)->segments().size(), 3u);
  for (std::uint64_t n = 1; n <= 3; ++n) EXPECT_EQ((*index)->segments()[n - 1].segment, n);
  // Segments that older runs name stay.
  EXPECT_EQ(this->store_->segments(this->identity_)->size(), 3u);

  // A file that shares begins with the runs that it was given, also if the other one is gone.
  const Id128 other = random_id(this->random_);
  ASSERT_TRUE(this->store_->create_file(other, "/scratch/run/ckpt2.h5").is_ok());
  ASSERT_TRUE(this->store_->share_generation(this->identity_, third.attempt, other).is_ok());
  ASSERT_TRUE(this->store_->drop_file(this->identity_).is_ok());
  const Id128 attempt = random_id(this->random_);
  ASSERT_TRUE(this->store_->begin_attempt(other, attempt).is_ok());
  ASSERT_TRUE(this->write_index(other, attempt, {}, {third.attempt, 3}).is_ok());
  ASSERT_TRUE(this->store_->collect(other, {attempt}, {}, false).is_ok());
  const auto shared = this->store_->index(other, attempt);
  ASSERT_TRUE(shared.is_ok()) << shared.status().message();
  EXPECT_EQ((*shared)->size(), 9u);
  Bytes out;
  for (const Chunk& chunk : parts[1]) {
    ASSERT_TRUE((*shared)->find(chunk.fingerprint).is_ok());
    EXPECT_TRUE(this->get(*this->store_, other, chunk, out).is_ok());
  }
}

TYPED_TEST(StoreContract, RunsOfAnIndexSayHowTheirChunksAreKept) {
  const auto on_two = plan::Placement::copies_on({1, 4});
  const auto on_three = plan::Placement::copies_on({0, 1, 2});
  Fingerprint older;
  Fingerprint newer;
  newer.bytes[0] = 1;
  Id128 base;
  for (const bool is_newer : {false, true}) {
    const Id128 attempt = random_id(this->random_);
    ASSERT_TRUE(this->store_->begin_attempt(this->identity_, attempt).is_ok());
    const auto writer =
        this->store_->create_index(this->identity_, attempt, {base, is_newer ? std::size_t{1} : 0});
    ASSERT_TRUE(writer.is_ok());
    const std::uint32_t number = (*writer)->number(is_newer ? on_three : on_two);
    ASSERT_TRUE((*writer)->add({is_newer ? newer : older, {5, 64, 1}, number}).is_ok());
    ASSERT_TRUE((*writer)->finish(false).is_ok());
    base = attempt;
  }
  const auto index = this->store_->index(this->identity_, base);
  ASSERT_TRUE(index.is_ok());
  EXPECT_EQ((*index)->placement((*index)->find(older)->placement), on_two);
  EXPECT_EQ((*index)->placement((*index)->find(newer)->placement), on_three);
  EXPECT_EQ((*index)->placement((*index)->at(1)->placement), on_three);
  EXPECT_EQ((*index)->placement(IndexEntry::kNotPlaced), plan::Placement());
}

TYPED_TEST(StoreContract, SegmentsAreSharedAndStayWhenEitherFileGoes) {
  auto what = this->chunks({1000, 2000});
  this->put(*this->store_, 5, what);
  auto more = this->chunks({3000});
  this->put(*this->store_, 6, more);
  auto unused = this->chunks({500});
  this->put(*this->store_, 7, unused);
  std::vector<Chunk> all = what;
  all.insert(all.end(), more.begin(), more.end());
  const CommitRecord r = this->commit(1, all);
  const Id128 other = random_id(this->random_);
  ASSERT_TRUE(this->store_->create_file(other, "/scratch/run/ckpt2.h5").is_ok());
  const auto segments_of = [&](const Id128& identity) {
    std::vector<std::pair<std::uint64_t, bool>> found;
    for (const SegmentSize& one : *this->store_->segments(identity)) {
      found.emplace_back(one.segment, one.is_shared);
    }
    return found;
  };
  using Segments = std::vector<std::pair<std::uint64_t, bool>>;
  const Id128 begun = random_id(this->random_);
  ASSERT_TRUE(this->store_->begin_attempt(this->identity_, begun).is_ok());
  EXPECT_EQ(this->store_->share_generation(this->identity_, begun, other).status().code(),
            Code::kNotFound);
  EXPECT_EQ(this->store_->share_generation(this->identity_, random_id(this->random_), other)
                .status()
                .code(),
            Code::kNotFound);
  EXPECT_EQ(segments_of(other), Segments());
  ASSERT_TRUE(this->store_->remove_segment(this->identity_, 6).is_ok());
  {
    // What is lost is not shared.
    const auto index = this->store_->share_generation(this->identity_, r.attempt, other);
    ASSERT_TRUE(index.is_ok()) << index.status().message();
    EXPECT_EQ((*index)->attempt(), r.attempt);
    EXPECT_TRUE((*index)->find(what[0].fingerprint).is_ok());
  }
  EXPECT_EQ(segments_of(other), (Segments{{5, true}}));
  EXPECT_EQ(segments_of(this->identity_), (Segments{{5, true}, {7, false}}));
  Bytes out;
  for (const Chunk& chunk : what) {
    ASSERT_TRUE(this->get(*this->store_, other, chunk, out).is_ok());
    EXPECT_EQ(out, chunk.data);
  }
  // Nothing but what this file alone has is freed.
  const auto taken = this->store_->taken_bytes();
  const auto freed = this->store_->drop_file(this->identity_);
  ASSERT_TRUE(taken.is_ok() && freed.is_ok());
  EXPECT_LE(*this->store_->taken_bytes() + *freed, *taken);
  EXPECT_EQ(segments_of(other), (Segments{{5, false}}));
  for (const Chunk& chunk : what) {
    ASSERT_TRUE(this->get(*this->store_, other, chunk, out).is_ok());
    EXPECT_EQ(out, chunk.data);
  }
  // What no generation of the new file names goes like any segment.
  ASSERT_TRUE(this->store_->collect(other, {}, {}, false).is_ok());
  EXPECT_EQ(segments_of(other), Segments());
}

TYPED_TEST(StoreContract, ChecksWhatAGenerationNames) {
  auto what = this->chunks({1000, 1000, 1000, 1000});
  this->put(*this->store_, 1, what);
  const CommitRecord r = this->commit(1, what);
  auto checked = check_chunks(*this->store_, this->identity_, r.attempt);
  ASSERT_TRUE(checked.is_ok());
  EXPECT_EQ(checked->chunks, 4u);
  EXPECT_TRUE(checked->bad.empty());
  ASSERT_TRUE(this->store_->spoil_chunk(this->identity_, what[2].location).is_ok());
  checked = check_chunks(*this->store_, this->identity_, r.attempt);
  ASSERT_TRUE(checked.is_ok());
  EXPECT_EQ(checked->bad, (std::vector<Fingerprint>{what[2].fingerprint}));
  EXPECT_EQ(checked->texts.size(), 1u);
  EXPECT_EQ(check_chunks(*this->store_, this->identity_, random_id(this->random_)).status().code(),
            Code::kNotFound);
}

// ---- Generations --------------------------------------------------------------------------------

TYPED_TEST(StoreContract, AGenerationIsThereFromItsCommitOn) {
  EXPECT_EQ(this->store_->newest(this->identity_).status().code(), Code::kNotFound);
  const CommitRecord r = this->record(1);
  EXPECT_FALSE(*this->store_->has_attempt(this->identity_, r.attempt));
  EXPECT_EQ(this->store_->commit(this->identity_, r.attempt, true).code(), Code::kNotFound);
  ASSERT_TRUE(this->store_->begin_attempt(this->identity_, r.attempt).is_ok());
  EXPECT_TRUE(*this->store_->has_attempt(this->identity_, r.attempt));
  EXPECT_EQ(this->store_->generations(this->identity_)->begun.size(), 1u);
  ASSERT_TRUE(this->store_->prepare(r, true).is_ok());
  EXPECT_EQ(this->store_->generations(this->identity_)->prepared.size(), 1u);
  EXPECT_EQ(this->store_->newest(this->identity_).status().code(), Code::kNotFound);
  ASSERT_TRUE(this->store_->commit(this->identity_, r.attempt, true).is_ok());
  ASSERT_TRUE(this->store_->commit(this->identity_, r.attempt, true).is_ok());
  const auto other = this->open();
  ASSERT_TRUE(other->newest(this->identity_).is_ok());
  EXPECT_EQ(*other->newest(this->identity_), r);
  EXPECT_EQ(other->list()->size(), 1u);
  const auto found = other->find(TestFixture::kPath);
  ASSERT_TRUE(found.is_ok());
  ASSERT_EQ(found->records.size(), 1u);
  EXPECT_EQ(found->records[0], r);
  EXPECT_TRUE(other->find("/another/path")->records.empty());
  EXPECT_EQ(other->find("/another/path", this->identity_)->records.size(), 1u);
  EXPECT_EQ(this->store_->abandon(this->identity_, r.attempt).code(), Code::kArgument);
}

TYPED_TEST(StoreContract, WhatIsAbandonedOrWithdrawnIsGone) {
  const CommitRecord first = this->commit(1, {});
  const CommitRecord second = this->record(2, first.attempt);
  ASSERT_TRUE(this->store_->prepare(second, true).is_ok());
  EXPECT_TRUE(this->store_->abandon(this->identity_, second.attempt).is_ok());
  EXPECT_TRUE(this->store_->abandon(this->identity_, second.attempt).is_ok());
  EXPECT_EQ(this->store_->newest(this->identity_)->number, 1u);
  const CommitRecord third = this->commit(2, {}, first.attempt);
  EXPECT_EQ(this->store_->newest(this->identity_)->number, 2u);
  EXPECT_TRUE(this->store_->withdraw(this->identity_, third.attempt).is_ok());
  EXPECT_EQ(*this->store_->newest(this->identity_), first);
}

TYPED_TEST(StoreContract, TwoOfOneNumberAreAConflict) {
  this->commit(1, {});
  this->commit(1, {});
  EXPECT_EQ(this->store_->newest(this->identity_).status().code(), Code::kConflict);
}

TYPED_TEST(StoreContract, AdoptsARecordOfAFileThatIsNotHere) {
  CommitRecord r = this->record(4);
  r.identity = random_id(this->random_);
  for (int again = 0; again < 2; ++again) EXPECT_TRUE(this->store_->adopt(r).is_ok());
  EXPECT_EQ(*this->store_->newest(r.identity), r);
}

TYPED_TEST(StoreContract, CollectsWhatNoGenerationNames) {
  auto old = this->chunks({1000});
  auto now = this->chunks({1000});
  auto open = this->chunks({1000});
  this->put(*this->store_, 1, old);
  this->put(*this->store_, 2, now);
  this->put(*this->store_, 3, open);
  ASSERT_TRUE(this->store_->create_log(this->identity_, 4).is_ok());
  const CommitRecord first = this->commit(1, old);
  const CommitRecord second = this->commit(2, now, first.attempt);
  const auto collect = [&](bool with_logs) {
    return this->store_->collect(this->identity_, {second.attempt}, {3}, with_logs,
                                 Store::Prepared::kDrop);
  };
  {
    // A reader keeps its generation.
    const auto other = this->open();
    const auto pin = other->lock_generation(this->identity_, first.attempt);
    ASSERT_TRUE(pin.is_ok());
    ASSERT_TRUE(collect(false).is_ok());
    EXPECT_TRUE(*this->store_->has_attempt(this->identity_, first.attempt));
    EXPECT_EQ(this->store_->segments(this->identity_)->size(), 3u);
  }
  const auto freed = collect(false);
  ASSERT_TRUE(freed.is_ok());
  EXPECT_GT(*freed, 0u);
  EXPECT_FALSE(*this->store_->has_attempt(this->identity_, first.attempt));
  const auto left = this->store_->segments(this->identity_);
  ASSERT_EQ(left->size(), 2u);
  EXPECT_EQ((*left)[0].segment, 2u);
  EXPECT_EQ((*left)[1].segment, 3u);
  Bytes out;
  EXPECT_EQ(TestFixture::get(*this->store_, this->identity_, old[0], out).code(), Code::kNotFound);
  EXPECT_EQ(this->store_->logs(this->identity_)->size(), 1u);
  ASSERT_TRUE(collect(true).is_ok());
  EXPECT_TRUE(this->store_->logs(this->identity_)->empty());
}

TYPED_TEST(StoreContract, KeepsWhatAnotherStoreMayHaveCommitted) {
  const CommitRecord first = this->commit(1, {});
  CommitRecord alone = this->record(2, first.attempt);
  CommitRecord together = this->record(2, first.attempt);
  together.stores.push_back({random_id(this->random_), "n1"});
  ASSERT_TRUE(this->store_->prepare(alone, true).is_ok());
  ASSERT_TRUE(this->store_->prepare(together, true).is_ok());
  ASSERT_TRUE(
      this->store_->collect(this->identity_, {first.attempt}, {}, true, Store::Prepared::kKeep)
          .is_ok());
  EXPECT_FALSE(*this->store_->has_attempt(this->identity_, alone.attempt));
  EXPECT_TRUE(*this->store_->has_attempt(this->identity_, together.attempt));
  ASSERT_TRUE(this->store_->collect(this->identity_, {first.attempt}, {}, true).is_ok());
  EXPECT_FALSE(*this->store_->has_attempt(this->identity_, together.attempt));
}

// ---- Locks, marks, files ------------------------------------------------------------------------

TYPED_TEST(StoreContract, LocksKeepOtherOpenersOut) {
  const CommitRecord r = this->commit(1, {});
  const auto other = this->open();
  auto writing = this->store_->lock_for_writing(this->identity_);
  ASSERT_TRUE(writing.is_ok());
  EXPECT_TRUE(other->look_at_locks()->writing(this->identity_));
  EXPECT_EQ(other->lock_for_writing(this->identity_).status().code(), Code::kFileInUse);
  EXPECT_EQ(other->lock_whole(this->identity_).status().code(), Code::kFileInUse);
  EXPECT_EQ(other->drop_file(this->identity_).status().code(), Code::kFileInUse);
  auto reading = other->lock_generation(this->identity_, r.attempt);
  ASSERT_TRUE(reading.is_ok());
  EXPECT_TRUE(this->store_->look_at_locks()->reading(this->identity_, r.attempt));
  ASSERT_TRUE(this->store_->lock_generation(this->identity_, r.attempt).is_ok());
  // Not to be had as a whole: the lock for writing goes, too.
  EXPECT_EQ(this->store_->lock_whole(this->identity_, std::move(*writing)).status().code(),
            Code::kFileInUse);
  EXPECT_TRUE(other->lock_for_writing(this->identity_).is_ok());
  reading->reset();
  EXPECT_FALSE(this->store_->look_at_locks()->reading(this->identity_, r.attempt));
  const auto whole = other->lock_whole(this->identity_);
  ASSERT_TRUE(whole.is_ok());
  EXPECT_EQ(this->store_->lock_generation(this->identity_, r.attempt).status().code(),
            Code::kFileInUse);
  const Id128 none = random_id(this->random_);
  EXPECT_EQ(this->store_->lock_for_writing(none).status().code(), Code::kNoSuchFile);
  EXPECT_EQ(this->store_->lock_whole(none).status().code(), Code::kNoSuchFile);
  EXPECT_EQ(this->store_->lock_generation(this->identity_, none).status().code(), Code::kNotFound);
}

TYPED_TEST(StoreContract, OfSeveralWhoCreateOneFileOneWins) {
  const auto other = this->open();
  const Id128 a = random_id(this->random_), b = random_id(this->random_);
  const std::string path = "/scratch/other";
  {
    const auto mine = this->store_->create_for_writing(a, path, {}, true);
    ASSERT_TRUE(mine.is_ok());
    EXPECT_EQ(other->create_for_writing(b, path, {}, true).status().code(), Code::kFileInUse);
    EXPECT_TRUE(other->create_for_writing(b, path, {a}, true).is_ok());
  }
  CommitRecord r = this->record(1);
  r.identity = a;
  r.path = path;
  ASSERT_TRUE(this->store_->adopt(r).is_ok());
  EXPECT_EQ(other->create_for_writing(b, path, {}, true).status().code(), Code::kFileExists);
  EXPECT_TRUE(other->create_for_writing(b, path, {}, false).is_ok());
}

TYPED_TEST(StoreContract, MarksAreKeptUntilNoStoreIsLeft) {
  const Id128 a = random_id(this->random_), b = random_id(this->random_);
  EXPECT_EQ(this->store_->mark_stores(this->identity_).status().code(), Code::kNotFound);
  ASSERT_TRUE(this->store_->put_mark(this->identity_, {a, b}).is_ok());
  const auto other = this->open();
  EXPECT_EQ(*other->mark_stores(this->identity_), (std::vector<Id128>{a, b}));
  EXPECT_EQ(other->find(TestFixture::kPath)->deleted, (std::vector<Id128>{this->identity_}));
  ASSERT_TRUE(
      other->shorten_mark(this->identity_, [&](const Id128& one) { return one == a; }).is_ok());
  EXPECT_EQ(*other->mark_stores(this->identity_), (std::vector<Id128>{b}));
  ASSERT_TRUE(other->shorten_mark(this->identity_, [](const Id128&) { return true; }).is_ok());
  EXPECT_TRUE(this->store_->marks()->empty());
}

TYPED_TEST(StoreContract, AFileThatIsDroppedLeavesNothing) {
  auto what = this->chunks({1000});
  this->put(*this->store_, 1, what);
  this->commit(1, what);
  ASSERT_TRUE(this->store_->add_path(this->identity_, "/elsewhere/name").is_ok());
  EXPECT_EQ(this->store_->paths(this->identity_)->size(), 2u);
  EXPECT_EQ(*this->store_->directories(), (std::set<std::string>{"/elsewhere", "/scratch/run"}));
  EXPECT_TRUE(*this->store_->has_file(this->identity_));
  const auto seen = survey(*this->store_);
  ASSERT_TRUE(seen.is_ok());
  ASSERT_EQ(seen->files.size(), 1u);
  EXPECT_EQ(seen->files[0].chunks, 1u);
  EXPECT_GT(seen->files[0].segment_bytes, 1000u);
  ASSERT_TRUE(drop_with_mark(*this->store_, this->identity_, {random_id(this->random_)}).is_ok());
  EXPECT_FALSE(*this->store_->has_file(this->identity_));
  EXPECT_TRUE(this->store_->identities()->empty());
  EXPECT_TRUE(this->store_->find(TestFixture::kPath)->records.empty());
  EXPECT_TRUE(this->store_->directories()->empty());
  EXPECT_EQ(this->store_->marks()->size(), 1u);
  EXPECT_TRUE(this->store_->drop_file(this->identity_).is_ok());
}

// ---- Write-back ---------------------------------------------------------------------------------

TYPED_TEST(StoreContract, RemembersWhatWasWrittenBack) {
  auto what = this->chunks({1000});
  this->put(*this->store_, 1, what);
  const CommitRecord record = this->commit(1, what);
  EXPECT_TRUE(this->store_->written(this->identity_, record.attempt)->empty());
  const Id128 copy = random_id(this->random_);
  const WrittenPart first{0, copy, {{0, 100}}, {}};
  WrittenPart second{12, copy, {{100, 500}}, "full"};
  ASSERT_TRUE(this->store_->put_written(this->identity_, record.attempt, first).is_ok());
  ASSERT_TRUE(this->store_->put_written(this->identity_, record.attempt, second).is_ok());
  second.ranges.push_back({1000, 4});
  ASSERT_TRUE(this->store_->put_written(this->identity_, record.attempt, second).is_ok());
  const auto other = this->open();
  auto known = *other->written(this->identity_, record.attempt);
  std::sort(known.begin(), known.end(),
            [](const WrittenPart& a, const WrittenPart& b) { return a.writer < b.writer; });
  EXPECT_EQ(known, (std::vector<WrittenPart>{first, second}));
  const Id128 unknown = random_id(this->random_);
  EXPECT_EQ(this->store_->put_written(this->identity_, unknown, first).code(), Code::kNotFound);
  EXPECT_TRUE(other->written(this->identity_, unknown)->empty());
  // It goes with its generation.
  const CommitRecord next = this->commit(2, what);
  ASSERT_TRUE(this->store_->collect(this->identity_, {next.attempt}, {1}, true).is_ok());
  EXPECT_TRUE(this->store_->written(this->identity_, record.attempt)->empty());
}

TYPED_TEST(StoreContract, RemembersWhatItIsCachedAs) {
  auto what = this->chunks({1000});
  this->put(*this->store_, 1, what);
  const CommitRecord record = this->commit(1, what);
  EXPECT_EQ(*this->store_->cached(this->identity_, record.attempt), std::nullopt);
  const WrittenPart part{0, random_id(this->random_), {{0, 100}}, {}};
  ASSERT_TRUE(this->store_->put_written(this->identity_, record.attempt, part).is_ok());
  const CachedNote note{record.attempt, {0, 22, 33, 44, 55}};
  ASSERT_TRUE(this->store_->put_cached(this->identity_, note).is_ok());
  const auto other = this->open();
  EXPECT_EQ(*other->cached(this->identity_, record.attempt), note);
  EXPECT_TRUE(other->written(this->identity_, record.attempt)->empty()) << "it is written back";
  const Id128 unknown = random_id(this->random_);
  EXPECT_EQ(this->store_->put_cached(this->identity_, {unknown, {}}).code(), Code::kNotFound);
  EXPECT_EQ(*other->cached(this->identity_, unknown), std::nullopt);
  // It goes with its generation.
  const CommitRecord next = this->commit(2, what);
  ASSERT_TRUE(this->store_->collect(this->identity_, {next.attempt}, {1}, true).is_ok());
  EXPECT_EQ(*this->store_->cached(this->identity_, record.attempt), std::nullopt);
  EXPECT_EQ(*this->store_->cached(this->identity_, next.attempt), std::nullopt);
}

// ---- Space --------------------------------------------------------------------------------------

TYPED_TEST(StoreContract, SaysWhatIsTaken) {
  EXPECT_GT(*this->store_->free_bytes(), 0u);
  EXPECT_GE(*this->store_->file_system_bytes(), *this->store_->free_bytes());
  const std::uint64_t before = *this->store_->taken_bytes(this->identity_);
  auto what = this->chunks({100000});
  this->put(*this->store_, 1, what);
  EXPECT_GE(*this->store_->taken_bytes(this->identity_), before + 100000);
  EXPECT_GE(*this->store_->taken_bytes(), *this->store_->taken_bytes(this->identity_));
  EXPECT_EQ(*this->store_->taken_bytes(random_id(this->random_)), 0u);
  auto log = this->store_->create_log(this->identity_, 2);
  ASSERT_TRUE(log.is_ok());
  ASSERT_TRUE((*log)->append(random_bytes(this->random_, 5000)).is_ok());
  EXPECT_GE(*this->store_->log_bytes(this->identity_, 2), 5000u);
  EXPECT_EQ(this->store_->log_bytes(this->identity_, 3).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace dedup::store::contract
