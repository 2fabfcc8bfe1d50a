#include "base/spare_bytes.h"

#include <gtest/gtest.h>

#include <utility>

namespace dedup {
namespace {

Bytes with_room(std::size_t size) {
  Bytes bytes;
  bytes.reserve(size);
  return bytes;
}

TEST(SpareBytes, AreAsManyAsAreAskedFor) {
  SpareBytes spare;
  EXPECT_EQ(spare.take(7).size(), 7u);
  spare.give(Bytes(100));
  EXPECT_EQ(spare.take(30).size(), 30u);
  EXPECT_EQ(spare.take(0).size(), 0u);
}

TEST(SpareBytes, AreInTheSmallestMemoryThatHasRoom) {
  SpareBytes spare;
  for (const std::size_t room : {400, 100, 200, 300}) spare.give(with_room(room));
  EXPECT_EQ(spare.take(150).capacity(), 200u);
  EXPECT_EQ(spare.take(150).capacity(), 300u);
  EXPECT_EQ(spare.take(0).capacity(), 100u);
  EXPECT_EQ(spare.take(400).capacity(), 400u);
}

TEST(SpareBytes, TakeThePlaceOfTheLargestWhereNoneHasRoom) {
  SpareBytes spare;
  for (const std::size_t room : {10, 30, 20}) spare.give(with_room(room));
  EXPECT_EQ(spare.take(1000).size(), 1000u);
  EXPECT_EQ(spare.take(15).capacity(), 20u);
  EXPECT_EQ(spare.take(5).capacity(), 10u);
  // Nothing is left.
  EXPECT_EQ(spare.take(5).capacity(), 5u);
}

TEST(SpareBytes, StayInTheirPlaces) {
  SpareBytes spare;
  Bytes bytes(50);
  const std::byte* const at = bytes.data();
  spare.give(std::move(bytes));
  EXPECT_EQ(spare.take(40).data(), at);
}

}  // namespace
}  // namespace dedup
