// Fingerprints of chunks: computing them, and checking a chunk against its own.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "base/types.h"

namespace dedup {

enum class FingerprintKind { kSha256, kSha1 };

// Computes fingerprints by OpenSSL; a digest and a context are made once and used again. One thread
// at a time.
class Hasher {
 public:
  // kUnsupported if OpenSSL does not offer the hash.
  static Result<Hasher> create(FingerprintKind kind);

  Result<Fingerprint> hash(std::span<const std::byte> chunk);

 private:
  struct Free {
    void operator()(EVP_MD* digest) const { EVP_MD_free(digest); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  Hasher(EVP_MD* digest, EVP_MD_CTX* context) : digest_(digest), context_(context) {}

  std::unique_ptr<EVP_MD, Free> digest_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// Fingerprints that nothing else has, for mode `none`: a random number and a count.
class UniqueNumbers {
 public:
  UniqueNumbers();
  Fingerprint next();

 private:
  Id128 prefix_ = Id128::random();
  std::uint64_t count_ = 0;
};

// What a fingerprint is can be told from its last bytes (doc/format.md, "Fingerprints"); nullopt: a
// number of mode `none`, which says nothing of the chunk's content.
std::optional<FingerprintKind> kind_of(const Fingerprint& fingerprint);

// Whether chunks have the content that their fingerprints stand for. One thread at a time.
class FingerprintCheck {
 public:
  // True for every chunk whose fingerprint is a number. kUnsupported as Hasher::create.
  Result<bool> holds(const Fingerprint& fingerprint, std::span<const std::byte> chunk);

 private:
  std::optional<Hasher> sha256_;
  std::optional<Hasher> sha1_;
};

}  // namespace dedup
