// Fingerprints of chunks.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "base/types.h"
#include "hints/hints.h"

namespace dedup::engine {

// Computes fingerprints by OpenSSL; a digest and a context are made once and used again. One thread
// at a time.
class Hasher {
 public:
  // kUnsupported if OpenSSL does not offer the hash.
  static Result<Hasher> create(hints::FingerprintKind kind);

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
  Fingerprint next();

 private:
  Id128 prefix_ = Id128::random();
  std::uint64_t count_ = 0;
};

}  // namespace dedup::engine
