#include "base/chunk_namer.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

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

Bytes patterned_bytes(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
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

// As an earlier version made them, by OpenSSL alone: they are in stores.
TEST(ChunkNamer, IsWhatItWas) {
  const std::pair<std::size_t, const char*> names[] = {
      {0, "291f0452d664d3b52ce21ca87f498d4624c30160000000000000030000000000"},
      {1, "44af350248d688afda9de9ecdbec4e07f4df4bc4000000000000030000000000"},
      {15, "f2f77672409bc7a0410077b1e7f77b8dc4e56cb3000000000000030000000000"},
      {16, "6be178d0354b9725db9aeefc466f75207ba1ea94000000000000030000000000"},
      {17, "1a340adb1c809e5d9808c26e3c0cd9de34e45f73000000000000030000000000"},
      {100, "40c0f86ef9db27722c2ca588cd3045a00b1ac33d000000000000030000000000"},
      {4095, "9893ae034fb2ab19ef8b95b19658430e74eab5d8000000000000030000000000"},
      {4096, "09adea6f813aadea3bf8741c49358b9a5ca9735a000000000000030000000000"},
      {4097, "ab5e90931b72d7cd1506e9bdc56503e010864282000000000000030000000000"},
      {65536, "99768dfc87b3685a889f83ed3c35df801340880d000000000000030000000000"},
      {70000, "3f2318a5bd04e1247b5f90c42b6137084ba4c7ab000000000000030000000000"},
  };
  ChunkNamer namer = namer_of(FingerprintKind::kKeyed, Id128{{1, 2, 3}});
  for (const auto& [size, expected] : names) {
    EXPECT_EQ(name(namer, patterned_bytes(size)).hex(), expected) << size;
  }
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
