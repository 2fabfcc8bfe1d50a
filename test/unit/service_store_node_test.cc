#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "service/messages/store_node.h"
#include "store/files/log_file.h"
#include "store/files/segment_file.h"
#include "store/log.h"
#include "test/unit/store_node_fixture.h"

namespace dedup::service {
namespace {

// ---- The life of a file ------------------------------------------------------------------------

// So that a tier that was away has no segment with the number of one that was written meanwhile.
TEST_F(ServiceStoreNode, GivesNoNumberTwiceInAStoreWithTiers) {
  const auto first_number = [&] {
    EXPECT_TRUE(attach(true).is_ok());
    const auto number = node_->on(OpenSegment{identity_});
    EXPECT_TRUE(number.is_ok());
    EXPECT_EQ(node_->on(OpenSegment{identity_})->number, number->number + 1);
    restart();
    return number->number;
  };
  const std::uint64_t before = first_number();
  EXPECT_EQ(first_number(), before);
  template_ = temp_ / "fast-%n:" + template_;
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 8; ++i) numbers.insert(first_number());
  EXPECT_EQ(numbers.size(), 8u);
  EXPECT_GT(*numbers.rbegin(), std::uint64_t{1} << 32);
}

// Somebody else put a tier in front of the store, in which the file is that is opened now.
TEST_F(ServiceStoreNode, SeesTiersThatCameSinceItOpenedTheStore) {
  const auto known = find();
  ASSERT_OK(known);
  auto other = new_node();
  node_.swap(other);
  const std::string alone = std::exchange(template_, temp_ / "fast-%n:" + template_);
  ASSERT_OK(attach(true));
  const auto what = chunks(3);
  ASSERT_OK(store_as_rank(what));
  ASSERT_OK(commit(what));
  node_.swap(other);
  other.reset();
  template_ = alone;
  ASSERT_OK(attach(false));
  const auto got = get_chunks(*node_, identity_, what);
  ASSERT_OK(got);
  for (std::size_t i = 0; i < what.size(); ++i) EXPECT_EQ((*got)[i], what[i].data);
}

TEST_P(ServiceStoreNodeOnAny, FindsNothingInANewStore) {
  const auto reply = find();
  ASSERT_OK(reply);
  EXPECT_FALSE(reply->store.uuid.is_zero());
  EXPECT_EQ(reply->store.node, "n1");
  EXPECT_GT(reply->free_bytes, 0u);
  EXPECT_TRUE(reply->records.empty());
  EXPECT_TRUE(reply->deleted.empty());
  EXPECT_EQ(find()->store.uuid, reply->store.uuid);
}

TEST_P(ServiceStoreNodeOnAny, StoresNoChunkThatWasDamagedOnItsWay) {
  ASSERT_OK(attach(true));
  const auto what = chunks(2);
  PutChunks request{identity_, {plan::Placement::copies_on({1, 2})}, {}};
  for (const Chunk& chunk : what) {
    request.chunks.push_back(PutChunk::sealed(chunk.fingerprint, 0, chunk.data));
  }
  ChunkBytes& data = request.chunks[1].data;
  const ChunkBytes sound = data;
  Bytes damaged(sound.view().begin(), sound.view().end());
  damaged.back() ^= std::byte{1};
  data = damaged;
  EXPECT_CODE(node_->on(request), kCorrupt);
  expect_absent(what);
  data = sound;
  ASSERT_OK(node_->on(request));
  expect_held(what);
}

TEST_P(ServiceStoreNodeOnAny, CommitsAGenerationThatTheNextJobReads) {
  const auto attached = attach(true);
  ASSERT_OK(attached);
  EXPECT_TRUE(attached->newest.is_zero());
  const auto mine = chunks(30);
  const auto received = chunks(20, 5000);
  ASSERT_OK(store_as_rank(mine));
  ASSERT_OK(put(received));
  expect_held(mine);
  expect_held(received);
  auto all = mine;
  all.insert(all.end(), received.begin(), received.end());
  ASSERT_OK(commit(all));
  expect_held(all);
  ASSERT_OK(node_->on(Detach{identity_, false, {}}));
  EXPECT_CODE(node_->on(look_at(identity_, {})), kInternal);

  restart();
  const auto found = find();
  ASSERT_OK(found);
  ASSERT_EQ(found->records.size(), 1u);
  EXPECT_EQ(found->records[0].digest().attempt, base_);
  const auto again = attach(false);
  ASSERT_OK(again);
  EXPECT_EQ(again->newest, base_);
  expect_held(all);
  expect_absent(chunks(5));
  EXPECT_CODE(node_->on(OpenSegment{identity_}), kReadOnly);
  EXPECT_CODE(node_->on(Claim{identity_, names(all)}), kReadOnly);
  EXPECT_CODE(put(chunks(1)), kReadOnly);
}

TEST_P(ServiceStoreNodeOnAny, ReadsTheRecipe) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  const auto attempt = random_id(random_);
  const auto record = begin_commit(attempt, what);
  ASSERT_OK(record);
  ASSERT_OK(prepare(*record));
  ASSERT_OK(finish_commit(*record));
  const store::Digest digest = record->shards[0].digest;
  const auto list = node_->on(ListShard{identity_, attempt, 0, digest, 0});
  ASSERT_OK(list);
  EXPECT_EQ(list->blocks, (std::vector<std::uint64_t>{3, 7}));
  EXPECT_TRUE(list->done);
  EXPECT_EQ(node_->on(ListShard{identity_, attempt, 0, digest, 4})->blocks,
            std::vector<std::uint64_t>{7});
  EXPECT_TRUE(node_->on(ListShard{identity_, attempt, 0, digest, 8})->blocks.empty());
  const auto read = node_->on(ReadShard{identity_, attempt, 0, digest, {3, 4}});
  ASSERT_OK(read);
  ASSERT_EQ(read->blocks.size(), 2u);
  EXPECT_TRUE(read->blocks[1].bytes.empty());
  const auto block = store::decode_block(read->blocks[0].bytes);
  ASSERT_OK(block);
  ASSERT_EQ(block->pieces.size(), what.size());
  EXPECT_EQ(block->pieces[9].fingerprint, what[9].fingerprint);

