// Block homes against a file that is an array of numbered bytes.
//
// Every byte ever written has a number of its own (0: zeros), whether it is in a log or a chunk.
// The model knows no layers of chunks: only what the file is (`chunks`), what of it is in a log
// (`logged`), and what each snapshot was. Commits and installs are done as a rank would do them,
// from what the homes answer. What is written under a lease is the newest; whoever meets the lease
// has it returned, and asks again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "plan/block.h"
#include "service/block_home.h"
#include "service/messages/block_home.h"

namespace dedup::service {
namespace {

using Place = std::tuple<NodeIndex, std::uint64_t, std::uint64_t>;  // node, log, position

// The test's file: the first bytes of a few blocks; all else is never written.
constexpr std::uint32_t kWindow = 60;
constexpr std::uint64_t kBlocks[] = {0, 1, 2, 5};

// What a reader that read `content` from its shard sends. The record's stores are FileInfo's.
InstallBase install(const Id128& identity, const Id128& attempt, std::uint64_t block,
                    const Block& content) {
  return {identity,
          attempt,
          {{0, 1, 2}},
          {store::with_checksum(block,
                                content.pieces.empty() ? Bytes{} : store::encode_block(content))}};
}

class HomeTest {
 public:
  HomeTest(unsigned seed, std::size_t cache) : random_(seed), homes_(cache) {
    identity_.bytes[0] = 1;
    homes_.attach(identity_, {});
  }

  void step() {
    switch (up_to(18)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return write_log();
      case 4:
      case 5:
        return write_chunks();
      case 6:
      case 7:
      case 8:
        return convert();
      case 16:
      case 17:
        return up_to(8) == 0 ? return_some() : write_leased();
      case 9:
        return up_to(3) == 0 ? truncate() : resolve();
      case 10:
        return up_to(2) == 0 ? snapshot() : resolve();
      case 11:
        return up_to(2) == 0 ? end_commit() : resolve();
      default:
        return resolve();
    }
  }
  std::size_t installs() const { return installs_; }
  std::size_t own_bases() const { return own_bases_; }
  std::size_t commits() const { return commits_; }
  std::size_t leased() const { return leased_; }

 private:
  struct Byte {
    std::uint64_t number = 0;     // of the newest byte in a chunk; 0: zeros
    std::optional<Place> logged;  // a newer one
  };
  using File = std::map<std::uint64_t, Byte>;  // by file offset; absent: zeros
  using Plain = std::map<std::uint64_t, std::uint64_t>;
  struct Chunk {
    std::vector<std::uint64_t> numbers;
    plan::Placement placement;
  };
  struct LogWrite {
    std::uint64_t block;
    LogPiece piece;
  };

  std::uint32_t up_to(std::uint64_t n) { return static_cast<std::uint32_t>(random_() % n); }
  Id128 new_attempt() {
    Id128 id;
    id.bytes[3] = 1;
    ++attempts_;
    std::memcpy(id.bytes.data() + 8, &attempts_, sizeof attempts_);
    return id;
  }
  std::uint64_t some_block() { return kBlocks[up_to(std::size(kBlocks))]; }
  plan::Extent some_extent() {
    const std::uint32_t begin = up_to(kWindow);
    return {begin, begin + 1 + up_to(std::min(kWindow - begin, 30u))};
  }
  Piece new_chunk(plan::Extent extent, const std::vector<std::uint64_t>& numbers) {
    Piece piece;
    piece.begin = extent.begin;
    piece.length = piece.chunk_length = extent.end - extent.begin;
    ++fingerprints_;
    std::memcpy(piece.fingerprint.bytes.data(), &fingerprints_, sizeof fingerprints_);
    chunks_[piece.fingerprint] = {numbers,
                                  plan::Placement::copies_on({static_cast<NodeIndex>(up_to(3))})};
    return piece;
  }

