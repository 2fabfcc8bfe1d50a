#include "base/chunk_namer.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "test/unit/store_helpers.h"

namespace dedup {
namespace {

using test::Random;
using test::random_bytes;
using test::random_id;

ChunkNamer namer_of(FingerprintKind kind, const Id128& key) {
  auto namer = ChunkNamer::create(kind, key);
  EXPECT_TRUE(namer.is_ok()) << namer.status().message();
  return std::move(*namer);
}

Fingerprint name(ChunkNamer& namer, const Bytes& chunk) {
  const auto name = namer.name(chunk, fast_hash(chunk).low);
  EXPECT_TRUE(name.is_ok());
  return *name;
}

TEST(ChunkNamer, GivesEqualContentOneNameAndOtherContentAnother) {
  Random random(1);
  const Id128 key = random_id(random);
  ChunkNamer keyed = namer_of(FingerprintKind::kKeyed, key);
  ChunkNamer same = namer_of(FingerprintKind::kKeyed, key);
  std::set<Fingerprint> names;
  const Bytes chunk = random_bytes(random, 4096);
  for (std::size_t i = 0; i < chunk.size(); i += 100) {
    Bytes other = chunk;
    other[i] ^= std::byte{1};
    const Bytes shorter(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    for (const Bytes& one : {chunk, other, shorter}) {
      EXPECT_EQ(name(keyed, one), name(same, one));
      EXPECT_EQ(kind_of(name(keyed, one)), NameKind::kKeyed);
      names.insert(name(keyed, one));
    }
  }
  EXPECT_EQ(names.size(), 1 + 2 * 41u);
}

TEST(ChunkNamer, GivesOtherNamesForAnotherKey) {
  Random random(2);
  ChunkNamer one = namer_of(FingerprintKind::kKeyed, random_id(random));
  ChunkNamer other = namer_of(FingerprintKind::kKeyed, random_id(random));
  const Bytes chunk = random_bytes(random, 1000);
  const Fingerprint a = name(one, chunk);
  const Fingerprint b = name(other, chunk);
  EXPECT_NE(a.prefix(), b.prefix());
  // Both have the checksum, which needs no key.
  FingerprintCheck check;
  EXPECT_TRUE(*check.holds(a, chunk));
  EXPECT_TRUE(*check.holds(b, chunk));
}

// Worked out step by step, from SHA-256, AES and the multiplication of SP 800-38D alone.
TEST(ChunkNamer, IsWhatTheFormatSays) {
  ChunkNamer namer = namer_of(FingerprintKind::kKeyed, Id128{});
  Bytes chunk;
  for (int i = 0; i < 16; ++i) chunk.push_back(static_cast<std::byte>(i));
  EXPECT_EQ(namer.name(chunk, 0x0102030405060708)->hex(),
            "e4a9b267da8692ecb62b0525080706050403020100000000000003000000"
            "0000");
}

TEST(ChunkNamer, TakesSha256WhereItIsAskedFor) {
  ChunkNamer namer = namer_of(FingerprintKind::kSha256, Id128{});
  EXPECT_FALSE(namer.is_keyed());
  const Bytes abc{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  EXPECT_EQ(name(namer, abc).hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace dedup
