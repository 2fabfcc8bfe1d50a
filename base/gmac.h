// GMAC (NIST SP 800-38D) by AES-128: a tag of 16 bytes that only who has the key can tell for a
// nonce and a message. Names of chunks and the codes of frames are made with it.
//
// Two libraries compute it, and both the same, bit for bit: tags are in users' stores, and
// processes with one library talk to those with the other. Intel's IPsec MB takes a third of
// OpenSSL's time for a chunk and a fifth of it for a small frame, but is for x86-64 alone.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"

namespace dedup {

using GmacKey = std::span<const std::uint8_t, 16>;
using GmacNonce = std::array<std::uint8_t, 12>;
// In parts, wherever each is in memory.
using GmacMessage = std::initializer_list<std::span<const std::byte>>;
using GmacTag = std::array<std::byte, 16>;

// By OpenSSL. One thread at a time.
class OpensslGmac {
 public:
  // Nothing if OpenSSL does not offer it.
  static std::optional<OpensslGmac> create(GmacKey key);

  // False if OpenSSL fails.
  bool tag(const GmacNonce& nonce, GmacMessage message, GmacTag& out);

 private:
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };
  using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;

  explicit OpensslGmac(Context context) : context_(std::move(context)) {}

  Context context_;
};

// By IPsec MB. It keeps nothing that exit() would take away.
class IpsecMbGmac {
 public:
  // The instructions that it may use; each takes in those before it.
  enum class Instructions { kSse, kAvx, kAvx2, kAvx512 };

  // Nothing where it was not built in, or if the processor has none of the instructions that it
  // takes, or not enough memory is left.
  static std::optional<IpsecMbGmac> create(GmacKey key, Instructions most = Instructions::kAvx512);

  void tag(const GmacNonce& nonce, GmacMessage message, GmacTag& out) const;

 private:
  struct State;
  struct Free {
    void operator()(State* state) const;
  };

  explicit IpsecMbGmac(State* state) : state_(state) {}

  std::unique_ptr<State, Free> state_;
};

// By the one that is faster, of those that there are. One thread at a time.
class Gmac {
 public:
  // kUnsupported if there is none.
  static Result<Gmac> create(GmacKey key);

  bool tag(const GmacNonce& nonce, GmacMessage message, GmacTag& out);

 private:
  Gmac() = default;

  std::optional<IpsecMbGmac> ipsec_mb_;
  std::optional<OpensslGmac> openssl_;  // in its place
};

}  // namespace dedup
