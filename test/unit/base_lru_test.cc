#include "base/lru.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace dedup {
namespace {

using Cache = Lru<int, std::string>;

TEST(Lru, DropsWhatWasNotAskedForTheLongest) {
  Cache cache(3);
  for (const int key : {1, 2, 3}) cache.insert(key, std::to_string(key));
  EXPECT_EQ(*cache.find(1), "1");
  cache.insert(4, "4");
  EXPECT_EQ(cache.find(2), nullptr);
  EXPECT_NE(cache.find(1), nullptr);
  EXPECT_NE(cache.find(3), nullptr);
  EXPECT_NE(cache.find(4), nullptr);
  EXPECT_EQ(cache.size(), 3u);
  cache.insert(5, "5");  // 1 is the oldest now
  EXPECT_EQ(cache.find(1), nullptr);
}

TEST(Lru, CountsWeights) {
  Cache cache(10);
  cache.insert(1, "a", 4);
  cache.insert(2, "b", 4);
  EXPECT_EQ(cache.weight(), 8u);
  cache.insert(3, "c", 7);
  EXPECT_EQ(cache.weight(), 7u);
  EXPECT_EQ(cache.size(), 1u);
  cache.insert(4, "d", 3);
  EXPECT_EQ(cache.weight(), 10u);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(Lru, KeepsTheLastOneHoweverHeavy) {
  Cache cache(10);
  cache.insert(1, "a", 5);
  EXPECT_EQ(cache.insert(2, "b", 100), "b");
  EXPECT_EQ(cache.find(1), nullptr);
  EXPECT_EQ(*cache.find(2), "b");
  cache.insert(3, "c", 1);
  EXPECT_EQ(cache.find(2), nullptr);
  EXPECT_EQ(cache.weight(), 1u);
}

TEST(Lru, ReplacesWhatIsThere) {
  Cache cache(10);
  cache.insert(1, "a", 6);
  cache.insert(2, "b", 4);
  cache.insert(1, "c", 5);
  EXPECT_EQ(*cache.find(1), "c");
  EXPECT_NE(cache.find(2), nullptr);
  EXPECT_EQ(cache.weight(), 9u);
}

TEST(Lru, ErasesOneOrSome) {
  Cache cache(100);
  for (int key = 0; key < 10; ++key) cache.insert(key, "x", 2);
  cache.erase(9);
  cache.erase(77);
  cache.erase_from(3, [](int key) { return key < 6; });
  EXPECT_EQ(cache.size(), 6u);
  EXPECT_EQ(cache.weight(), 12u);
  for (const int key : {3, 4, 5, 9}) EXPECT_EQ(cache.find(key), nullptr);
  for (const int key : {0, 1, 2, 6, 7, 8}) EXPECT_NE(cache.find(key), nullptr);
}

TEST(Lru, FreesWhatItDrops) {
  Lru<int, std::shared_ptr<int>> cache(1);
  const auto value = std::make_shared<int>(1);
  cache.insert(1, value);
  cache.insert(2, value);
  EXPECT_EQ(value.use_count(), 2);
  cache.erase(2);
  EXPECT_EQ(value.use_count(), 1);
}

}  // namespace
}  // namespace dedup
