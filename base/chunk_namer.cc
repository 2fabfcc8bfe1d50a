#include "base/chunk_namer.h"

#include <openssl/crypto.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/codec.h"
#include "base/openssl.h"

namespace dedup {
namespace {

// AES-128's, and of the two keys that are made of a file's one.
constexpr std::size_t kKeySize = 16;
constexpr std::string_view kPurpose = "names of chunks";
constexpr std::string_view kInstead =
    ", which chunks are named by; dedup_fingerprint=sha256 takes SHA-256";

}  // namespace

Result<ChunkNamer> ChunkNamer::create(FingerprintKind kind, const Id128& key) {
  ChunkNamer namer;
  if (kind == FingerprintKind::kSha256) {
    DEDUP_ASSIGN(namer.sha256_, Hasher::create(DigestKind::kSha256));
    return namer;
  }
  const EVP_CIPHER* const aes = openssl().aes_128_ecb;
  if (aes == nullptr) {
    return Status(Code::kUnsupported, "OpenSSL does not offer AES-128-ECB" + std::string(kInstead));
  }
  Encoder purpose;
  purpose.put(key);
  purpose.put(kPurpose);
  Sha256 keys = sha256(purpose.bytes());
  const std::span<const std::uint8_t, 2 * kKeySize> both(keys);
  auto gmac = Gmac::create(both.first<kKeySize>());
  namer.aes_.reset(EVP_CIPHER_CTX_new());
  const bool made = namer.aes_ &&
                    EVP_EncryptInit_ex2(namer.aes_.get(), aes, both.last<kKeySize>().data(),
                                        nullptr, nullptr) == 1 &&
                    EVP_CIPHER_CTX_set_padding(namer.aes_.get(), 0) == 1;
  OPENSSL_cleanse(keys.data(), keys.size());
  if (!gmac.is_ok()) {
    return Status(gmac.status().code(), gmac.status().message() + std::string(kInstead));
  }
  if (!made) return Status(Code::kUnsupported, "OpenSSL does not start AES-128");
  namer.gmac_ = std::move(*gmac);
  return namer;
}

Result<Fingerprint> ChunkNamer::name(std::span<const std::byte> chunk, std::uint64_t checksum) {
  if (sha256_) {
    DEDUP_ASSIGN(const Fingerprint name, sha256_->hash(chunk));
    if (kind_of(name) == NameKind::kSha256) return name;
    return Status(Code::kInternal, "a chunk's SHA-256 looks like a name of another kind");
  }
  // All chunks have the same nonce: the value that it adds to each is encrypted with it.
  static constexpr GmacNonce kNonce{};
  GmacTag tag;
  std::array<std::uint8_t, sizeof tag> hash;
  int size = 0;
  const bool done = gmac_->tag(kNonce, {chunk}, tag) &&
                    EVP_EncryptUpdate(aes_.get(), hash.data(), &size,
                                      reinterpret_cast<const unsigned char*>(tag.data()),
                                      static_cast<int>(tag.size())) == 1;
  if (!done) return Status(Code::kInternal, "OpenSSL failed to hash a chunk");
  return keyed_name(hash, checksum);
}

}  // namespace dedup
