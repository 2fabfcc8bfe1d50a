// Placeholders: what they say, and that nothing else is taken for one.
#include "store/placeholder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "test/unit/store_helpers.h"

namespace dedup::store {
namespace {

Placeholder sample() {
  test::Random random(1);
  Placeholder p;
  p.first = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  p.identity = test::random_id(random);
  p.attempt = test::random_id(random);
  p.session = test::random_id(random);
  p.number = 7;
  p.size = 123456789;
  p.time = 1767225600;  // 2026-01-01
  p.inode = 42;
  p.path = "/scratch/ckpt.h5";
  p.store = "/local/%n";
  p.nodes = {"n0", "n1", "n17"};
  return p;
}

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Placeholder, SaysWhatItIsToPeopleAndToTheDriver) {
  const Bytes bytes = encode_placeholder(sample());
  ASSERT_EQ(bytes.size(), kPlaceholderSize);
  const std::string text = text_of(bytes);
  EXPECT_EQ(text.substr(0, 8), "\x89HDF\r\n\x1a\n");
  EXPECT_EQ(text.substr(8, 24), "\nThis is a placeholder. ");
  EXPECT_NE(text.find("123456789 bytes"), std::string::npos);
  EXPECT_NE(text.find("2026-01-01 00:00:00 UTC on nodes n0, n1, n17"), std::string::npos);
  EXPECT_TRUE(looks_like_placeholder(bytes));
  const auto decoded = decode_placeholder(bytes, "f");
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().message();
  EXPECT_EQ(*decoded, sample());
}

TEST(Placeholder, LeavesOutWhatDoesNotFit) {
  Placeholder p = sample();
  p.path = std::string(4000, 'p');
  p.nodes.clear();
  for (int i = 0; i < 5000; ++i) p.nodes.push_back("node-" + std::to_string(i));
  const Bytes bytes = encode_placeholder(p);
  ASSERT_EQ(bytes.size(), kPlaceholderSize);
  const auto decoded = decode_placeholder(bytes, "f");
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().message();
  EXPECT_EQ(decoded->path, "");
  ASSERT_GT(decoded->nodes.size(), 100u);
  EXPECT_EQ(decoded->nodes.back(), "node-" + std::to_string(decoded->nodes.size() - 1));
  EXPECT_EQ(decoded->identity, p.identity);
  EXPECT_NE(describe(p).find("node-15 and 4984 more"), std::string::npos);
}

TEST(Placeholder, DamagedIsNeverAnotherOne) {
  const Bytes whole = encode_placeholder(sample());
  std::size_t refused = 0;
  test::for_each_damage(whole, [&](const Bytes& damaged) {
    const auto decoded = decode_placeholder(damaged, "f");
    if (decoded.is_ok()) {
      // The text is for people only.
      EXPECT_EQ(*decoded, sample());
      EXPECT_EQ(std::memcmp(damaged.data(), whole.data(), 8), 0);
    } else {
      ++refused;
    }
    // What is left of a placeholder is not a plain file. (Less than its first words may be.)
    EXPECT_TRUE(damaged.size() < 32 || looks_like_placeholder(damaged));
  });
  EXPECT_GE(refused, kPlaceholderSize + 3 * (kPlaceholderSize - 1024));
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode_placeholder(longer, "f").status().code(), Code::kCorrupt);
}

TEST(Placeholder, OtherFilesAreNone) {
  test::Random random(2);
  for (const std::size_t size : {0, 1, 8, 31, 32, 4096, 5000}) {
    const Bytes bytes = test::random_bytes(random, size);
    EXPECT_FALSE(looks_like_placeholder(bytes)) << size;
    EXPECT_EQ(decode_placeholder(bytes, "f").status().code(), Code::kCorrupt) << size;
  }
}

}  // namespace
}  // namespace dedup::store
