#include "base/codec.h"

#include <gtest/gtest.h>

#include "test/unit/store_helpers.h"

namespace dedup {
namespace {

TEST(Codec, GivesBackWhatWasPut) {
  test::Random random(1);
  const Id128 id = test::random_id(random);
  const Fingerprint fingerprint = test::random_fingerprint(random);
  const Bytes bytes = test::random_bytes(random, 300);
  const NodeSet nodes{0, 5, 0xfffe};
  Encoder out;
  out.put(std::uint8_t{0xfe});
  out.put(std::uint16_t{0xfedc});
  out.put(std::uint32_t{0xfedcba98});
  out.put(std::uint64_t{0xfedcba9876543210});
  out.put(id);
  out.put(fingerprint);
  out.put(std::string_view("a\0b", 3));
  out.put_bytes(bytes);
  out.put(nodes);
  Decoder in(out.bytes());
  EXPECT_EQ(in.get<std::uint8_t>(), 0xfeu);
  EXPECT_EQ(in.get<std::uint16_t>(), 0xfedcu);
  EXPECT_EQ(in.get<std::uint32_t>(), 0xfedcba98u);
  EXPECT_EQ(in.get<std::uint64_t>(), 0xfedcba9876543210u);
  EXPECT_EQ(in.get_id(), id);
  EXPECT_EQ(in.get_fingerprint(), fingerprint);
  EXPECT_EQ(in.get_string(), std::string("a\0b", 3));
  const auto view = in.get_bytes();
  EXPECT_EQ(Bytes(view.begin(), view.end()), bytes);
  EXPECT_EQ(in.get_nodes(), nodes);
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.at_end());
}

TEST(Codec, IsLittleEndian) {
  Encoder out;
  out.put(std::uint32_t{0x01020304});
  EXPECT_EQ(out.bytes(), (Bytes{std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}}));
}

TEST(Codec, FailsForGoodWhenTheInputIsShort) {
  Encoder out;
  out.put(std::uint32_t{7});
  out.put(std::uint16_t{9});
  Decoder in(out.bytes());
  EXPECT_EQ(in.get<std::uint64_t>(), 0u);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.get<std::uint8_t>(), 0u);
  EXPECT_EQ(in.get_id(), Id128{});
  EXPECT_TRUE(in.get_nodes().empty());
  EXPECT_FALSE(in.ok());
  EXPECT_FALSE(in.at_end());
}

TEST(Codec, ChecksLengthsBeforeItUsesThem) {
  Encoder out;
  out.put(std::uint32_t{0xffffffff});
  for (int i = 0; i < 10; ++i) out.put(std::uint8_t{1});
  EXPECT_TRUE(Decoder(out.bytes()).get_bytes().empty());
  EXPECT_EQ(Decoder(out.bytes()).get_string(), "");
  Decoder counted(out.bytes());
  EXPECT_EQ(counted.get_count(8), 0u);
  EXPECT_FALSE(counted.ok());
  Decoder nodes(out.bytes());
  EXPECT_TRUE(nodes.get_nodes().empty());
  EXPECT_FALSE(nodes.ok());
}

TEST(Codec, ReadsNothingBeyondAnyTruncation) {
  Encoder out;
  out.put(std::string_view("some text"));
  out.put(NodeSet{1, 2, 3});
  out.put(std::uint64_t{1});
  for (std::size_t size = 0; size < out.size(); ++size) {
    const Bytes cut(out.bytes().begin(), out.bytes().begin() + static_cast<std::ptrdiff_t>(size));
    Decoder in(cut);
    in.get_string();
    in.get_nodes();
    in.get<std::uint64_t>();
    EXPECT_FALSE(in.ok()) << size;
  }
}

}  // namespace
}  // namespace dedup