  void write_log() {
    WriteLog request{identity_, {}};
    for (std::uint32_t i = up_to(4) + 1; i > 0; --i) {
      const std::uint64_t block = some_block();
      plan::Extent extent = some_extent();
      const auto node = static_cast<NodeIndex>(up_to(2));
      const std::uint64_t log = up_to(2);
      std::vector<std::uint64_t>& bytes = logs_[{node, log}];
      const LogPiece piece{extent.begin, extent.end - extent.begin, node, log, bytes.size()};
      request.updates.push_back({block, piece});
      written_.push_back({block, piece});
      for (std::uint32_t at = extent.begin; at < extent.end; ++at) {
        file_[block * kBlockSpan + at].logged = Place{node, log, bytes.size()};
        bytes.push_back(++numbers_);
      }
    }
    if (up_to(2) == 0) {
      const LogUpdate& last = request.updates.back();
      request.wanted = {last.block, last.piece.node, last.piece.log, up_to(16), ++serials_};
    }
    const WriteLogReply reply = ask(request);
    EXPECT_TRUE(!reply.granted || request.wanted.serial != 0);
    if (reply.granted) {
      EXPECT_TRUE(leases_.try_emplace(request.wanted.block, request.wanted).second);
    }
  }

  void write_leased() {
    if (leases_.empty()) return;
    auto& [block, held] = *std::next(leases_.begin(), up_to(leases_.size()));
    const plan::Extent extent = some_extent();
    const Lease& lease = held.lease;
    std::vector<std::uint64_t>& bytes = logs_[{lease.node, lease.log}];
    held.pieces.push_back(
        {extent.begin, extent.end - extent.begin, lease.node, lease.log, bytes.size()});
    written_.push_back({block, held.pieces.back()});
    for (std::uint32_t at = extent.begin; at < extent.end; ++at) {
      file_[block * kBlockSpan + at].logged = Place{lease.node, lease.log, bytes.size()};
      bytes.push_back(++numbers_);
    }
    ++leased_;
  }

  void return_lease(const Lease& lease, bool recalled) {
    const auto at = leases_.find(lease.block);
    ASSERT_TRUE(at != leases_.end() && at->second.lease == lease);
    ReturnLease request{identity_, lease, at->second.pieces, recalled};
    ASSERT_TRUE(homes_.on(request).is_ok());
    leases_.erase(at);
    // Whoever is late changes nothing, even if the block is leased again.
    late_ = request;
  }

  void return_some() {
    if (late_.lease.serial != 0) {
      ASSERT_TRUE(homes_.on(late_).is_ok());
    }
    if (leases_.empty()) return;
    const auto at = std::next(leases_.begin(), up_to(leases_.size()));
    return_lease(at->second.lease, up_to(2) == 0);
  }

  // Asks until no lease is in the way.
  template <typename Request>
  typename Request::Reply ask(const Request& request) {
    for (;;) {
      const auto reply = homes_.on(request);
      EXPECT_TRUE(reply.is_ok());
      if (!reply.is_ok() || reply->leases.empty()) return *reply;
      for (const Lease& lease : reply->leases) return_lease(lease, true);
      if (testing::Test::HasFailure()) return *reply;
    }
  }

  void write_chunks() {
    BlockUpdate update{some_block(), {}};
    for (std::uint32_t i = up_to(3) + 1; i > 0; --i) {
      const plan::Extent extent = some_extent();
      if (up_to(4) == 0) {
        Piece zeros;
        zeros.begin = extent.begin;
        zeros.length = extent.end - extent.begin;
        plan::insert(update.content, zeros, {});
      } else {
        std::vector<std::uint64_t> numbers(extent.end - extent.begin);
        for (std::uint64_t& number : numbers) number = ++numbers_;
        const Piece piece = new_chunk(extent, numbers);
        plan::insert(update.content, piece, chunks_[piece.fingerprint].placement);
      }
    }
    for (const auto& [at, number] : plain(update.block, update.content)) {
      file_[at] = {number, std::nullopt};
    }
    ask(WriteChunks{identity_, {update}});
  }