  EXPECT_CODE(node_->on(ReadShard{identity_, attempt, 1, digest, {3}}), kNotFound);
  EXPECT_CODE(node_->on(ReadShard{identity_, random_id(random_), 0, digest, {3}}), kNotFound);
  store::Digest other = digest;
  other[0] ^= 1;
  EXPECT_CODE(node_->on(ReadShard{identity_, attempt, 0, other, {3}}), kCorrupt);
  EXPECT_CODE(
      node_->on(ReadShard{identity_, attempt, 0, digest, std::vector<std::uint64_t>(1000, 3)}),
      kArgument);
}

TEST_P(ServiceStoreNodeOnAny, CarriesBlocksOfTheRecipeOver) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  const store::ShardBase base{base_, base_digest_};
  const Bytes same = rest_of_recipe();
  const Bytes other = random_bytes(random_, 100);
  const auto summary = store::summary_of(store::with_checksum(7, same));
  const auto attempt = random_id(random_);
  const PutShard not_begun{identity_, attempt, 0, base, false, true, {}, {}};
  EXPECT_CODE(node_->on(not_begun), kArgument);

  PutShard request{identity_, attempt, 0, base, true, true, {}, {summary}};
  request.blocks = {store::with_checksum(3, other)};
  request.blocks[0].bytes[5] ^= std::byte{1};
  EXPECT_CODE(node_->on(request), kCorrupt);
  request.blocks[0].bytes[5] ^= std::byte{1};
  // Not ended as long as something is lacking.
  request.carried.push_back({11, 50, 60});
  const auto lacking = node_->on(request);
  ASSERT_OK(lacking);
  EXPECT_TRUE(lacking->can_carry);
  EXPECT_EQ(lacking->lacking, std::vector<std::uint64_t>{11});
  PutShard rest{identity_, attempt, 0, base, false, true, {store::with_checksum(11, other)}, {}};
  const auto last = node_->on(rest);
  ASSERT_OK(last);
  EXPECT_TRUE(last->lacking.empty());
  EXPECT_CODE(node_->on(rest), kArgument);  // it has ended
  const auto digest = test::digest_of(identity_, attempt, 0, {{3, other}, {7, same}, {11, other}});
  const auto read = node_->on(ReadShard{identity_, attempt, 0, digest, {3, 7, 11}});
  ASSERT_OK(read);
  EXPECT_EQ(read->blocks[0].bytes, other);
  EXPECT_EQ(read->blocks[1].bytes, same);

  // A base that is not here.
  request.base.attempt = random_id(random_);
  const auto none = node_->on(request);
  ASSERT_OK(none);
  EXPECT_FALSE(none->can_carry);
  EXPECT_EQ(none->lacking, (std::vector<std::uint64_t>{7, 11}));
  ASSERT_OK(node_->on(Abort{identity_, attempt}));
}

TEST_F(ServiceStoreNode, KeepsWhatGenerationsShareAndFreesTheRest) {
  ASSERT_OK(attach(true));
  const auto all = chunks(100);
  const auto first_segment = store_as_rank(all);
  ASSERT_OK(first_segment);
  ASSERT_OK(commit(all));

  // 70 % stays: the segment does too, nothing is written anew.
  auto second = slice(all, 30, 100);
  const auto added = chunks(10);
  ASSERT_OK(store_as_rank(added));
  second.insert(second.end(), added.begin(), added.end());
  ASSERT_OK(commit(second));
  expect_held(second);
  expect_absent(slice(all, 0, 30));
  EXPECT_EQ(files_in("generations"), std::set<std::string>{base_.hex()});
  EXPECT_EQ(files_in("segments").size(), 2u);

  // 20 % of the first segment is left: its chunks move, the segment goes.
  const auto third = slice(all, 80, 100);
  const auto freed = commit(third);
  ASSERT_OK(freed);
  EXPECT_GT(*freed, 100u * 1000);
  expect_held(third);
  expect_absent(slice(all, 0, 80));
  expect_absent(added);
  EXPECT_EQ(files_in("segments").size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(segment_path(*first_segment)));
  std::uint64_t size = 0;
  for (const auto& name : files_in("segments")) {
    size += std::filesystem::file_size(file_directory() + "/segments/" + name);
  }
  EXPECT_LT(size, 25u * 1044);

  restart();
  ASSERT_OK(attach(true));
  expect_held(third);
}

TEST_P(ServiceStoreNodeOnAny, StoresAgainWhatIsDistrusted) {
  ASSERT_OK(attach(true));
  const auto all = chunks(20);
  const auto segment = store_as_rank(all);
  ASSERT_OK(segment);
  ASSERT_OK(commit(all));
  const auto bad = slice(all, 3, 5);
  ASSERT_OK(node_->on(Distrust{identity_, names(bad)}));
  expect_absent(bad);
  expect_held(slice(all, 5, 20));
  const auto attempt = random_id(random_);
  const auto missing = node_->on(refer_to(identity_, attempt, names(all)));
  ASSERT_OK(missing);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(missing->missing[i], i >= 3 && i < 5 ? 1 : 0) << i;
  }
  ASSERT_OK(put(bad));
  expect_held(bad);
  ASSERT_OK(commit(all));
  expect_held(all);
  const auto locations = node_->on(Locate{identity_, names(all)});
  ASSERT_OK(locations);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(locations->locations[i].segment == *segment, i < 3 || i >= 5) << i;
  }
  restart();
  ASSERT_OK(attach(false));
  EXPECT_CODE(node_->on(Distrust{identity_, names(bad)}), kReadOnly);
}

