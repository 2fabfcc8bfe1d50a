#include "base/types.h"

#include <gtest/gtest.h>

namespace dedup {
namespace {

TEST(Id128, RoundTripsThroughHex) {
  for (int i = 0; i < 100; ++i) {
    const Id128 id = Id128::random();
    EXPECT_FALSE(id.is_zero());
    EXPECT_EQ(id.hex().size(), 32u);
    Id128 back;
    ASSERT_TRUE(Id128::parse(id.hex(), back));
    EXPECT_EQ(back, id);
  }
  EXPECT_NE(Id128::random(), Id128::random());
  EXPECT_TRUE(Id128{}.is_zero());
}

TEST(Id128, ParsesNothingElse) {
  const std::string good = "00112233445566778899aabbccddeeff";
  Id128 id;
  ASSERT_TRUE(Id128::parse(good, id));
  EXPECT_EQ(id.bytes[1], 0x11);
  EXPECT_EQ(id.bytes[15], 0xff);
  const Id128 before = id;
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", std::string("../") + good.substr(3),
        std::string("00112233445566778899AABBCCDDEEFF"), std::string(32, 'g')}) {
    EXPECT_FALSE(Id128::parse(bad, id)) << bad;
  }
  EXPECT_EQ(id, before);
}

TEST(Fingerprint, OrdersByBytes) {
  Fingerprint a, b;
  a.bytes[0] = 1;
  b.bytes[31] = 0xff;
  EXPECT_LT(b, a);
  EXPECT_EQ(a.hex(), "01" + std::string(62, '0'));
  // Whichever byte is the first that differs.
  for (std::size_t i = 0; i < a.bytes.size(); ++i) {
    Fingerprint low, high;
    low.bytes.fill(0x80);
    high.bytes.fill(0x80);
    low.bytes[i] = 0x7f;
    for (std::size_t k = i + 1; k < a.bytes.size(); ++k) low.bytes[k] = 0xff;
    EXPECT_LT(low, high) << i;
    EXPECT_GT(high, low) << i;
    EXPECT_NE(high, low) << i;
  }
}

TEST(HexString, IsLowerCase) {
  const unsigned char bytes[] = {0x00, 0xab, 0xff};
  EXPECT_EQ(hex_string(bytes, sizeof bytes), "00abff");
  EXPECT_EQ(hex_string(bytes, 0), "");
}

}  // namespace
}  // namespace dedup
