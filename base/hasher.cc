#include "base/hasher.h"

#include <openssl/core_names.h>
#include <openssl/params.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/openssl.h"
#include "base/xxh3.h"

namespace dedup {
namespace {

// The last eight bytes of an old single's name, as a number.
constexpr std::size_t kTail = 24;
constexpr std::uint64_t kSingleMark = 1;

// A keyed name: the hash, the checksum, the number of a single (else zeros), and a mark, which ends
// in five zeros.
constexpr std::size_t kChecksumAt = 12;
constexpr std::size_t kNumberAt = kChecksumAt + 8;
constexpr std::size_t kNumberSize = 6;
constexpr std::size_t kMarkAt = kNumberAt + kNumberSize;
constexpr std::uint8_t kKeyedSingleMark = 2;
constexpr std::uint8_t kKeyedMark = 3;
// What a stripe has beside its chunks: the stripe's id, the part's number, zeros, and a mark as
// above.
constexpr std::size_t kPartAt = 16;
constexpr std::uint8_t kStripePartMark = 4;
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << (8 * kNumberSize)) - 1;

std::uint64_t number_at(const Fingerprint& fingerprint, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  std::memcpy(&number, fingerprint.bytes.data() + at, size);
  return number;
}

bool has_checksum(const Fingerprint& keyed, std::span<const std::byte> chunk) {
  return number_at(keyed, kChecksumAt, 8) == fast_hash(chunk).low;
}

}  // namespace

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256 out;
  const EVP_MD* digest = openssl().sha256;
  if (digest == nullptr ||
      EVP_Digest(bytes.data(), bytes.size(), out.data(), nullptr, digest, nullptr) != 1) {
    std::abort();
  }
  return out;
}

bool hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message, Sha256& out) {
  struct Free {
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
  };
  const auto* of_key = reinterpret_cast<const unsigned char*>(key.data());
  const auto* of_message = reinterpret_cast<const unsigned char*>(message.data());
  char digest[] = "SHA256";  // OpenSSL does not change it
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_end()};
  EVP_MAC* hmac = openssl().hmac;
  const std::unique_ptr<EVP_MAC_CTX, Free> context(hmac == nullptr ? nullptr
                                                                   : EVP_MAC_CTX_new(hmac));
  std::size_t size = 0;
  return context && EVP_MAC_init(context.get(), of_key, key.size(), parameters) == 1 &&
         EVP_MAC_update(context.get(), of_message, message.size()) == 1 &&
         EVP_MAC_final(context.get(), out.data(), &size, out.size()) == 1 && size == out.size();
}

Result<Hasher> Hasher::create(DigestKind kind) {
  const bool is_sha1 = kind == DigestKind::kSha1;
  const EVP_MD* digest = is_sha1 ? openssl().sha1 : openssl().sha256;
  const std::string name = is_sha1 ? "SHA1" : "SHA256";
  if (digest == nullptr) {
    return Status(Code::kUnsupported, "OpenSSL does not offer the hash " + name);
  }
  Hasher hasher(EVP_MD_CTX_new());
  if (!hasher.context_ || EVP_DigestInit_ex2(hasher.context_.get(), digest, nullptr) != 1) {
    return Status(Code::kUnsupported, "OpenSSL does not start the hash " + name);
  }
  return hasher;
}

namespace {

// While the upper halves of the vector registers are in use, as MPI's copying leaves them, the
// processor's instructions for SHA-256 take a third longer on some.
#ifdef __x86_64__
[[gnu::target("avx")]] void zero_upper_halves() {
  __builtin_ia32_vzeroupper();
}
void clean_vector_registers() {
  static const bool has_them = __builtin_cpu_supports("avx") != 0;
  if (has_them) zero_upper_halves();
}
#else
void clean_vector_registers() {}
#endif

}  // namespace

Result<Fingerprint> Hasher::hash(std::span<const std::byte> chunk) {
  clean_vector_registers();
  Fingerprint fingerprint;
  // Without a digest the context's own is used again.
  if (EVP_DigestInit_ex2(context_.get(), nullptr, nullptr) != 1 ||
      EVP_DigestUpdate(context_.get(), chunk.data(), chunk.size()) != 1 ||
      EVP_DigestFinal_ex(context_.get(), fingerprint.bytes.data(), nullptr) != 1) {
    return Status(Code::kInternal, "OpenSSL failed to hash a chunk");
  }
  return fingerprint;
}

FastHash fast_hash(std::span<const std::byte> chunk) {
  const XXH128_hash_t hash = XXH3_128bits(chunk.data(), chunk.size());
  return {hash.low64, hash.high64};
}