// A chunk with a sound checksum over bytes that it is not named after, between two good ones.
TEST_P(ServiceStoreNodeOnAny, NeverReadsWhatIsDistrustedBesideItsNeighbours) {
  ASSERT_OK(attach(true));
  auto good = chunks(4);
  good.erase(good.begin());  // so that the one in the middle has a header
  auto stored = good;
  stored[1].data[7] ^= std::byte{1};
  ASSERT_OK(store_as_rank(stored));
  ASSERT_OK(commit(good));
  expect_held(stored);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(node_->on(Distrust{identity_, {good[1].fingerprint}}));
    const auto read = get_chunks(*node_, identity_, good);
    ASSERT_OK(read);
    EXPECT_EQ((*read)[0], good[0].data);
    EXPECT_TRUE((*read)[1].empty());
    EXPECT_EQ((*read)[2], good[2].data);
  }
  ASSERT_OK(put({good[1]}));
  expect_held(good);
  ASSERT_OK(commit(good));
  expect_held(good);
}

TEST_F(ServiceStoreNode, FreesWhatWasOverwrittenBeforeTheCommit) {
  ASSERT_OK(attach(true));
  const auto overwritten = chunks(40);
  const auto kept = chunks(5);
  ASSERT_OK(put(overwritten));
  ASSERT_OK(put(kept));
  ASSERT_OK(commit(kept));
  expect_held(kept);
  expect_absent(overwritten);
  EXPECT_EQ(files_in("segments").size(), 1u);
}

TEST_F(ServiceStoreNode, KeepsNoFileOpenThatIsRemoved) {
  ASSERT_OK(attach(true));
  const auto first = chunks(20), second = chunks(20);
  ASSERT_OK(put(first));
  ASSERT_OK(commit(first));
  expect_held(first);
  EXPECT_GT(open_files(), 0u);
  ASSERT_OK(put(second));
  ASSERT_OK(commit(second));
  EXPECT_EQ(open_files(" (deleted)"), 0u);
  expect_held(second);
  ASSERT_OK(node_->on(Detach{identity_, true, {}}));
  EXPECT_EQ(open_files(), 0u);
}

TEST_F(ServiceStoreNode, KeepsTheGenerationThatAnotherJobReads) {
  ASSERT_OK(attach(true));
  const auto first = chunks(20);
  ASSERT_OK(put(first));
  ASSERT_OK(commit(first));

  StoreNode reader("n1", 0, 1);
  ASSERT_OK(reader.on(Find{path_, {}, template_}));
  ASSERT_OK(reader.on(Attach{identity_, path_, template_, base_, false, false}));
  const auto old_base = base_;
  const auto second = chunks(20);
  ASSERT_OK(put(second));
  ASSERT_OK(commit(second));
  EXPECT_EQ(files_in("generations").size(), 2u);
  const auto reply = get_chunks(reader, identity_, first);
  ASSERT_OK(reply);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ((*reply)[i], first[i].data);

  EXPECT_CODE(reader.on(Attach{identity_, path_, template_, old_base, true, false}), kFileInUse);
  ASSERT_OK(reader.on(Detach{identity_, false, {}}));
  ASSERT_OK(commit(second));
  EXPECT_EQ(files_in("generations"), std::set<std::string>{base_.hex()});
}

TEST_F(ServiceStoreNode, TellsAReaderWhoseGenerationIsJustBeingRemovedOfTheNewer) {
  ASSERT_OK(attach(true));
  const auto what = chunks(20);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  const auto old_base = base_;
  StoreNode keeper("n1", 0, 1);
  ASSERT_OK(keeper.on(Find{path_, {}, template_}));
  ASSERT_OK(keeper.on(Attach{identity_, path_, template_, old_base, false, false}));
  ASSERT_OK(commit(what));
  ASSERT_OK(keeper.on(Detach{identity_, false, {}}));

  const auto lock = [&](const Id128& generation) {
    const auto store = store::Store::open(directory(), false);
    auto file =
        store::fs::open_read(test::layout_of(**store).generation(identity_, generation) + "/lock");
    EXPECT_TRUE(file.is_ok() && *store::fs::try_lock(*file, true));
    return std::move(*file);
  };
  const store::fs::File removing = lock(old_base);
  StoreNode reader("n1", 0, 1);
  ASSERT_OK(reader.on(Find{path_, {}, template_}));
  const auto reply = reader.on(Attach{identity_, path_, template_, old_base, false, false});
  ASSERT_OK(reply);
  EXPECT_EQ(reply->newest, base_);
  ASSERT_OK(reader.on(Detach{identity_, false, {}}));
  // The newest one is locked like that by who deletes the file.
  const store::fs::File deleting = lock(base_);
  EXPECT_CODE(reader.on(Attach{identity_, path_, template_, base_, false, false}), kFileInUse);
}

TEST_F(ServiceStoreNode, ReadsThenWritesInOneJob) {
  ASSERT_OK(attach(true));
  const auto first = chunks(20);
  ASSERT_OK(put(first));
  ASSERT_OK(commit(first));
  restart();
  ASSERT_OK(attach(false));
  ASSERT_OK(attach(false));
  expect_held(first);
  const auto upgraded = attach(true);
  ASSERT_OK(upgraded);
  EXPECT_EQ(upgraded->newest, base_);
  const auto second = chunks(20);
  ASSERT_OK(put(second));
  ASSERT_OK(attach(true));  // changes nothing
  ASSERT_OK(attach(false));
  expect_held(second);
  ASSERT_OK(commit(second));
  // Its own reading does not keep the old generation.
  EXPECT_EQ(files_in("generations"), std::set<std::string>{base_.hex()});
}