  // Of something that was written once, and may be overwritten by now.
  void convert() {
    if (written_.empty()) return;
    const std::size_t newest = std::min<std::size_t>(written_.size(), 8);
    const LogWrite& write = written_[written_.size() - 1 - up_to(newest)];
    const LogPiece& log = write.piece;
    // As a rank does before it commits. (If another rank overwrote it under a lease, the home
    // cannot know: the piece is committed all the same. The model does without that.)
    for (auto at = leases_.begin(); at != leases_.end();) {
      const Lease lease = (at++)->second.lease;
      const bool own = lease.node == log.node && lease.log == log.log;
      if (own || lease.block == write.block) return_lease(lease, false);
    }
    const std::vector<std::uint64_t>& bytes = logs_[{log.node, log.log}];
    Convert request{identity_, log.node, log.log, {{write.block, {}, {}}}};
    ConvertUpdate& update = request.updates.back();
    // As two chunks, and perhaps not all of it.
    const std::uint32_t from = up_to(log.length);
    const std::uint32_t half = from + up_to(log.length - from);
    for (const auto& [begin, end] : {std::pair{from, half}, std::pair{half, log.length}}) {
      if (begin == end) continue;
      const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(log.log_offset);
      const Piece piece = new_chunk({log.begin + begin, log.begin + end}, {at + begin, at + end});
      plan::insert(update.content, piece, chunks_[piece.fingerprint].placement);
      update.log_offsets.push_back(log.log_offset + begin);
    }
    for (std::uint32_t i = from; i < log.length; ++i) {
      Byte& byte = file_[write.block * kBlockSpan + log.begin + i];
      if (byte.logged != Place{log.node, log.log, log.log_offset + i}) continue;
      byte = {bytes[log.log_offset + i], std::nullopt};
    }
    ASSERT_TRUE(homes_.on(request).is_ok());
  }

  void truncate() {
    const std::uint64_t size = some_block() * kBlockSpan + (up_to(4) == 0 ? 0 : up_to(kWindow));
    file_.erase(file_.lower_bound(size), file_.end());
    ask(Truncate{identity_, size});
  }

  void resolve() {
    const std::uint64_t block = some_block();
    Resolve request{identity_, {}};
    for (std::uint32_t i = up_to(3) + 1; i > 0; --i) {
      const plan::Extent extent = some_extent();
      request.ranges.push_back({block * kBlockSpan + extent.begin, extent.end - extent.begin});
    }
    if (up_to(4) == 0) {
      const std::uint64_t begin = up_to(2) == 0 ? 0 : up_to(kWindow);
      request.ranges.back() = {block * kBlockSpan + begin, kBlockSpan - begin};
    }
    ask(request);
    Result<ResolveReply> reply = homes_.on(request);
    ASSERT_TRUE(reply.is_ok());
    EXPECT_EQ(reply->base, base_);
    const auto needed = [](const ResolvedRange& range) { return range.base_needed; };
    if (std::any_of(reply->ranges.begin(), reply->ranges.end(), needed)) {
      ASSERT_FALSE(base_.is_zero());
      // A base that is not the file's (any more) is ignored.
      Block wrong;
      Piece piece = new_chunk({0, kWindow}, std::vector<std::uint64_t>(kWindow, 77));
      plan::insert(wrong, piece, plan::Placement::copies_on({0}));
      ASSERT_TRUE(homes_.on(install(identity_, new_attempt(), block, wrong)).is_ok());
      ASSERT_TRUE(homes_.on(install(identity_, base_, block, bases_[block])).is_ok());
      ASSERT_TRUE(homes_.on(install(identity_, base_, block, wrong)).is_ok());
      ++installs_;
      reply = homes_.on(request);
      ASSERT_TRUE(reply.is_ok());
    }
    ASSERT_EQ(reply->ranges.size(), request.ranges.size());
    for (std::size_t i = 0; i < request.ranges.size(); ++i) {
      if (reply->ranges[i].base_end > 0) {
        ASSERT_GE(request.ranges[i].length, kOwnBase);
        lay_over_base(request.ranges[i], reply->ranges[i]);
      }
      expect_range(request.ranges[i], reply->ranges[i]);
    }
  }

  // As whoever reads a long range does it.
  void lay_over_base(const ByteRange& asked, ResolvedRange& range) {
    Block base = bases_[asked.offset / kBlockSpan];
    plan::restrict(base, static_cast<std::uint32_t>(asked.offset % kBlockSpan), range.base_end);
    plan::erase(base, plan::extents_of(range.log));
    plan::underlay(range.content, std::move(base));
    ++own_bases_;
  }

