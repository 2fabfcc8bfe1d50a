#include "base/openssl.h"

#include <openssl/crypto.h>

namespace dedup {
namespace {

Openssl fetch() {
  OSSL_LIB_CTX* const context = OSSL_LIB_CTX_new();
  if (context == nullptr) return {};
  return {EVP_MD_fetch(context, "SHA256", nullptr), EVP_MD_fetch(context, "SHA1", nullptr),
          EVP_MAC_fetch(context, "HMAC", nullptr),
          EVP_CIPHER_fetch(context, "AES-128-GCM", nullptr),
          EVP_CIPHER_fetch(context, "AES-128-ECB", nullptr)};
}

}  // namespace

const Openssl& openssl() {
  static const Openssl& all = *new Openssl(fetch());
  return all;
}

}  // namespace dedup