TEST_P(ServiceStoreNodeOnAny, SaysThatAnotherJobWrites) {
  ASSERT_OK(attach(true));
  StoreNode other("n1", 0, 1, opener_);
  const auto reply = other.on(Attach{identity_, path_, template_, {}, true, true});
  EXPECT_CODE(reply, kFileInUse);
  EXPECT_NE(reply.status().message().find("n1"), std::string::npos);
  EXPECT_CODE(other.on(look_at(identity_, {})), kInternal);  // it is not attached now
  ASSERT_OK(node_->on(Detach{identity_, false, {}}));
  ASSERT_OK(other.on(Attach{identity_, path_, template_, {}, true, true}));
}

TEST_F(ServiceStoreNode, RemovesAFileThatWasNeverCommitted) {
  ASSERT_OK(attach(true));
  ASSERT_OK(put(chunks(10)));
  ASSERT_OK(node_->on(Detach{identity_, false, {}}));
  EXPECT_FALSE(std::filesystem::exists(file_directory()));
  ASSERT_OK(node_->on(Detach{identity_, false, {}}));  // harmless
}

// ---- Claims ------------------------------------------------------------------------------------

TEST_P(ServiceStoreNodeOnAny, GrantsEachChunkOnce) {
  ASSERT_OK(attach(true));
  const auto what = chunks(4);
  auto twice = names(what);
  twice.push_back(what[0].fingerprint);
  using Flags = std::vector<std::uint8_t>;
  EXPECT_EQ(node_->on(Claim{identity_, twice})->granted, (Flags{1, 1, 1, 1, 0}));
  EXPECT_EQ(node_->on(Claim{identity_, names(what)})->granted, (Flags{0, 0, 0, 0}));
  EXPECT_EQ(held_of(*node_->on(look_at(identity_, names(what)))), (Flags{0, 0, 0, 0}));
  ASSERT_OK(node_->on(Release{identity_, {what[1].fingerprint, what[2].fingerprint}}));
  // Copies that other nodes send do not get in the way of whoever is storing the chunk.
  ASSERT_OK(put(what));
  EXPECT_EQ(held_of(*node_->on(look_at(identity_, names(what)))), (Flags{0, 1, 1, 0}));
  EXPECT_EQ(node_->on(Claim{identity_, names(what)})->granted, (Flags{0, 0, 0, 0}));
  ASSERT_OK(node_->on(Release{identity_, names(what)}));  // nothing that is registered goes
  EXPECT_EQ(node_->on(Claim{identity_, names(what)})->granted, (Flags{1, 0, 0, 1}));
}

TEST_F(ServiceStoreNode, GrantsNothingThatIsCommitted) {
  ASSERT_OK(attach(true));
  const auto what = chunks(4);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  EXPECT_EQ(node_->on(Claim{identity_, names(what)})->granted, std::vector<std::uint8_t>(4, 0));
  EXPECT_EQ(files_in("segments").size(), 1u);
  ASSERT_OK(put(what));
  EXPECT_EQ(files_in("segments").size(), 1u);
}

TEST_P(ServiceStoreNodeOnAny, ForgetsClaimsAtACommit) {
  ASSERT_OK(attach(true));
  const auto kept = chunks(3), claimed = chunks(3);
  ASSERT_OK(node_->on(Claim{identity_, names(claimed)}));
  ASSERT_OK(put(kept));
  ASSERT_OK(commit(kept));
  EXPECT_EQ(node_->on(Claim{identity_, names(claimed)})->granted, std::vector<std::uint8_t>(3, 1));
}

// Where the reduction does not tell who has a chunk, a copy may come to a node that has its own.
TEST_P(ServiceStoreNodeOnAny, CopiesYieldToWhoLookedInTheSameRoundOnly) {
  ASSERT_OK(attach(true));
  auto what = names(chunks(4));
  for (Fingerprint& name : what) name = content_of(name);  // none is single
  const DumpRound round{random_id(random_), 7};
  using Flags = std::vector<std::uint8_t>;
  const auto claimed = [&](const DumpRound& in, const Flags& yields) {
    const auto reply = node_->on(Claim{identity_, what, in, yields});
    EXPECT_TRUE(reply.is_ok());
    EXPECT_TRUE(node_->on(Release{identity_, what}).is_ok());
    return reply->granted;
  };
  EXPECT_EQ(claimed(round, {1, 1, 1, 1}), (Flags{1, 1, 1, 1}));
  // Two ranks look, one of them at what the other has, too.
  ASSERT_OK(node_->on(look_at(identity_, {what[0], what[2]}, round)));
  ASSERT_OK(node_->on(look_at(identity_, {what[2], what[3]}, round)));
  EXPECT_EQ(claimed(round, {1, 1, 1, 1}), (Flags{0, 1, 0, 0}));
  EXPECT_EQ(claimed(round, {0, 1, 0, 1}), (Flags{1, 1, 1, 0}));
  EXPECT_EQ(claimed(round, {}), (Flags{1, 1, 1, 1}));
  // Of another handle, and of the next round of this one.
  EXPECT_EQ(claimed({random_id(random_), 7}, {1, 1, 1, 1}), (Flags{1, 1, 1, 1}));
  EXPECT_EQ(claimed({round.handle, 8}, {1, 1, 1, 1}), (Flags{1, 1, 1, 1}));
  EXPECT_EQ(claimed(round, {1, 0, 0, 0}), (Flags{0, 1, 1, 1}));
  // A new round, or a commit, ends it, whatever became of the dump.
  ASSERT_OK(node_->on(look_at(identity_, {what[1]}, {round.handle, 8})));
  EXPECT_EQ(claimed(round, {1, 1, 1, 1}), (Flags{1, 1, 1, 1}));
  EXPECT_EQ(claimed({round.handle, 8}, {1, 1, 1, 1}), (Flags{1, 0, 1, 1}));
  const auto kept = chunks(1);
  ASSERT_OK(put(kept));
  ASSERT_OK(commit(kept));
  EXPECT_EQ(claimed({round.handle, 8}, {1, 1, 1, 1}), (Flags{1, 1, 1, 1}));
}