  void expect_range(const ByteRange& range, const ResolvedRange& resolved) {
    ASSERT_FALSE(resolved.base_needed);
    const std::uint64_t block = range.offset / kBlockSpan;
    Plain found = plain(block, resolved.content);
    std::map<std::uint64_t, Place> logged;
    for (const LogPiece& piece : resolved.log) {
      for (std::uint32_t i = 0; i < piece.length; ++i) {
        const std::uint64_t at = block * kBlockSpan + piece.begin + i;
        EXPECT_FALSE(found.contains(at));
        EXPECT_TRUE(logged.try_emplace(at, piece.node, piece.log, piece.log_offset + i).second);
      }
    }
    if (!found.empty()) {
      EXPECT_GE(found.begin()->first, range.offset);
      EXPECT_LT(found.rbegin()->first, range.end());
    }
    if (!logged.empty()) {
      EXPECT_GE(logged.begin()->first, range.offset);
      EXPECT_LT(logged.rbegin()->first, range.end());
    }
    for (std::uint64_t at = range.offset;
         at < std::min(range.end(), block * kBlockSpan + kWindow + 1); ++at) {
      const Byte byte = file_.contains(at) ? file_[at] : Byte{};
      if (byte.logged) {
        ASSERT_TRUE(logged.contains(at)) << at;
        ASSERT_EQ(logged[at], *byte.logged) << at;
      } else {
        ASSERT_FALSE(logged.contains(at)) << at;
        ASSERT_EQ(found.contains(at) ? found[at] : 0, byte.number) << at;
      }
    }
  }

  // Begins a commit; one that is under way is forgotten, as if its rank had died.
  void snapshot() {
    attempt_ = new_attempt();
    snapshot_.clear();
    for (const auto& [at, byte] : file_) snapshot_[at] = byte.number;
    Result<SnapshotReply> reply = homes_.on(Snapshot{identity_, attempt_, 0});
    ASSERT_TRUE(reply.is_ok());
    snapshot_reply_ = *reply;
    EXPECT_TRUE(reply->done);
    EXPECT_TRUE(std::is_sorted(reply->blocks.begin(), reply->blocks.end(),
                               [](const auto& a, const auto& b) { return a.block < b.block; }));
  }

  void end_commit() {
    if (up_to(10) == 0) {  // of an attempt that never came to a snapshot
      ASSERT_TRUE(homes_.on(EndCommit{identity_, new_attempt(), false}).is_ok());
    }
    if (attempt_.is_zero()) return;
    const bool committed = up_to(3) != 0;
    if (committed) {
      expect_same_snapshot();
      make_generation();
      base_ = attempt_;
      ++commits_;
    }
    ASSERT_TRUE(homes_.on(EndCommit{identity_, attempt_, committed}).is_ok());
    ASSERT_TRUE(homes_.on(EndCommit{identity_, attempt_, committed}).is_ok());
    attempt_ = {};
  }

  // Whatever happened since, the snapshot is what it was.
  void expect_same_snapshot() {
    Result<SnapshotReply> reply = homes_.on(Snapshot{identity_, attempt_, 0});
    ASSERT_TRUE(reply.is_ok());
    EXPECT_EQ(reply->base_limit, snapshot_reply_.base_limit);
    ASSERT_EQ(reply->blocks.size(), snapshot_reply_.blocks.size());
    for (std::size_t i = 0; i < reply->blocks.size(); ++i) {
      const BlockUpdate& was = snapshot_reply_.blocks[i];
      EXPECT_EQ(reply->blocks[i].block, was.block);
      EXPECT_EQ(plain(was.block, reply->blocks[i].content), plain(was.block, was.content));
    }
  }

  // The new base, from the old one and the snapshot.
  void make_generation() {
    for (std::uint64_t block : kBlocks) {
      const std::uint64_t begin = block * kBlockSpan;
      const std::uint64_t limit = snapshot_reply_.base_limit;
      plan::truncate(
          bases_[block],
          limit <= begin ? 0 : static_cast<std::uint32_t>(std::min(limit - begin, kBlockSpan)));
    }
    for (const BlockUpdate& update : snapshot_reply_.blocks) {
      plan::overlay(bases_[update.block], update.content);
    }
    Plain found;
    for (const auto& [block, content] : bases_) found.merge(plain(block, content));
    std::erase_if(found, [](const auto& entry) { return entry.second == 0; });
    Plain expected = snapshot_;
    std::erase_if(expected, [](const auto& entry) { return entry.second == 0; });
    ASSERT_EQ(found, expected);
  }

