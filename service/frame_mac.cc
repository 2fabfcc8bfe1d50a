#include "service/frame_mac.h"

#include <openssl/crypto.h>

#include <utility>

namespace dedup::service {

std::optional<FrameMac> FrameMac::create(const Secret& secret, Role sender, const Nonce& server,
                                         const Nonce& client, const std::string& server_name) {
  Proof key;  // of which AES-128 takes half
  if (!make_frame_key(secret, sender, server, client, server_name, key)) return std::nullopt;
  auto gmac = Gmac::create(std::span<const std::uint8_t, sizeof key>(key).first<16>());
  OPENSSL_cleanse(key.data(), key.size());
  if (!gmac.is_ok()) return std::nullopt;
  return FrameMac(std::move(*gmac));
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
  GmacNonce nonce{};
  for (std::size_t i = 0; i < sizeof frames_; ++i) {
    nonce[i] = static_cast<std::uint8_t>(frames_ >> (8 * i));
  }
  ++frames_;
  return gmac_.tag(nonce, {encode_start(header), body}, out);
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