TEST_P(ServiceStoreNodeOnAny, LookingKeepsNobodyFromStoring) {
  ASSERT_OK(attach(true));
  const auto what = chunks(4);
  ASSERT_OK(node_->on(look_at(identity_, names(what), {random_id(random_), 1})));
  EXPECT_EQ(node_->on(Claim{identity_, names(what)})->granted, std::vector<std::uint8_t>(4, 1));
  ASSERT_OK(node_->on(Release{identity_, names(what)}));
  ASSERT_OK(put(what));
  expect_held(what);
}

TEST_P(ServiceStoreNodeOnAny, FindsChunksByTheirContent) {
  ASSERT_OK(attach(true));
  const auto committed = chunks(2);
  ASSERT_OK(put(committed, {1, 2}));
  ASSERT_OK(commit(committed, {1, 2}));
  const auto since = chunks(2);
  ASSERT_OK(put(since, {1, 3}));
  // Every other one is single. Asked as for chunks that may have a twin, and as for others.
  for (const std::uint8_t shared : {std::uint8_t{0}, std::uint8_t{1}}) {
    Look look{identity_, {}, {}, {random_fingerprint(random_)}, {}};
    for (const auto* part : {&committed, &since}) {
      for (const Chunk& chunk : *part) look.names.push_back(content_of(chunk.fingerprint));
    }
    look.shared.assign(look.names.size(), shared);
    const auto reply = node_->on(look);
    ASSERT_OK(reply);
    EXPECT_EQ(reply->held, (std::vector{Held::kNot, Held::kCommitted, Held::kCommitted,
                                        Held::kSince, Held::kSince}));
    ASSERT_EQ(reply->found.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
      const Fingerprint& name = (i < 2 ? committed[i] : since[i - 2]).fingerprint;
      EXPECT_EQ(reply->found[i].single,
                is_single(name) ? number_of_single(name) : FoundChunk::kShared);
    }
    const auto of_committed = plan::Placement::copies_on({1, 2});
    const auto of_since = plan::Placement::copies_on({1, 3});
    EXPECT_EQ(placements_of(*reply), (std::vector{of_committed, of_committed, of_since, of_since}));
    // A rank that has searched the index itself hears of the others only.
    look.searched = base_;
    EXPECT_EQ(held_of(*node_->on(look)), (std::vector<std::uint8_t>{0, 0, 0, 1, 1}));
    look.searched = random_id(random_);
    EXPECT_EQ(held_of(*node_->on(look)), (std::vector<std::uint8_t>{0, 1, 1, 1, 1}));
  }
}

TEST_P(ServiceStoreNodeOnAny, KnowsTheHoldersOfWhatItHas) {
  ASSERT_OK(attach(true));
  const auto first = chunks(2), second = chunks(2);
  ASSERT_OK(put(first, {0, 1, 3}));
  EXPECT_EQ(placements_of(*node_->on(look_at(identity_, names(first)))),
            std::vector(2, plan::Placement::copies_on({0, 1, 3})));
  ASSERT_OK(commit(first, {1, 2}));
  ASSERT_OK(store_as_rank(second, {1}));
  const auto held = node_->on(look_at(
      identity_, {second[0].fingerprint, random_fingerprint(random_), first[0].fingerprint}));
  ASSERT_OK(held);
  EXPECT_EQ(held->held, (std::vector{Held::kSince, Held::kNot, Held::kCommitted}));
  // Of what is committed, as the recipe had it.
  EXPECT_EQ(placements_of(*held),
            (std::vector{plan::Placement::copies_on({1}), plan::Placement::copies_on({1, 2})}));
  EXPECT_EQ(held->base, base_);
}

TEST_P(ServiceStoreNodeOnAny, RefusesRegistrationsThatCannotBe) {
  ASSERT_OK(attach(true));
  const auto what = chunks(1);
  const auto segment = store_as_rank(what);
  ASSERT_OK(segment);
  const auto location = node_->on(Locate{identity_, names(what)})->locations[0];
  const Fingerprint f = random_fingerprint(random_);
  const auto try_it = [&](store::ChunkLocation l, std::uint32_t number, const NodeSet& nodes) {
    return node_->on(Register{identity_, {plan::Placement::copies_on(nodes)}, {{f, l, number}}});
  };
  EXPECT_CODE(try_it(location, 1, {1}), kArgument);
  EXPECT_CODE(try_it(location, 0, {0}), kArgument);     // not this node
  EXPECT_CODE(try_it(location, 0, {1, 4}), kArgument);  // no such node
  EXPECT_CODE(try_it({*segment + 1, location.offset, 10}, 0, {1}), kArgument);
  EXPECT_CODE(try_it({*segment, location.offset, 0}, 0, {1}), kArgument);
  EXPECT_CODE(try_it({*segment, location.offset + 1, location.length}, 0, {1}), kIo);
  EXPECT_EQ(node_->on(look_at(identity_, {f}))->held[0], Held::kNot);
  ASSERT_OK(try_it(location, 0, {1}));
  // Not its fingerprint: readers find out.
  EXPECT_TRUE((*get_chunks(*node_, identity_, {{f, what[0].data}}))[0].empty());
  ASSERT_OK(commit(what));
  EXPECT_CODE(try_it(location, 0, {1}), kArgument);  // that segment is committed
}

// ---- Logs --------------------------------------------------------------------------------------

