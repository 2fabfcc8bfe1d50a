#include "base/gmac.h"

#include <limits>
#include <utility>

#include "base/openssl.h"

namespace dedup {

std::optional<OpensslGmac> OpensslGmac::create(GmacKey key) {
  const EVP_CIPHER* const gcm = openssl().aes_128_gcm;
  Context context(EVP_CIPHER_CTX_new());
  if (gcm == nullptr || !context ||
      EVP_EncryptInit_ex2(context.get(), gcm, key.data(), nullptr, nullptr) != 1) {
    return std::nullopt;
  }
  return OpensslGmac(std::move(context));
}

bool OpensslGmac::tag(const GmacNonce& nonce, GmacMessage message, GmacTag& out) {
  EVP_CIPHER_CTX* const context = context_.get();
  int size = 0;
  if (EVP_EncryptInit_ex2(context, nullptr, nullptr, nonce.data(), nullptr) != 1) return false;
  // What is only authenticated: nothing is encrypted but the tag, by itself.
  for (const std::span<const std::byte> part : message) {
    if (part.empty()) continue;
    if (part.size() > std::numeric_limits<int>::max() ||
        EVP_EncryptUpdate(context, nullptr, &size,
                          reinterpret_cast<const unsigned char*>(part.data()),
                          static_cast<int>(part.size())) != 1) {
      return false;
    }
  }
  unsigned char nothing[1];
  return EVP_EncryptFinal_ex(context, nothing, &size) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(out.size()),
                             out.data()) == 1;
}

Result<Gmac> Gmac::create(GmacKey key) {
  Gmac gmac;
  gmac.ipsec_mb_ = IpsecMbGmac::create(key);
  if (!gmac.ipsec_mb_) gmac.openssl_ = OpensslGmac::create(key);
  if (gmac.ipsec_mb_ || gmac.openssl_) return gmac;
  return Status(Code::kUnsupported, "OpenSSL does not offer AES-128-GCM");
}

bool Gmac::tag(const GmacNonce& nonce, GmacMessage message, GmacTag& out) {
  if (!ipsec_mb_) return openssl_->tag(nonce, message, out);
  ipsec_mb_->tag(nonce, message, out);
  return true;
}

}  // namespace dedup