  Plain plain(std::uint64_t block, const Block& content) {
    Plain bytes;
    for (const Piece& piece : content.pieces) {
      if (!piece.is_zero()) {
        EXPECT_EQ(content.placements.at(piece.placement), chunks_[piece.fingerprint].placement);
      }
      for (std::uint32_t i = 0; i < piece.length; ++i) {
        const bool added =
            bytes
                .try_emplace(block * kBlockSpan + piece.begin + i,
                             piece.is_zero()
                                 ? 0
                                 : chunks_[piece.fingerprint].numbers.at(piece.chunk_offset + i))
                .second;
        EXPECT_TRUE(added);
      }
    }
    return bytes;
  }

  std::mt19937_64 random_;
  BlockHomes homes_;
  Id128 identity_;
  std::uint64_t attempts_ = 0;
  std::uint64_t fingerprints_ = 0;
  std::uint64_t numbers_ = 0;
  std::uint64_t serials_ = 0;
  std::size_t leased_ = 0;
  std::size_t installs_ = 0;
  std::size_t own_bases_ = 0;
  std::size_t commits_ = 0;

  File file_;
  std::map<std::pair<NodeIndex, std::uint64_t>, std::vector<std::uint64_t>> logs_;
  std::vector<LogWrite> written_;
  struct HeldLease {
    explicit HeldLease(const Lease& held) : lease(held) {}
    Lease lease;
    std::vector<LogPiece> pieces;
  };
  std::map<std::uint64_t, HeldLease> leases_;  // by block
  ReturnLease late_;
  std::map<Fingerprint, Chunk> chunks_;
  Id128 base_;
  std::map<std::uint64_t, Block> bases_;
  Id128 attempt_;  // of the snapshot under way
  Plain snapshot_;
  SnapshotReply snapshot_reply_;
};

TEST(BlockHomes, LikeAnArrayOfBytes) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    // Every third time, the cache keeps one block only.
    HomeTest test(seed, seed % 3 == 0 ? 1 : BlockHomes::kBaseCacheBytes);
    for (int i = 0; i < 3000; ++i) {
      test.step();
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    EXPECT_GT(test.commits(), 10u);
    EXPECT_GT(test.installs(), 10u);
    EXPECT_GT(test.own_bases(), 10u);
    EXPECT_GT(test.leased(), 10u);
  }
}

Id128 id(std::uint8_t n) {
  Id128 id;
  id.bytes[0] = n;
  return id;
}

Piece chunk(std::uint32_t begin, std::uint32_t length, std::uint8_t fingerprint = 1) {
  Piece piece;
  piece.begin = begin;
  piece.length = piece.chunk_length = length;
  piece.fingerprint.bytes[0] = fingerprint;
  return piece;
}

BlockUpdate update(std::uint64_t block, const Piece& piece) {
  BlockUpdate update{block, {}};
  plan::insert(update.content, piece, plan::Placement::copies_on({0}));
  return update;
}

Block content_of(const Piece& piece) {
  return update(0, piece).content;
}

TEST(BlockHomes, WantTheFileAttached) {
  BlockHomes homes;
  const auto refused = [](const auto& result) {
    EXPECT_EQ(result.status().code(), Code::kNotFound);
    EXPECT_NE(result.status().message().find(id(7).hex()), std::string::npos);
  };
  const auto ask_all = [&] {
    refused(homes.on(WriteLog{id(7), {}}));
    refused(homes.on(WriteChunks{id(7), {}}));
    refused(homes.on(Convert{id(7), 0, 0, {}}));
    refused(homes.on(Truncate{id(7), 0}));
    refused(homes.on(Resolve{id(7), {}}));
    refused(homes.on(InstallBase{id(7), id(1), {}, {}}));
    refused(homes.on(Snapshot{id(7), id(1), 0}));
    refused(homes.on(EndCommit{id(7), id(1), true}));
    refused(homes.on(ReturnLease{id(7), {0, 0, 1, 0, 1}, {}, false}));
  };
  ask_all();
  homes.attach(id(7), {});
  EXPECT_TRUE(homes.on(Resolve{id(7), {}}).is_ok());
  homes.detach(id(7));
  homes.detach(id(7));
  ask_all();
}

TEST(BlockHomes, KeepWhatIsWrittenWhenAttachedAgain) {
  BlockHomes homes;
  homes.attach(id(7), id(1));
  ASSERT_TRUE(homes.on(WriteChunks{id(7), {update(3, chunk(0, 10))}}).is_ok());
  ASSERT_TRUE(homes.on(install(id(7), id(1), 3, content_of(chunk(0, 20, 2)))).is_ok());
  const Resolve all{id(7), {{3 * kBlockSpan, 30}}};
  homes.attach(id(7), id(1));
  EXPECT_EQ(homes.on(all)->ranges[0].content.pieces.size(), 2u);
  // Another base: what was installed is not it.
  homes.attach(id(7), id(2));
  EXPECT_TRUE(homes.on(all)->ranges[0].base_needed);
  EXPECT_EQ(homes.on(all)->base, id(2));
  EXPECT_EQ(homes.on(all)->ranges[0].content.pieces.size(), 1u);
  homes.detach(id(7));
  homes.attach(id(7), {});
  EXPECT_FALSE(homes.on(all)->ranges[0].base_needed);
  EXPECT_TRUE(homes.on(all)->ranges[0].content.empty());
}

TEST(BlockHomes, WhatGoesBelowHidesNothing) {
  BlockHomes homes;
  homes.attach(id(7), {});
  ASSERT_TRUE(homes.on(WriteChunks{id(7), {update(0, chunk(10, 10))}}).is_ok());
  ASSERT_TRUE(homes.on(WriteLog{id(7), {{0, {30, 5, 0, 1, 64}}}}).is_ok());
  ASSERT_TRUE(homes.on(Truncate{id(7), 50}).is_ok());
  ASSERT_TRUE(homes.on(WriteLog{id(7), {{0, {90, 5, 0, 1, 69}}}}).is_ok());
  const auto resolve = [&] { return homes.on(Resolve{id(7), {{0, 200}}})->ranges.at(0); };
  // What was opened is visible only as far as the file was never shorter.
  EXPECT_EQ(resolve().plain_end, 50u);
  ASSERT_TRUE(homes.on(WriteChunks{id(7), {update(0, chunk(0, 100, 2))}, true}).is_ok());
  const ResolvedRange range = resolve();
  ASSERT_EQ(range.log.size(), 2u);
  ASSERT_EQ(range.content.pieces.size(), 4u);  // 0…10, 10…20, 20…30, 35…50
  EXPECT_EQ(range.content.pieces[1].fingerprint.bytes[0], 1);
  EXPECT_EQ(range.content.pieces[2].fingerprint.bytes[0], 2);
  EXPECT_EQ(range.content.pieces[3].begin, 35u);
  EXPECT_EQ(range.content.pieces[3].end(), 50u);
}

TEST(BlockHomes, LetNobodyPastALease) {
  BlockHomes homes;
  homes.attach(id(7), {});
  const Lease lease{3, 1, 5, 0, 1};
  const WriteLog wish{id(7), {{3, {0, 10, 1, 5, 64}}}, lease};
  EXPECT_TRUE(homes.on(wish)->granted);
  const auto only = [&](const auto& reply) {
    ASSERT_TRUE(reply.is_ok());
    EXPECT_EQ(reply->leases, std::vector{lease});
  };
  // Not even its owner: a lease is ended before a message says what is newer.
  only(homes.on(wish));
  EXPECT_FALSE(homes.on(wish)->granted);
  only(homes.on(WriteLog{id(7), {{2, {0, 9, 0, 1, 64}}, {3, {20, 1, 0, 1, 73}}}}));
  only(homes.on(WriteChunks{id(7), {update(3, chunk(0, 10))}}));
  only(homes.on(Truncate{id(7), 3 * kBlockSpan + 100}));
  only(homes.on(Resolve{id(7), {{3 * kBlockSpan, 1}, {3 * kBlockSpan + 5, 1}, {0, 1}}}));
  // Nothing was done for those who were turned away.
  EXPECT_TRUE(homes.on(Resolve{id(7), {{2 * kBlockSpan, 10}}})->ranges.at(0).log.empty());
  EXPECT_TRUE(homes.on(Truncate{id(7), 4 * kBlockSpan})->leases.empty());
  const LogPiece newer{5, 10, 1, 5, 74};
  ASSERT_TRUE(homes.on(ReturnLease{id(7), lease, {newer}, true}).is_ok());
  const auto reply = homes.on(Resolve{id(7), {{3 * kBlockSpan, 30}}});
  EXPECT_TRUE(reply->leases.empty());
  ASSERT_EQ(reply->ranges.at(0).log.size(), 2u);
  EXPECT_EQ(reply->ranges[0].log[1].log_offset, 74u);
}

TEST(BlockHomes, GiveNoMoreLeasesOnABlockThatIsShared) {
  BlockHomes homes;
  homes.attach(id(7), {});
  Lease lease{3, 1, 5, 0, 0};
  const auto granted = [&] {
    ++lease.serial;
    return homes.on(WriteLog{id(7), {{3, {0, 10, 1, 5, 64}}}, lease})->granted;
  };
  for (unsigned i = 0; i + 1 < 2 * BlockHomes::kRecalls; ++i) {
    EXPECT_TRUE(granted());
    ASSERT_TRUE(homes.on(ReturnLease{id(7), lease, {}, i % 2 == 0}).is_ok());
  }
  EXPECT_FALSE(granted());
  // What was written is committed: from then on the block is as any other.
  ASSERT_TRUE(homes.on(Convert{id(7), 1, 5, {{3, update(3, chunk(0, 10)).content, {64}}}}).is_ok());
  ASSERT_TRUE(homes.on(Snapshot{id(7), id(1), 0}).is_ok());
  ASSERT_TRUE(homes.on(EndCommit{id(7), id(1), true}).is_ok());
  EXPECT_TRUE(granted());
}

TEST(BlockHomes, NeedTheBaseOnlyWhereItShows) {
  BlockHomes homes;
  homes.attach(id(7), id(1));
  ASSERT_TRUE(homes.on(WriteChunks{id(7), {update(0, chunk(0, 10))}}).is_ok());
  ASSERT_TRUE(homes.on(WriteLog{id(7), {{0, {10, 10, 0, 1, 64}}}}).is_ok());
  const auto needed = [&](std::uint64_t offset, std::uint64_t length) {
    const Result<ResolveReply> reply = homes.on(Resolve{id(7), {{offset, length}}});
    return reply->ranges.at(0).base_needed;
  };
  EXPECT_FALSE(needed(0, 20));
  EXPECT_TRUE(needed(0, 21));
  ASSERT_TRUE(homes.on(Truncate{id(7), 30}).is_ok());
  EXPECT_TRUE(needed(29, 5));
  EXPECT_FALSE(needed(30, 5));
  EXPECT_FALSE(needed(kBlockSpan, 5));
  ASSERT_TRUE(homes.on(Truncate{id(7), 20}).is_ok());
  EXPECT_FALSE(needed(0, 100));
  // Whoever asks for much is told how much is the base's, and reads it alone.
  homes.attach(id(9), id(1));
  ASSERT_TRUE(homes.on(Truncate{id(9), kBlockSpan + 40}).is_ok());
  const auto reply = homes.on(Resolve{
      id(9),
      {{0, kOwnBase - 1}, {1, kOwnBase}, {kBlockSpan, kBlockSpan}, {kBlockSpan + 40, kOwnBase}}});
  EXPECT_TRUE(reply->ranges[0].base_needed);
  EXPECT_EQ(reply->ranges[0].base_end, 0u);
  EXPECT_FALSE(reply->ranges[1].base_needed);
  EXPECT_EQ(reply->ranges[1].base_end, kOwnBase + 1);
  EXPECT_EQ(reply->ranges[2].base_end, 40u);
  EXPECT_EQ(reply->ranges[3].base_end, 0u);
  // A block that the base does not have is installed empty, and then known.
  homes.attach(id(8), id(1));
  ASSERT_TRUE(homes.on(install(id(8), id(1), 4, {})).is_ok());
  EXPECT_FALSE(homes.on(Resolve{id(8), {{4 * kBlockSpan, 1}}})->ranges[0].base_needed);
  EXPECT_TRUE(homes.on(Resolve{id(8), {{5 * kBlockSpan, 1}}})->ranges[0].base_needed);
}

TEST(BlockHomes, KeepNoBaseThatWasDamagedOnItsWay) {
  BlockHomes homes;
  homes.attach(id(7), id(1));
  const InstallBase sound = install(id(7), id(1), 3, content_of(chunk(0, 20, 2)));
  const Resolve all{id(7), {{3 * kBlockSpan, 30}}};
  for (std::size_t i = 0; i < sound.blocks[0].bytes.size(); ++i) {
    InstallBase damaged = sound;
    damaged.blocks[0].bytes[i] ^= std::byte{8};
    EXPECT_EQ(homes.on(damaged).status().code(), Code::kCorrupt);
  }
  InstallBase elsewhere = sound;
  elsewhere.blocks[0].number = 4;
  EXPECT_EQ(homes.on(elsewhere).status().code(), Code::kCorrupt);
  InstallBase unknown = sound;
  unknown.stores.nodes.clear();
  EXPECT_EQ(homes.on(unknown).status().code(), Code::kCorrupt);
  EXPECT_TRUE(homes.on(all)->ranges[0].base_needed);
  ASSERT_TRUE(homes.on(sound).is_ok());
  EXPECT_EQ(homes.on(all)->ranges[0].content.pieces.size(), 1u);
}

TEST(BlockHomes, SnapshotsComeInPagesOfOneMoment) {
  BlockHomes homes;
  homes.attach(id(7), {});
  constexpr std::uint64_t kCount = 30;
  constexpr std::uint32_t kPieces = kBlockSpan / 512;
  for (std::uint64_t b = 0; b < kCount; ++b) {
    BlockUpdate full{2 * b, {}};
    for (std::uint32_t i = 0; i < kPieces; ++i) {
      plan::insert(full.content, chunk(i * 512, 512), plan::Placement::copies_on({0}));
    }
    ASSERT_TRUE(homes.on(WriteChunks{id(7), {full}}).is_ok());
  }
  std::uint64_t blocks = 0;
  std::uint64_t cursor = 0;
  std::uint64_t pages = 0;
  for (bool done = false; !done; ++pages) {
    const Result<SnapshotReply> reply = homes.on(Snapshot{id(7), id(1), cursor});
    ASSERT_TRUE(reply.is_ok());
    EXPECT_LT(encoded(*reply).size(), 2 * kPayload);
    EXPECT_EQ(reply->base_limit, std::numeric_limits<std::uint64_t>::max());
    for (const BlockUpdate& page : reply->blocks) {
      EXPECT_EQ(page.block, 2 * blocks++);
      EXPECT_EQ(page.content.pieces.size(), kPieces);
    }
    done = reply->done;
    EXPECT_TRUE(done || reply->cursor > cursor);
    cursor = reply->cursor;
    // Later changes are not part of it.
    ASSERT_TRUE(
        homes.on(WriteChunks{id(7), {update(58, chunk(5, 5)), update(61, chunk(0, 9))}}).is_ok());
    ASSERT_TRUE(homes.on(Truncate{id(7), 40 * kBlockSpan}).is_ok());
  }
  EXPECT_EQ(blocks, kCount);
  EXPECT_GE(pages, 3u);
  // Committed: of the new base, only what was not cut off since counts.
  ASSERT_TRUE(homes.on(EndCommit{id(7), id(1), true}).is_ok());
  const Resolve ask{id(7), {{39 * kBlockSpan, 9}, {40 * kBlockSpan, 9}}};
  EXPECT_TRUE(homes.on(ask)->ranges[0].base_needed);
  EXPECT_FALSE(homes.on(ask)->ranges[1].base_needed);
  EXPECT_EQ(homes.on(Snapshot{id(7), id(2), 0})->base_limit, 40 * kBlockSpan);
  // A later page of a snapshot that another one has replaced.
  EXPECT_EQ(homes.on(Snapshot{id(7), id(1), 4}).status().code(), Code::kInternal);
}

TEST(BaseCache, IsBoundedAndForgetsTheLeastRecentlyUsed) {
  Block block;
  for (std::uint32_t i = 0; i < 100; ++i)
    plan::insert(block, chunk(i * 2, 1), plan::Placement::copies_on({0}));
  const std::size_t one = plan::memory_of(block);
  BaseCache cache(one * 5);
  for (std::uint64_t b = 0; b < 50; ++b) {
    cache.insert(id(1), b, block);
    EXPECT_LE(cache.bytes(), one * 5);
    EXPECT_NE(cache.find(id(1), b), nullptr);
    EXPECT_NE(cache.find(id(1), 0), nullptr) << b;
  }
  EXPECT_EQ(cache.find(id(1), 40), nullptr);
  cache.insert(id(2), 49, block);
  cache.erase(id(1));
  EXPECT_EQ(cache.find(id(1), 49), nullptr);
  EXPECT_NE(cache.find(id(2), 49), nullptr);
  EXPECT_LT(cache.bytes(), one * 2);
  cache.erase(id(2));
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace dedup::service
