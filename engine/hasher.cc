#include "engine/hasher.h"

#include <algorithm>
#include <string>

namespace dedup::engine {

Result<Hasher> Hasher::create(hints::FingerprintKind kind) {
  const char* name = kind == hints::FingerprintKind::kSha1 ? "SHA1" : "SHA256";
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

}  // namespace dedup::engine
