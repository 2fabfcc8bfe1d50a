#include "base/chunk_namer.h"

#include <openssl/crypto.h>

#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "base/codec.h"
#include "base/openssl.h"

namespace dedup {
namespace {

// AES-128's, and of the two keys that are made of a file's one.
constexpr std::size_t kKeySize = 16;
constexpr int kTagSize = 16;
constexpr std::string_view kPurpose = "names of chunks";

const unsigned char* bytes_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

Result<ChunkNamer> ChunkNamer::create(FingerprintKind kind, const Id128& key) {
  ChunkNamer namer;
  if (kind == FingerprintKind::kSha256) {
    DEDUP_ASSIGN(namer.sha256_, Hasher::create(DigestKind::kSha256));
    return namer;
  }
  const EVP_CIPHER* const gcm = openssl().aes_128_gcm;
  const EVP_CIPHER* const aes = openssl().aes_128_ecb;
  if (gcm == nullptr || aes == nullptr) {
    return Status(Code::kUnsupported,
                  "OpenSSL does not offer AES-128-GCM and AES-128-ECB, which chunks are named by; "
                  "dedup_fingerprint=sha256 takes SHA-256");
  }
  Encoder purpose;
  purpose.put(key);
  purpose.put(kPurpose);
  Sha256 keys = sha256(purpose.bytes());
  // All chunks have the same nonce: the value that it adds to each is encrypted with it.
  const std::array<unsigned char, 12> nonce{};
  namer.gcm_.reset(EVP_CIPHER_CTX_new());
  namer.aes_.reset(EVP_CIPHER_CTX_new());
  const bool made =
      namer.gcm_ && namer.aes_ &&
      EVP_EncryptInit_ex2(namer.gcm_.get(), gcm, keys.data(), nonce.data(), nullptr) == 1 &&
      EVP_EncryptInit_ex2(namer.aes_.get(), aes, keys.data() + kKeySize, nullptr, nullptr) == 1 &&
      EVP_CIPHER_CTX_set_padding(namer.aes_.get(), 0) == 1;
  OPENSSL_cleanse(keys.data(), keys.size());
  if (!made) return Status(Code::kUnsupported, "OpenSSL does not start AES-128");
  return namer;
}

Result<Fingerprint> ChunkNamer::name(std::span<const std::byte> chunk, std::uint64_t checksum) {
  if (sha256_) {
    DEDUP_ASSIGN(const Fingerprint name, sha256_->hash(chunk));
    if (kind_of(name) == NameKind::kSha256) return name;
    return Status(Code::kInternal, "a chunk's SHA-256 looks like a name of another kind");
  }
  static constexpr std::array<unsigned char, 12> kNonce{};
  std::array<std::uint8_t, kTagSize> hash;
  unsigned char nothing[1];
  int size = 0;
  EVP_CIPHER_CTX* const gcm = gcm_.get();
  // What is only authenticated: nothing is encrypted but the tag, by itself.
  const bool done = chunk.size() <= std::numeric_limits<int>::max() &&
                    EVP_EncryptInit_ex2(gcm, nullptr, nullptr, kNonce.data(), nullptr) == 1 &&
                    EVP_EncryptUpdate(gcm, nullptr, &size, bytes_of(chunk),
                                      static_cast<int>(chunk.size())) == 1 &&
                    EVP_EncryptFinal_ex(gcm, nothing, &size) == 1 &&
                    EVP_CIPHER_CTX_ctrl(gcm, EVP_CTRL_AEAD_GET_TAG, kTagSize, hash.data()) == 1 &&
                    EVP_EncryptUpdate(aes_.get(), hash.data(), &size, hash.data(), kTagSize) == 1;
  if (!done) return Status(Code::kInternal, "OpenSSL failed to hash a chunk");
  return keyed_name(hash, checksum);
}

}  // namespace dedup
