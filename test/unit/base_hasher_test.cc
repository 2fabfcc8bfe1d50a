#include "base/hasher.h"

#include <gtest/gtest.h>

#include <string_view>

namespace dedup {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Fingerprint hash_of(FingerprintKind kind, std::string_view text) {
  auto hasher = Hasher::create(kind);
  EXPECT_TRUE(hasher.is_ok()) << hasher.status().message();
  const auto fingerprint = hasher->hash(bytes_of(text));
  EXPECT_TRUE(fingerprint.is_ok());
  EXPECT_EQ(*hasher->hash(bytes_of(text)), *fingerprint);  // a hasher can be used again
  return *fingerprint;
}

// The test vectors of FIPS 180-2, appendices A.1 and B.1.
TEST(Hasher, GivesTheStandardsHashes) {
  EXPECT_EQ(hash_of(FingerprintKind::kSha256, "abc").hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of(FingerprintKind::kSha1, "abc").hex(),
            "a9993e364706816aba3e25717850c26c9cd0d89d000000000000000000000000");
}

TEST(FingerprintCheck, TellsFingerprintsApart) {
  EXPECT_EQ(kind_of(hash_of(FingerprintKind::kSha256, "abc")), FingerprintKind::kSha256);
  EXPECT_EQ(kind_of(hash_of(FingerprintKind::kSha1, "abc")), FingerprintKind::kSha1);
  for (int i = 0; i < 1000; ++i) {
    UniqueNumbers numbers;
    EXPECT_EQ(kind_of(numbers.next()), std::nullopt);
    EXPECT_EQ(kind_of(numbers.next()), std::nullopt);
  }
}

TEST(FingerprintCheck, HoldsForTheChunkAlone) {
  FingerprintCheck check;
  for (const FingerprintKind kind : {FingerprintKind::kSha256, FingerprintKind::kSha1}) {
    const Fingerprint fingerprint = hash_of(kind, "a chunk");
    EXPECT_TRUE(*check.holds(fingerprint, bytes_of("a chunk")));
    EXPECT_FALSE(*check.holds(fingerprint, bytes_of("a chunK")));
    EXPECT_FALSE(*check.holds(fingerprint, bytes_of("a chunk ")));
    EXPECT_FALSE(*check.holds(fingerprint, {}));
  }
  UniqueNumbers numbers;
  EXPECT_TRUE(*check.holds(numbers.next(), bytes_of("whatever")));
}

}  // namespace
}  // namespace dedup
