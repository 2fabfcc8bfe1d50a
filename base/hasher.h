// Hashes of chunks, and the fingerprints that name them: computing them, and checking a chunk
// against its own.
//
// There are two hashes. The fast one (XXH3, 128 bits, at the memory's speed) finds chunks that may
// be equal; anybody can make different chunks with the same one, so it never proves that they are.
// The strong one (SHA-256) does: equal fingerprints of that kind are taken as equal content. SHA-1
// did once, and names chunks of files that were written then; nothing else is taken for one of
// them.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "base/types.h"

namespace dedup {

enum class FingerprintKind { kSha256, kSha1 };

// All hashing here goes on after OpenSSL's own clean-up at exit(): programs close files in handlers
// that run later, and services answer as long as the process lives.

using Sha256 = std::array<std::uint8_t, 32>;

// Every OpenSSL has it; one without ends the process, since no data could be trusted.
Sha256 sha256(std::span<const std::byte> bytes);
// HMAC-SHA-256 (RFC 2104). False if OpenSSL does not offer it.
bool hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message, Sha256& out);

// Computes fingerprints by OpenSSL; a context is made once and used again. One thread at a time.
class Hasher {
 public:
  // kUnsupported if OpenSSL does not offer the hash.
  static Result<Hasher> create(FingerprintKind kind);

  Result<Fingerprint> hash(std::span<const std::byte> chunk);

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  explicit Hasher(EVP_MD_CTX* context) : context_(context) {}

  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

FastHash fast_hash(std::span<const std::byte> chunk);

// The fingerprint of a chunk that was found to have no twin: its fast hash, and a number that no
// other chunk with that hash has. So it is equal to no other chunk's, whatever their content.
Fingerprint name_of_single(const FastHash& hash, std::uint64_t number);
// Of such a fingerprint.
FastHash fast_part(const Fingerprint& fingerprint);
std::uint64_t number_part(const Fingerprint& fingerprint);

// Numbers for name_of_single(): 64 bits, the first random, each of the others one more than the one
// before it, which readers make use of (store/chunk_reader.h).
class SingleNumbers {
 public:
  SingleNumbers();
  std::uint64_t next();

 private:
  std::uint64_t next_;
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

// What a fingerprint is, as its last bytes tell (doc/format.md, "Fingerprints").
enum class NameKind {
  kSha256,
  kSha1,
  kSingle,  // name_of_single()
  kNumber,  // of mode `none`: says nothing of the chunk's content
};
NameKind kind_of(const Fingerprint& fingerprint);
inline bool is_strong(NameKind kind) {
  return kind == NameKind::kSha256;
}

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