Fingerprint keyed_name(std::span<const std::uint8_t, 16> hash, std::uint64_t checksum) {
  Fingerprint fingerprint;
  std::copy_n(hash.begin(), kChecksumAt, fingerprint.bytes.begin());
  std::memcpy(fingerprint.bytes.data() + kChecksumAt, &checksum, sizeof checksum);
  fingerprint.bytes[kMarkAt] = kKeyedMark;
  return fingerprint;
}

Fingerprint name_of_single(const Fingerprint& content, std::uint64_t number) {
  Fingerprint fingerprint = content;
  std::memcpy(fingerprint.bytes.data() + kNumberAt, &number, kNumberSize);
  fingerprint.bytes[kMarkAt] = kKeyedSingleMark;
  return fingerprint;
}

Fingerprint content_of(const Fingerprint& name) {
  if (kind_of(name) != NameKind::kKeyedSingle) return name;
  Fingerprint fingerprint = name;
  std::fill_n(fingerprint.bytes.begin() + kNumberAt, kNumberSize, std::uint8_t{0});
  fingerprint.bytes[kMarkAt] = kKeyedMark;
  return fingerprint;
}

SingleNumbers::SingleNumbers() {
  const Id128 random = Id128::random();
  std::memcpy(&next_, random.bytes.data(), sizeof next_);
}

std::uint64_t SingleNumbers::next() {
  return next_++ & kNumberMask;
}

Fingerprint name_of_stripe_part(const Id128& stripe, std::uint8_t part) {
  Fingerprint name;
  std::copy(stripe.bytes.begin(), stripe.bytes.end(), name.bytes.begin());
  name.bytes[kPartAt] = part;
  name.bytes[kMarkAt] = kStripePartMark;
  return name;
}

std::uint8_t number_of_stripe_part(const Fingerprint& name) {
  return name.bytes[kPartAt];
}

UniqueNumbers::UniqueNumbers() {
  // Never taken for a SHA-1, whatever the random number is.
  prefix_.bytes.back() |= 1;
}

Fingerprint UniqueNumbers::next() {
  Fingerprint fingerprint;
  const std::uint64_t number = count_++;
  // The count comes first, so that Fingerprint::prefix() differs.
  for (std::size_t i = 0; i < sizeof number; ++i) {
    fingerprint.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  }
  std::copy(prefix_.bytes.begin(), prefix_.bytes.end(), fingerprint.bytes.begin() + 8);
  return fingerprint;
}

// It is asked of every chunk several times.
NameKind kind_of(const Fingerprint& fingerprint) {
  const std::uint64_t tail = number_at(fingerprint, kTail, 8);
  switch (tail >> (8 * (kMarkAt - kTail))) {
    case kKeyedMark:
      return NameKind::kKeyed;
    case kKeyedSingleMark:
      return NameKind::kKeyedSingle;
    case kStripePartMark:
      return NameKind::kStripePart;
    case 0:
      break;
    default:
      return NameKind::kSha256;
  }
  if (tail == kSingleMark) return NameKind::kSingle;
  if (tail != 0) return NameKind::kSha256;
  return number_at(fingerprint, 20, 4) == 0 ? NameKind::kSha1 : NameKind::kNumber;
}

bool is_single(const Fingerprint& fingerprint) {
  const NameKind kind = kind_of(fingerprint);
  return kind == NameKind::kKeyedSingle || kind == NameKind::kSingle;
}

std::uint64_t number_of_single(const Fingerprint& single) {
  return kind_of(single) == NameKind::kSingle ? number_at(single, 16, 8)
                                              : number_at(single, kNumberAt, kNumberSize);
}

bool fits_single(const Fingerprint& single, std::span<const std::byte> chunk) {
  if (kind_of(single) == NameKind::kKeyedSingle) return has_checksum(single, chunk);
  return fast_hash(chunk) == FastHash{number_at(single, 0, 8), number_at(single, 8, 8)};
}

Result<bool> FingerprintCheck::holds(const Fingerprint& fingerprint,
                                     std::span<const std::byte> chunk) {
  const NameKind kind = kind_of(fingerprint);
  if (kind == NameKind::kNumber || kind == NameKind::kStripePart) return true;
  if (kind == NameKind::kKeyed) return has_checksum(fingerprint, chunk);
  if (is_single(fingerprint)) return fits_single(fingerprint, chunk);
  const bool is_sha1 = kind == NameKind::kSha1;
  std::optional<Hasher>& hasher = is_sha1 ? sha1_ : sha256_;
  if (!hasher) {
    DEDUP_ASSIGN(hasher, Hasher::create(is_sha1 ? DigestKind::kSha1 : DigestKind::kSha256));
  }
  DEDUP_ASSIGN(const Fingerprint found, hasher->hash(chunk));
  return found == fingerprint;
}

}  // namespace dedup
