// Names chunks by their content, when they are cut.
//
// A keyed hash tells equal content from other to all who do not know its key, at a part of a
// SHA-256's cost: GHASH (NIST SP 800-38D), of whose value AES makes what nobody can tell from
// random (hash, then encrypt: M. N. Wegman and J. L. Carter, "New hash functions and their use in
// authentication and set equality", 1981). Two chunks that differ, of n bytes at most and made by
// somebody who does not know the key, have the same 96 bits of it with a probability of at most
// 2^-96 + (n / 16 + 2) / 2^128. Names tell nothing about the key.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/gmac.h"
#include "base/hasher.h"
#include "base/status.h"
#include "base/types.h"

namespace dedup {

// One thread at a time.
class ChunkNamer {
 public:
  // `key`: 16 random bytes, for kKeyed: names of different keys have nothing in common.
  // kUnsupported if there is no library that offers what it takes.
  static Result<ChunkNamer> create(FingerprintKind kind, const Id128& key);

  // kKeyed or kSha256. `checksum`: the low half of the chunk's fast_hash().
  Result<Fingerprint> name(std::span<const std::byte> chunk, std::uint64_t checksum);

  bool is_keyed() const { return !sha256_; }

 private:
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };
  using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;

  ChunkNamer() = default;

  std::optional<Gmac> gmac_;
  Context aes_;
  std::optional<Hasher> sha256_;  // in place of both
};

}  // namespace dedup
