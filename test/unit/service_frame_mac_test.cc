#include "service/frame_mac.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <utility>

namespace dedup::service {
namespace {

constexpr Secret kSecret{1, 2, 3};
constexpr Nonce kServer{4, 5};
constexpr Nonce kClient{6, 7};

std::optional<FrameMac> client_mac() {
  return FrameMac::create(kSecret, Role::kClient, kServer, kClient, "node");
}

Bytes patterned_bytes(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// As an earlier version made them, by OpenSSL alone.
TEST(FrameMac, IsWhatItWas) {
  const std::pair<std::size_t, const char*> headers[] = {
      {0, "0000000005000000800f9cacd8fd1d1d3143383b5f192dcca04bc0e43660160d"},
      {1, "01000000050000006b543220bfbbe7e9b93453c04bb8d314d9510bde169493c3"},
      {8, "08000000050000002026421f6bb079c4c33eff618b2fbe4c0571e2dec98f3683"},
      {24, "1800000005000000d620a7c5caca9351bfcabe37d71fa433cea85c044665a89b"},
      {4096, "00100000050000005bb237ae3538b86ecb22d11af0f925e803845fee757f7491"},
      {70000, "701101000500000054afa662e99b5d575f41e9cb9732d848734d5b08b91a9e10"},
  };
  auto mac = client_mac();
  ASSERT_TRUE(mac.has_value());
  for (const auto& [size, expected] : headers) {
    const auto header = mac->seal(5, patterned_bytes(size));
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(hex_string(header->data(), header->size()), expected) << size;
  }
}

TEST(FrameMac, HoldsForTheNextFrameAlone) {
  auto sender = client_mac();
  auto receiver = client_mac();
  ASSERT_TRUE(sender && receiver);
  const Bytes body = patterned_bytes(100);
  for (int i = 0; i < 3; ++i) {
    const auto header = decode_header(*sender->seal(1, body));
    ASSERT_TRUE(header.has_value());
    EXPECT_TRUE(receiver->holds(*header, body));
    EXPECT_FALSE(receiver->holds(*header, body));
    ASSERT_TRUE(sender->seal(1, body));  // the receiver has counted one more
  }
}

}  // namespace
}  // namespace dedup::service
