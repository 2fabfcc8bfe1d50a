#include "store/written.h"

#include <gtest/gtest.h>

#include "test/unit/store_helpers.h"

namespace dedup::store {
namespace {

WrittenPart some_part() {
  WrittenPart part;
  part.writer = 7;
  part.copy = Id128::random();
  part.ranges = {{0, 100}, {4096, std::uint64_t{1} << 40}};
  part.trouble = "no space";
  return part;
}

TEST(WrittenPart, IsReadAsItWasWritten) {
  const Id128 attempt = Id128::random();
  const WrittenPart part = some_part();
  const auto read = WrittenPart::decode(part.encode(attempt), attempt, "f");
  ASSERT_TRUE(read.is_ok());
  EXPECT_EQ(*read, part);
  EXPECT_EQ(WrittenPart::decode(part.encode(attempt), Id128::random(), "f").status().code(),
            Code::kCorrupt);
}

TEST(WrittenPart, IsNotReadOnceItIsDamaged) {
  const Id128 attempt = Id128::random();
  const Bytes good = some_part().encode(attempt);
  for (std::size_t at = 0; at < good.size(); ++at) {
    Bytes bad = good;
    bad[at] ^= std::byte{4};
    EXPECT_FALSE(WrittenPart::decode(bad, attempt, "f").is_ok()) << at;
    bad = good;
    bad.resize(at);
    EXPECT_FALSE(WrittenPart::decode(bad, attempt, "f").is_ok()) << at;
  }
}

TEST(WrittenPart, OfSeveralStoresMakesOneCopy) {
  const Id128 a = Id128::random();
  const Id128 b = Id128::random();
  const std::vector<WrittenPart> parts{
      {0, a, {{0, 10}}, {}}, {1, b, {{0, 40}}, "late"}, {1, a, {{5, 10}, {90, 10}}, {}}};
  const auto copies = by_copy(parts);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].copy, b);
  EXPECT_EQ(copies[0].bytes, 40u);
  EXPECT_EQ(copies[0].trouble, "late");
  EXPECT_EQ(copies[1].ranges, (std::vector<ByteRange>{{0, 15}, {90, 10}}));
  EXPECT_EQ(copies[1].bytes, 25u);
}

}  // namespace
}  // namespace dedup::store