TEST_F(ServiceStoreNode, ReadsLogsUntilTheyAreCleared) {
  ASSERT_OK(attach(true));
  const auto number = node_->on(OpenLog{identity_});
  ASSERT_OK(number);
  EXPECT_NE(node_->on(OpenLog{identity_})->number, number->number);
  auto log = (*open_store())->create_log(identity_, number->number);
  ASSERT_OK(log);
  const Bytes data = random_bytes(random_, 10000);
  const auto offset = (*log)->append(data);
  ASSERT_OK(offset);
  const auto read = node_->on(ReadLog{identity_, number->number, *offset + 10, 500});
  ASSERT_OK(read);
  EXPECT_EQ(read->bytes, Bytes(data.begin() + 10, data.begin() + 510));
  ASSERT_OK((*log)->clear(store::LogWriter::Space::kFree));
  EXPECT_CODE(node_->on(ReadLog{identity_, number->number, *offset, 500}), kNotFound);
  EXPECT_CODE(node_->on(ReadLog{identity_, 999, 0, 1}), kNotFound);
  // A commit leaves logs alone, the end of the job does not.
  const auto what = chunks(1);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  EXPECT_EQ(files_in("logs").size(), 1u);
  ASSERT_OK(node_->on(Detach{identity_, false, {}}));
  EXPECT_EQ(files_in("logs").size(), 0u);
}

TEST_P(ServiceStoreNodeOnAny, RecallsLeases) {
  ASSERT_OK(attach(true));
  const auto number = node_->on(OpenLog{identity_});
  ASSERT_OK(number);
  const RecallLease recall{identity_, {3, 0, number->number, 2, 9}};
  EXPECT_CODE(node_->on(recall), kNotFound);
  auto log = (*open_store())->create_log(identity_, number->number);
  ASSERT_OK(log);
  EXPECT_CODE(node_->on(recall), kCorrupt);
  auto table = (*log)->make_leases();
  ASSERT_OK(table);
  EXPECT_FALSE(node_->on(recall)->here);
  (*table)->begin(2, 9);
  (*table)->note(2, {10, 5, 100000});
  (*table)->note(2, {15, 5, 100005});
  (*table)->note(2, {0, 5, 100010});
  for (int i = 0; i < 2; ++i) {
    const auto reply = node_->on(recall);
    ASSERT_OK(reply);
    EXPECT_TRUE(reply->here);
    ASSERT_EQ(reply->pieces.size(), 2u);
    EXPECT_EQ(reply->pieces[0].begin, 10u);
    EXPECT_EQ(reply->pieces[0].length, 10u);
    EXPECT_EQ(reply->pieces[0].node, 1u);
    EXPECT_EQ(reply->pieces[0].log, number->number);
    EXPECT_EQ(reply->pieces[1].log_offset, 100010u);
  }
  EXPECT_TRUE((*table)->end(2));
  ASSERT_OK((*log)->clear(store::LogWriter::Space::kFree));
  EXPECT_TRUE(node_->on(recall)->here);
  (*table)->free(2);
  EXPECT_FALSE(node_->on(recall)->here);
}

// ---- Deleting ----------------------------------------------------------------------------------

TEST_F(ServiceStoreNode, DropsAnOpenFileAndLeavesAMark) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  EXPECT_CODE(node_->on(Drop{template_, identity_, {}}), kFileInUse);
  const Id128 away = random_id(random_);
  ASSERT_OK(node_->on(Detach{identity_, true, {away}}));
  EXPECT_FALSE(std::filesystem::exists(file_directory()));
  auto found = find();
  ASSERT_OK(found);
  EXPECT_TRUE(found->records.empty());
  EXPECT_EQ(found->deleted, std::vector<Id128>{identity_});
  // The other store has dropped it too.
  ASSERT_OK(node_->on(Drop{template_, identity_, {}}));
  EXPECT_TRUE(find()->deleted.empty());
}

TEST_F(ServiceStoreNode, DropsAFileThatIsNotOpen) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  StoreNode other("n1", 1, 4);
  EXPECT_CODE(other.on(Drop{template_, identity_, {random_id(random_)}}), kFileInUse);
  EXPECT_TRUE(find()->deleted.empty());  // not deleted, so not marked
  ASSERT_OK(node_->on(Detach{identity_, false, {}}));
  EXPECT_EQ(find()->records.size(), 1u);
  ASSERT_OK(other.on(Drop{template_, identity_, {}}));
  EXPECT_TRUE(find()->records.empty());
  EXPECT_TRUE(find()->deleted.empty());
  EXPECT_FALSE(std::filesystem::exists(file_directory()));
}

TEST_F(ServiceStoreNode, DropsAMarkedFileThatIsStillThere) {
  ASSERT_OK(attach(true));
  const auto what = chunks(10);
  ASSERT_OK(put(what));
  ASSERT_OK(commit(what));
  ASSERT_OK(node_->on(Detach{identity_, false, {}}));
  {
    const auto store = store::Store::open(directory(), false);
    ASSERT_OK(store);
    ASSERT_OK((*store)->put_mark(identity_, {random_id(random_)}));
  }
  const auto found = find();
  ASSERT_OK(found);
  EXPECT_TRUE(found->records.empty());
  EXPECT_EQ(found->deleted, std::vector<Id128>{identity_});
  EXPECT_FALSE(std::filesystem::exists(file_directory()));
}

// ---- What a commit writes of the index ----------------------------------------------------------

