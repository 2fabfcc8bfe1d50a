#include "store/commit_record.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/codec.h"
#include "store/format.h"
#include "test/unit/store_helpers.h"

namespace dedup::store {
namespace {

CommitRecord random_record(test::Random& random) {
  CommitRecord r;
  r.identity = test::random_id(random);
  r.number = random();
  r.attempt = test::random_id(random);
  r.parent = test::random_id(random);
  r.path = "/scratch/run\n/" + std::string(test::below(random, 300), 'x');
  r.size = random();
  r.replication = 3;
  r.chunk_size = 4096;
  r.fingerprint = "keyed";
  r.key = test::below(random, 4) == 0 ? Id128{} : test::random_id(random);
  for (std::uint64_t i = 0; i < test::below(random, 4); ++i) {
    r.kept.push_back({random(), test::random_id(random)});
  }
  if (test::below(random, 2) == 0) {
    r.stripes = {static_cast<std::uint8_t>(1 + test::below(random, 60)),
                 static_cast<std::uint8_t>(1 + test::below(random, 4))};
  }
  if (test::below(random, 4) == 0) r.kept_of = {test::random_id(random), random()};
  r.time = random();
  const auto stores = 1 + test::below(random, 20);
  for (std::uint64_t i = 0; i < stores; ++i) {
    r.stores.push_back({test::random_id(random), "n" + std::to_string(i)});
  }
  for (std::uint64_t i = 0; i < test::below(random, 20); ++i) {
    ShardEntry shard;
    for (auto& b : shard.digest) b = static_cast<std::uint8_t>(random());
    for (NodeIndex n = 0; n < stores; ++n) {
      if (test::below(random, 3) == 0) shard.stores.push_back(n);
    }
    r.shards.push_back(shard);
  }
  for (std::uint64_t i = 0; i < test::below(random, 5); ++i) {
    r.lineage.push_back({test::random_id(random), random()});
  }
  return r;
}

TEST(CommitRecord, RoundTrips) {
  test::Random random(1);
  for (int i = 0; i < 200; ++i) {
    const CommitRecord record = random_record(random);
    const auto back = CommitRecord::decode(record.encode());
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    EXPECT_EQ(*back, record);
  }
  EXPECT_EQ(*CommitRecord::decode(CommitRecord{}.encode()), CommitRecord{});
}

TEST(CommitRecord, NoticesAnyDamage) {
  test::Random random(2);
  const Bytes whole = random_record(random).encode();
  test::for_each_damage(whole, [&](const Bytes& damaged) {
    const auto back = CommitRecord::decode(damaged);
    EXPECT_TRUE(back.status().code() == Code::kCorrupt || back.status().code() == Code::kVersion);
  });
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_EQ(CommitRecord::decode(longer).status().code(), Code::kCorrupt);
}

TEST(CommitRecord, RefusesANewerVersion) {
  Bytes bytes = CommitRecord{}.encode();
  bytes[8] = std::byte{7};
  const auto back = CommitRecord::decode(bytes);
  ASSERT_EQ(back.status().code(), Code::kVersion);
  EXPECT_NE(back.status().message().find("written by a newer version of dedup"), std::string::npos);
  EXPECT_NE(back.status().message().find("version 7"), std::string::npos);
}

// A record with these additions, each a tag and its bytes.
Bytes with_additions(const std::vector<std::pair<std::uint32_t, Bytes>>& additions,
                     std::uint32_t version = 2) {
  Bytes bytes = CommitRecord{}.encode();
  bytes.resize(bytes.size() - sizeof(Digest));
  bytes[8] = static_cast<std::byte>(version);
  Encoder out;
  out.bytes() = std::move(bytes);
  if (version > 1) out.put(static_cast<std::uint32_t>(additions.size()));
  for (const auto& [tag, content] : additions) {
    out.put(tag);
    out.put_bytes(content);
  }
  const Digest digest = format::sha256(out.bytes());
  out.put_raw(digest.data(), digest.size());
  return out.take();
}

TEST(CommitRecord, ReadsTheVersionBefore) {
  const auto old = CommitRecord::decode(with_additions({}, 1));
  ASSERT_TRUE(old.is_ok()) << old.status().message();
  EXPECT_EQ(*old, CommitRecord{});
  EXPECT_EQ(old->encode(), with_additions({}, 1));
}

TEST(CommitRecord, RefusesAdditionsThatItDoesNotKnowUnlessItMay) {
  const Bytes key(16, std::byte{5});
  constexpr std::uint32_t kMayBeIgnored = 1u << 31;
  const Bytes bytes = with_additions({{4, key}, {kMayBeIgnored | 1, key}});
  const auto known = CommitRecord::decode(bytes);
  ASSERT_TRUE(known.is_ok()) << known.status().message();
  EXPECT_EQ(known->encode(), bytes) << "who passes it on loses nothing";
  EXPECT_EQ(known->key.bytes[3], 5);
  const auto newer = CommitRecord::decode(with_additions({{4, key}, {7, {}}}));
  ASSERT_EQ(newer.status().code(), Code::kVersion);
  EXPECT_NE(newer.status().message().find("addition 7"), std::string::npos);
  for (const auto& wrong :
       std::vector<std::vector<std::pair<std::uint32_t, Bytes>>>{{},
                                                                 {{4, key}, {4, key}},
                                                                 {{kMayBeIgnored, {}}, {4, key}},
                                                                 {{4, {}}},
                                                                 {{5, {}}},
                                                                 {{5, Bytes(4)}},
                                                                 {{6, Bytes(24)}},
                                                                 {{6, Bytes(25, std::byte{1})}},
                                                                 {{1, {}}},
                                                                 {{1, Bytes(12)}},
                                                                 {{1, Bytes(13, std::byte{1})}},
                                                                 {{4, Bytes(16)}}}) {
    EXPECT_EQ(CommitRecord::decode(with_additions(wrong)).status().code(), Code::kCorrupt);
  }
}

TEST(CommitRecord, RefusesShardsOnStoresThatItDoesNotName) {
  CommitRecord record;
  record.stores.resize(2);
  record.shards.push_back({{}, {0, 2}});
  EXPECT_EQ(CommitRecord::decode(record.encode()).status().code(), Code::kCorrupt);
}

// A tree of generations made by jobs that each saw one leaf, against its parent pointers.
TEST(DescendsFrom, AgreesWithTheParentsOfARandomTree) {
  test::Random random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<CommitRecord> all;
    std::vector<int> parent;
    const Id128 identity = test::random_id(random);
    for (int job = 0; job < 6; ++job) {
      int base = all.empty() ? -1 : static_cast<int>(test::below(random, all.size()));
      const Id128 session = test::random_id(random);
      for (std::uint64_t commits = test::below(random, 4); commits-- > 0;) {
        CommitRecord r;
        r.identity = identity;
        r.attempt = test::random_id(random);
        r.number = 1;
        if (base >= 0) {
          const auto& from = all[static_cast<std::size_t>(base)];
          r.number = from.number + 1;
          r.parent = from.attempt;
          r.lineage = from.lineage;
          if (r.lineage.back().session == session) r.lineage.pop_back();
        }
        r.lineage.push_back({session, r.number});
        parent.push_back(base);
        base = static_cast<int>(all.size());
        all.push_back(r);
      }
    }
    for (std::size_t y = 0; y < all.size(); ++y) {
      for (std::size_t o = 0; o < all.size(); ++o) {
        bool expected = false;
        for (int at = static_cast<int>(y); at >= 0; at = parent[static_cast<std::size_t>(at)]) {
          expected |= at == static_cast<int>(o);
        }
        EXPECT_EQ(descends_from(all[y], all[o]), expected);
      }
    }
  }
}

TEST(DescendsFrom, IsFalseForOtherFilesAndRivalAttempts) {
  const Id128 session = Id128::random();
  CommitRecord a;
  a.identity = Id128::random();
  a.number = 4;
  a.attempt = Id128::random();
  a.lineage = {{session, 4}};
  EXPECT_TRUE(descends_from(a, a));
  CommitRecord rival = a;
  rival.attempt = Id128::random();
  EXPECT_FALSE(descends_from(rival, a));
  CommitRecord other = a;
  other.identity = Id128::random();
  EXPECT_FALSE(descends_from(other, a));
}

}  // namespace
}  // namespace dedup::store
