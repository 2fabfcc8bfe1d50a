#include "base/hasher.h"
#include "test/hooks/names.h"

#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace dedup {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Fingerprint hash_of(DigestKind kind, std::string_view text) {
  auto hasher = Hasher::create(kind);
  EXPECT_TRUE(hasher.is_ok()) << hasher.status().message();
  const auto fingerprint = hasher->hash(bytes_of(text));
  EXPECT_TRUE(fingerprint.is_ok());
  EXPECT_EQ(*hasher->hash(bytes_of(text)), *fingerprint);  // a hasher can be used again
  return *fingerprint;
}

// The test vectors of FIPS 180-2, appendices A.1 and B.1.
TEST(Hasher, GivesTheStandardsHashes) {
  EXPECT_EQ(hash_of(DigestKind::kSha256, "abc").hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of(DigestKind::kSha1, "abc").hex(),
            "a9993e364706816aba3e25717850c26c9cd0d89d000000000000000000000000");
}

std::string hex(const Sha256& hash) {
  Fingerprint fingerprint;
  std::copy(hash.begin(), hash.end(), fingerprint.bytes.begin());
  return fingerprint.hex();
}

// FIPS 180-2, appendix B.1; RFC 4231, test case 2.
TEST(Hasher, GivesTheStandardsHashesInOneCall) {
  EXPECT_EQ(hex(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 mac{};
  ASSERT_TRUE(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"), mac));
  EXPECT_EQ(hex(mac), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

// As for a file that is closed in an exit handler; whether or not something was hashed before.
TEST(Hasher, WorksAfterOpensslHasCleanedUp) {
  const auto hash_all = [](Hasher& early) {
    const auto before = early.hash(bytes_of("abc"));
    OPENSSL_cleanup();
    auto late = Hasher::create(DigestKind::kSha256);
    Sha256 mac{};
    const bool right =
        before.is_ok() && late.is_ok() && late->hash(bytes_of("abc")).value() == before.value() &&
        early.hash(bytes_of("abc")).value() == before.value() &&
        hex(sha256({})).starts_with("e3b0") &&
        hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"), mac) &&
        hex(mac).starts_with("5bdcc146");
    std::_Exit(right ? 0 : 1);
  };
  auto early = Hasher::create(DigestKind::kSha256);
  ASSERT_TRUE(early.is_ok());
  EXPECT_EXIT(hash_all(*early), testing::ExitedWithCode(0), "");
}

TEST(FingerprintCheck, TellsFingerprintsApart) {
  EXPECT_EQ(kind_of(hash_of(DigestKind::kSha256, "abc")), NameKind::kSha256);
  EXPECT_EQ(kind_of(hash_of(DigestKind::kSha1, "abc")), NameKind::kSha1);
  for (int i = 0; i < 1000; ++i) {
    UniqueNumbers numbers;
    EXPECT_EQ(kind_of(numbers.next()), NameKind::kNumber);
    EXPECT_EQ(kind_of(numbers.next()), NameKind::kNumber);
  }
  for (const std::uint64_t number : {std::uint64_t{0}, (std::uint64_t{1} << 48) - 1}) {
    for (const std::string_view text : {"", "abc"}) {
      const Fingerprint content = test::content_name(bytes_of(text));
      const Fingerprint single = name_of_single(content, number);
      EXPECT_EQ(kind_of(content), NameKind::kKeyed);
      EXPECT_FALSE(is_single(content));
      EXPECT_EQ(content_of(content), content);
      EXPECT_EQ(kind_of(single), NameKind::kKeyedSingle);
      EXPECT_TRUE(is_single(single));
      EXPECT_EQ(content_of(single), content);
      EXPECT_EQ(number_of_single(single), number);
      const Fingerprint old = test::old_single_name(bytes_of(text), number);
      EXPECT_EQ(kind_of(old), NameKind::kSingle);
      EXPECT_TRUE(is_single(old));
      EXPECT_EQ(number_of_single(old), number);
    }
  }
  // A SHA-256 may end in zeros and the single's mark elsewhere.
  Fingerprint strong = hash_of(DigestKind::kSha256, "abc");
  std::fill(strong.bytes.begin() + 25, strong.bytes.end(), std::uint8_t{0});
  strong.bytes[24] = 2;
  EXPECT_EQ(kind_of(strong), NameKind::kSha256);
  strong.bytes[26] = 5;
  EXPECT_EQ(kind_of(strong), NameKind::kSha256);
  const Id128 stripe = Id128::random();
  for (const std::uint8_t part : {0, 1, 255}) {
    const Fingerprint name = name_of_stripe_part(stripe, part);
    EXPECT_EQ(kind_of(name), NameKind::kStripePart);
    EXPECT_EQ(number_of_stripe_part(name), part);
    EXPECT_FALSE(is_single(name));
    EXPECT_EQ(content_of(name), name);
    EXPECT_TRUE(*FingerprintCheck().holds(name, bytes_of("whatever")));
  }
}

TEST(FastHash, IsXxh3) {
  // Of nothing and of "abc", as `xxhsum -H2` says.
  EXPECT_EQ(fast_hash({}), (FastHash{0x6001c324468d497f, 0x99aa06d3014798d8}));
  EXPECT_EQ(fast_hash(bytes_of("abc")), (FastHash{0x78af5f94892f3950, 0x06b05ab6733a6185}));
  SingleNumbers numbers;
  const Fingerprint one = test::single_name(bytes_of("abc"), numbers.next());
  EXPECT_NE(one, test::single_name(bytes_of("abc"), numbers.next()));
}

TEST(FingerprintCheck, HoldsForTheChunkAlone) {
  FingerprintCheck check;
  for (const DigestKind kind : {DigestKind::kSha256, DigestKind::kSha1}) {
    const Fingerprint fingerprint = hash_of(kind, "a chunk");
    EXPECT_TRUE(*check.holds(fingerprint, bytes_of("a chunk")));
    EXPECT_FALSE(*check.holds(fingerprint, bytes_of("a chunK")));
    EXPECT_FALSE(*check.holds(fingerprint, bytes_of("a chunk ")));
    EXPECT_FALSE(*check.holds(fingerprint, {}));
  }
  UniqueNumbers numbers;
  EXPECT_TRUE(*check.holds(numbers.next(), bytes_of("whatever")));
  for (const Fingerprint& name :
       {test::content_name(bytes_of("a chunk")), test::single_name(bytes_of("a chunk"), 42),
        test::old_single_name(bytes_of("a chunk"), 42)}) {
    EXPECT_TRUE(*check.holds(name, bytes_of("a chunk")));
    EXPECT_FALSE(*check.holds(name, bytes_of("a chunK")));
  }
}

}  // namespace
}  // namespace dedup