class IndexOfAGeneration : public ServiceStoreNode {
 protected:
  std::vector<store::IndexReader::Run> runs() {
    const auto index = (*open_store())->index(identity_, base_);
    return index.is_ok() ? (*index)->runs() : std::vector<store::IndexReader::Run>();
  }
  // Stores and commits a first generation of so many chunks.
  std::vector<Chunk> first(std::size_t count) {
    auto all = chunks(count, 64);
    EXPECT_TRUE(attach(true).is_ok());
    EXPECT_TRUE(store_as_rank(all).is_ok());
    EXPECT_TRUE(commit(all).is_ok());
    return all;
  }
  // Whether a commit of what little changed needs to be told of everything.
  bool needs_all() {
    const Id128 attempt = random_id(random_);
    EXPECT_TRUE(begin_commit(attempt, {}).is_ok());
    const auto reply = node_->on(WriteIndex{identity_, attempt, true, base_, false});
    EXPECT_TRUE(reply.is_ok()) << reply.status().message();
    EXPECT_TRUE(node_->on(Abort{identity_, attempt}).is_ok());
    return reply->needs_all;
  }
  // Others in the place of the first so many; as committed then.
  std::vector<Chunk> replace(const std::vector<Chunk>& all, std::size_t count) {
    std::vector<Chunk> next = slice(all, count, all.size());
    const auto fresh = chunks(count, 64);
    EXPECT_TRUE(store_as_rank(fresh).is_ok());
    next.insert(next.end(), fresh.begin(), fresh.end());
    EXPECT_TRUE(commit(next).is_ok());
    return next;
  }
};

TEST_F(IndexOfAGeneration, IsWhatIsNewBesideRunsOfTheBase) {
  auto all = first(3000);
  const Id128 base = base_;
  ASSERT_EQ(runs().size(), 1u);
  all = replace(all, 20);
  ASSERT_EQ(runs().size(), 2u);
  EXPECT_EQ(runs()[0].attempt, base);
  EXPECT_EQ(runs()[1].entries, 20u);
  expect_held(all);
  // The next job finds the same.
  restart();
  ASSERT_OK(attach(true));
  expect_held(all);
  ASSERT_OK(commit(all));
  ASSERT_EQ(runs().size(), 3u);
  EXPECT_EQ(runs()[2].entries, 0u);
  expect_held(all);
}

TEST_F(IndexOfAGeneration, IsWholeAgainWhenMuchOfTheBaseIsDead) {
  auto all = first(3000);
  all = replace(all, 120);
  EXPECT_EQ(runs().size(), 2u);
  // With what was dead before it is more than one in 16.
  all = replace(all, 100);
  ASSERT_EQ(runs().size(), 1u);
  EXPECT_EQ(runs()[0].entries, all.size());
  expect_held(all);
}

TEST_F(IndexOfAGeneration, OfADonorMayBeDeadToAQuarterOrAnEighthIfAllWasReferredTo) {
  const auto all = first(3000);
  const Id128 donor = identity_;
  const Id128 donor_base = base_;
  const auto runs_of_a_file_without = [&](std::size_t dropped) {
    identity_ = random_id(random_);
    path_ = "/scratch/run/" + identity_.hex();
    base_ = {};
    number_ = 0;
    const Attach attach{identity_, path_, template_, {}, true, true, false, donor, donor_base};
    EXPECT_TRUE(node_->on(attach).is_ok());
    const auto rest = slice(all, dropped, all.size());
    const auto record = begin_commit(random_id(random_), rest);
    EXPECT_TRUE(record.is_ok()) << record.status().message();
    const WriteIndex index{identity_, record->attempt, true, donor_base, true};
    EXPECT_TRUE(node_->on(index).is_ok());
    EXPECT_TRUE(node_->on(Prepare{identity_, record->encode(), true}).is_ok());
    EXPECT_TRUE(finish_commit(*record).is_ok());
    expect_held(rest);
    return runs().size();
  };
  EXPECT_EQ(runs_of_a_file_without(300), 2u);
  EXPECT_EQ(runs_of_a_file_without(400), 1u);
}

// What stands in the page is stored again, under names that the page may have, too.
TEST_F(IndexOfAGeneration, DoesNotStayWithADamagedPage) {
  auto all = first(3000);
  const std::string path = test::layout_of(*open_store().value()).index(identity_, base_);
  Bytes bytes = test::get_file(path);
  bytes[4096] ^= std::byte{1};
  test::put_file(path, bytes);
  restart();
  ASSERT_OK(attach(true));
  EXPECT_FALSE(needs_all()) << "nobody has read it";
  const auto least = std::min_element(all.begin(), all.end(), [](const Chunk& a, const Chunk& b) {
    return a.fingerprint < b.fingerprint;
  });
  const auto reply = node_->on(Look{identity_, {}, {}, {least->fingerprint}, {0}});
  ASSERT_OK(reply);
  EXPECT_EQ(reply->held, std::vector<Held>{Held::kNot});
  EXPECT_TRUE(needs_all());
}

// The disk may not have it, and another flush would not tell.
TEST_F(IndexOfAGeneration, DoesNotStayWithASegmentThatCouldNotBeFlushed) {
  first(3000);
  EXPECT_FALSE(needs_all());
  const auto segments = open_store().value()->segments(identity_);
  ASSERT_TRUE(segments.is_ok());
  ASSERT_OK(node_->on(ForgetSegment{identity_, segments->front().segment}));
  EXPECT_TRUE(needs_all());
}

TEST_F(IndexOfAGeneration, IsWholeIfItIsSmallOrStoresHaveOtherNumbers) {
  auto all = first(1000);
  all = replace(all, 1);
  EXPECT_EQ(runs().size(), 1u);
  const auto more = chunks(2000, 64);
  ASSERT_OK(store_as_rank(more));
  all.insert(all.end(), more.begin(), more.end());
  ASSERT_OK(commit(all));
  EXPECT_EQ(runs().size(), 1u);
  keeps_numbers_ = false;
  replace(all, 1);
  EXPECT_EQ(runs().size(), 1u);
}

