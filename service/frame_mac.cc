#include "service/frame_mac.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/openssl.h"

namespace dedup::service {
namespace {

constexpr int kNonceSize = 12;  // GCM's

}  // namespace

std::optional<FrameMac> FrameMac::create(const Secret& secret, Role sender, const Nonce& server,
                                         const Nonce& client, const std::string& server_name) {
  Proof key;  // of which AES-128 takes half
  if (!make_frame_key(secret, sender, server, client, server_name, key)) return std::nullopt;
  const EVP_CIPHER* const cipher = openssl().aes_128_gcm;
  Context context(EVP_CIPHER_CTX_new());
  const bool made = cipher != nullptr && context &&
                    EVP_EncryptInit_ex2(context.get(), cipher, key.data(), nullptr, nullptr) == 1;
  OPENSSL_cleanse(key.data(), key.size());
  if (!made) return std::nullopt;
  return FrameMac(std::move(context));
}

std::optional<HeaderBytes> FrameMac::seal(std::uint32_t kind, std::span<const std::byte> body) {
  FrameHeader header{static_cast<std::uint32_t>(body.size()), kind, {}};
  if (!next(header, body, header.mac)) return std::nullopt;
  return encode_header(header);
}

bool FrameMac::holds(const FrameHeader& header, std::span<const std::byte> body) {
  Mac expected;
  return next(header, body, expected) &&
         CRYPTO_memcmp(expected.data(), header.mac.data(), expected.size()) == 0;
}

bool FrameMac::next(const FrameHeader& header, std::span<const std::byte> body, Mac& out) {
  std::array<unsigned char, kNonceSize> nonce{};
  for (std::size_t i = 0; i < sizeof frames_; ++i) {
    nonce[i] = static_cast<unsigned char>(frames_ >> (8 * i));
  }
  ++frames_;
  EVP_CIPHER_CTX* const c = context_.get();
  int size = 0;
  // What is only authenticated: nothing is encrypted.
  const auto add = [&](std::span<const std::byte> bytes) {
    constexpr std::size_t kMost = std::numeric_limits<int>::max();
    return bytes.size() <= kMost &&
           EVP_EncryptUpdate(c, nullptr, &size,
                             reinterpret_cast<const unsigned char*>(bytes.data()),
                             static_cast<int>(bytes.size())) == 1;
  };
  unsigned char nothing[1];
  return EVP_EncryptInit_ex2(c, nullptr, nullptr, nonce.data(), nullptr) == 1 &&
         add(encode_start(header)) && (body.empty() || add(body)) &&
         EVP_EncryptFinal_ex(c, nothing, &size) == 1 &&
         EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(out.size()), out.data()) ==
             1;
}

std::optional<FrameMacs> FrameMacs::create(const Secret& secret, Role self, const Nonce& server,
                                           const Nonce& client, const std::string& server_name) {
  const Role other = self == Role::kClient ? Role::kServer : Role::kClient;
  auto sent = FrameMac::create(secret, self, server, client, server_name);
  auto received = FrameMac::create(secret, other, server, client, server_name);
  if (!sent || !received) return std::nullopt;
  return FrameMacs{std::move(*sent), std::move(*received)};
}

}  // namespace dedup::service
