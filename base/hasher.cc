#include "base/hasher.h"

#include <algorithm>
#include <string>

namespace dedup {

Result<Hasher> Hasher::create(FingerprintKind kind) {
  const char* name = kind == FingerprintKind::kSha1 ? "SHA1" : "SHA256";
  Hasher hasher(EVP_MD_fetch(nullptr, name, nullptr), EVP_MD_CTX_new());
  if (!hasher.digest_ || !hasher.context_) {
    return Status(Code::kUnsupported, std::string("OpenSSL does not offer the hash ") + name);
  }
  if (EVP_DigestInit_ex2(hasher.context_.get(), hasher.digest_.get(), nullptr) != 1) {
    return Status(Code::kUnsupported, std::string("OpenSSL does not start the hash ") + name);
  }
  return hasher;
}

Result<Fingerprint> Hasher::hash(std::span<const std::byte> chunk) {
  Fingerprint fingerprint;
  // Without a digest the context's own is used again.
  if (EVP_DigestInit_ex2(context_.get(), nullptr, nullptr) != 1 ||
      EVP_DigestUpdate(context_.get(), chunk.data(), chunk.size()) != 1 ||
      EVP_DigestFinal_ex(context_.get(), fingerprint.bytes.data(), nullptr) != 1) {
    return Status(Code::kInternal, "OpenSSL failed to hash a chunk");
  }
  return fingerprint;
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

std::optional<FingerprintKind> kind_of(const Fingerprint& fingerprint) {
  const auto zero_from = [&](std::size_t first) {
    return std::all_of(fingerprint.bytes.begin() + static_cast<std::ptrdiff_t>(first),
                       fingerprint.bytes.end(), [](std::uint8_t byte) { return byte == 0; });
  };
  if (zero_from(20)) return FingerprintKind::kSha1;
  if (zero_from(24)) return std::nullopt;
  return FingerprintKind::kSha256;
}

Result<bool> FingerprintCheck::holds(const Fingerprint& fingerprint,
                                     std::span<const std::byte> chunk) {
  const std::optional<FingerprintKind> kind = kind_of(fingerprint);
  if (!kind) return true;
  std::optional<Hasher>& hasher = *kind == FingerprintKind::kSha1 ? sha1_ : sha256_;
  if (!hasher) {
    DEDUP_ASSIGN(hasher, Hasher::create(*kind));
  }
  DEDUP_ASSIGN(const Fingerprint found, hasher->hash(chunk));
  return found == fingerprint;
}

}  // namespace dedup