TEST_F(IndexOfAGeneration, IsWholeIfASegmentIsGone) {
  auto all = first(3000);
  const auto more = chunks(100, 64);
  const auto segment = store_as_rank(more);
  ASSERT_OK(segment);
  auto with_more = all;
  with_more.insert(with_more.end(), more.begin(), more.end());
  ASSERT_OK(commit(with_more));
  ASSERT_EQ(runs().size(), 2u);
  for (const bool is_restored : {true, false}) {
    restart();
    const auto names = files_in("segments");
    std::filesystem::remove(file_directory() + "/segments/" + *names.rbegin());
    ASSERT_OK(attach(true));
    if (is_restored) ASSERT_OK(store_as_rank(more));
    ASSERT_OK(commit(is_restored ? with_more : all));
    ASSERT_EQ(runs().size(), 1u);
    expect_held(all);
    if (is_restored) expect_held(more);
  }
}

TEST_F(IndexOfAGeneration, IsWholeIfChunksWereMoved) {
  auto all = first(3000);
  auto few = chunks(100, 64);
  ASSERT_OK(store_as_rank(few));
  auto with_few = all;
  with_few.insert(with_few.end(), few.begin(), few.end());
  ASSERT_OK(commit(with_few));
  ASSERT_EQ(runs().size(), 2u);
  // Less than half of the segment.
  all.insert(all.end(), few.begin(), few.begin() + 30);
  ASSERT_OK(commit(all));
  EXPECT_EQ(runs().size(), 1u);
  EXPECT_EQ(files_in("segments").size(), 2u);
  expect_held(all);
}

// Runs are merged as they grow: there are never many, and what is written goes with what is new.
TEST_F(IndexOfAGeneration, HasFewRuns) {
  auto all = first(2000);
  std::uint64_t written = 0;
  std::uint64_t added = 0;
  for (int i = 0; i < 60; ++i) {
    const auto fresh = chunks(1 + test::below(random_, 40), 64);
    ASSERT_OK(store_as_rank(fresh));
    all.insert(all.end(), fresh.begin(), fresh.end());
    ASSERT_OK(commit(all));
    EXPECT_LE(runs().size(), 8u);
    added += fresh.size();
    written += runs().back().entries;
  }
  // Each entry some log2(1200) times at most.
  EXPECT_LE(written, 10 * added);
  expect_held(all);
  restart();
  ASSERT_OK(attach(true));
  expect_held(all);
}

// ---- All of it, at random ----------------------------------------------------------------------

TEST_F(ServiceStoreNode, KeepsExactlyWhatGenerationsReferTo) {
  const auto universe = chunks(400, 300);
  std::vector<Chunk> file;  // what it consists of, as committed
  ASSERT_OK(attach(true));
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::map<Fingerprint, Chunk> next;
    for (const Chunk& chunk : file) {
      if (test::below(random_, 3) != 0) next[chunk.fingerprint] = chunk;
    }
    std::vector<Chunk> dumped, received;
    for (std::uint64_t i = test::below(random_, 80); i > 0; --i) {
      const Chunk& chunk = universe[test::below(random_, universe.size())];
      (test::below(random_, 2) == 0 ? dumped : received).push_back(chunk);
      if (test::below(random_, 3) != 0) next[chunk.fingerprint] = chunk;
    }
    ASSERT_OK(store_as_rank(dumped));
    ASSERT_OK(put(received));
    std::vector<Chunk> wanted;
    for (const auto& [name, chunk] : next) {
      const bool here = std::any_of(dumped.begin(), dumped.end(),
                                    [&, n = name](const auto& c) { return c.fingerprint == n; }) ||
                        std::any_of(received.begin(), received.end(),
                                    [&, n = name](const auto& c) { return c.fingerprint == n; }) ||
                        std::any_of(file.begin(), file.end(),
                                    [&, n = name](const auto& c) { return c.fingerprint == n; });
      if (here) wanted.push_back(chunk);
    }
    switch (test::below(random_, 4)) {
      case 0: {  // the job dies half-way
        const auto record = begin_commit(random_id(random_), wanted);
        ASSERT_OK(record);
        if (test::below(random_, 2) == 0) ASSERT_OK(prepare(*record));
        restart();
        ASSERT_OK(attach(true));
        break;
      }
      case 1: {  // the attempt fails; the data stays, and is in nobody's way
        const auto record = begin_commit(random_id(random_), wanted);
        ASSERT_OK(record);
        if (test::below(random_, 2) == 0) ASSERT_OK(prepare(*record));
        ASSERT_OK(node_->on(Abort{identity_, record->attempt}));
        expect_held(file);
        expect_held(wanted);
        ASSERT_OK(commit(wanted));
        file = wanted;
        break;
      }
      default:
        ASSERT_OK(commit(wanted));
        file = wanted;
        break;
    }
    std::vector<Chunk> rest;
    for (const Chunk& chunk : universe) {
      const bool in_file = std::any_of(file.begin(), file.end(), [&](const auto& c) {
        return c.fingerprint == chunk.fingerprint;
      });
      if (!in_file) rest.push_back(chunk);
    }
    expect_held(file);
    expect_absent(rest);
    // No chunk of the generation is there twice, and half of each segment at least is live.
    std::map<Fingerprint, int> copies;
    for (const auto& name : files_in("segments")) {
      const std::string path = file_directory() + "/segments/" + name;
      const auto reader = store::SegmentFileReader::open(path);
      ASSERT_OK(reader);
      std::uint64_t live = 0;
      ASSERT_OK((*reader)->scan([&](const Fingerprint& f, const store::ChunkLocation& location) {
        const auto at = node_->on(Locate{identity_, {f}})->locations[0];
        if (at != location) return;
        ++copies[f];
        live += store::stored_size(f, location.length);
      }));
      EXPECT_GE(live, std::filesystem::file_size(path) / 2) << name;
    }
    EXPECT_EQ(copies.size(), file.size());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, ServiceStoreNodeOnAny, testing::Bool(), name_of_kind);

}  // namespace
}  // namespace dedup::service
