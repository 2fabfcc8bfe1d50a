// What is used of OpenSSL.
#pragma once

#include <openssl/evp.h>

namespace dedup {

// Each is nullptr if OpenSSL does not offer it. In a library context of its own, and never freed:
// OpenSSL's handler for exit(), whoever had it registered, takes the default context with it. But
// programs close files in handlers that run later, and services answer as long as the process
// lives. So nothing else may be fetched, least of all from the default context.
struct Openssl {
  const EVP_MD* sha256;
  const EVP_MD* sha1;
  EVP_MAC* hmac;
  const EVP_CIPHER* aes_128_gcm;
  const EVP_CIPHER* aes_128_ecb;
};

const Openssl& openssl();

}  // namespace dedup
