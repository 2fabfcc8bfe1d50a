// Hashes of chunks, and the fingerprints that name them: what they are, and checking a chunk
// against its own. base/chunk_namer.h makes them.
//
// A checksum (XXH3, at the memory's speed) finds damage; anybody can make different chunks with the
// same one, so it never proves that they are equal. A keyed hash does, to all who do not know the
// key, and so does a SHA-256: equal fingerprints of these kinds are taken as equal content. SHA-1
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

// How new chunks are named (base/chunk_namer.h).
enum class FingerprintKind { kKeyed, kSha256 };

enum class DigestKind { kSha256, kSha1 };

// All hashing here goes on after OpenSSL's own clean-up at exit(): programs close files in handlers
// that run later, and services answer as long as the process lives.

using Sha256 = std::array<std::uint8_t, 32>;

// Every OpenSSL has it; one without ends the process, since no data could be trusted.
Sha256 sha256(std::span<const std::byte> bytes);
// HMAC-SHA-256 (RFC 2104). False if OpenSSL does not offer it.
bool hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message, Sha256& out);

// Computes digests as fingerprints by OpenSSL; a context is made once and used again. One thread at
// a time.
class Hasher {
 public:
  // kUnsupported if OpenSSL does not offer the hash.
  static Result<Hasher> create(DigestKind kind);

  Result<Fingerprint> hash(std::span<const std::byte> chunk);

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  explicit Hasher(EVP_MD_CTX* context) : context_(context) {}

  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

FastHash fast_hash(std::span<const std::byte> chunk);

// A fingerprint of kind kKeyed: of `hash` 12 bytes count; `checksum` is the low half of the chunk's
// fast_hash().
Fingerprint keyed_name(std::span<const std::uint8_t, 16> hash, std::uint64_t checksum);

// The fingerprint of a chunk that was found to have no twin: what `content`, one of kind kKeyed,
// says of it, and a number, of which the lower 48 bits count. Equal numbers with equal content are
// the same chunk; another number is another name for what may be equal.
Fingerprint name_of_single(const Fingerprint& content, std::uint64_t number);
// What a name says of the chunk's content: of kKeyedSingle that of kind kKeyed, which is equal for
// equal content; any other is all that it says.
Fingerprint content_of(const Fingerprint& name);

// Numbers for name_of_single(): 48 bits, the first random, each of the others one more than the one
// before it, which readers make use of (store/chunk_reader.h).
class SingleNumbers {
 public:
  SingleNumbers();
  std::uint64_t next();
  // The next one does not go on from the last.
  void skip() { ++next_; }

 private:
  std::uint64_t next_;
};

// Of what is kept of a stripe beside its chunks, in parts, each with a number
// (plan/stripe_content.h): says nothing of the content. And the number that such a name has.
Fingerprint name_of_stripe_part(const Id128& stripe, std::uint8_t part);
std::uint8_t number_of_stripe_part(const Fingerprint& name);

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
  kKeyed,        // a keyed hash and a checksum
  kKeyedSingle,  // name_of_single()
  kSingle,       // the same of old: 128 bits of XXH3, and a number of 64
  kNumber,       // of mode `none`: says nothing of the chunk's content
  kStripePart,   // name_of_stripe_part()
};
NameKind kind_of(const Fingerprint& fingerprint);
// Whether the name is that of a chunk without a twin, old or new, which is its checksum too.
bool is_single(const Fingerprint& fingerprint);
// Of such a name: its number, and whether a chunk has the checksum that it says.
std::uint64_t number_of_single(const Fingerprint& single);
bool fits_single(const Fingerprint& single, std::span<const std::byte> chunk);

// Whether chunks have the content that their fingerprints stand for. One thread at a time.
class FingerprintCheck {
 public:
  // True for every chunk whose name says nothing of its content; of a keyed one its checksum is
  // compared, which shows damage and takes no key. kUnsupported as Hasher::create.
  Result<bool> holds(const Fingerprint& fingerprint, std::span<const std::byte> chunk);

 private:
  std::optional<Hasher> sha256_;
  std::optional<Hasher> sha1_;
};

}  // namespace dedup
