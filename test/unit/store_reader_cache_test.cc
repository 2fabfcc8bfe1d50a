#include "store/files/reader_cache.h"

#include <gtest/gtest.h>

#include <memory>

#include "test/unit/store_helpers.h"

namespace dedup::store {
namespace {

struct CountedReader {
  explicit CountedReader(int& open_readers) : open(open_readers) { ++open; }
  ~CountedReader() { --open; }
  int& open;
};

TEST(StoreReaderCache, KeepsTheMostRecentlyUsed) {
  int open = 0, opened = 0;
  ReaderCache<CountedReader> cache(2);
  const auto get = [&](const ReaderKey& key) {
    const auto reader = cache.get(key, [&]() -> Result<std::unique_ptr<CountedReader>> {
      ++opened;
      return std::make_unique<CountedReader>(open);
    });
    EXPECT_TRUE(reader.is_ok());
  };
  test::Random random(1);
  const Id128 a = test::random_id(random), b = test::random_id(random);
  get({a, {}, 1});
  get({b, {}, 1});
  get({a, {}, 1});
  EXPECT_EQ(opened, 2);
  get({a, {}, 2});  // closes b's
  EXPECT_EQ(open, 2);
  get({a, {}, 1});
  EXPECT_EQ(opened, 3);
  get({b, {}, 1});
  EXPECT_EQ(opened, 4);
  cache.forget_all(a);
  EXPECT_EQ(open, 1);
  EXPECT_EQ(cache.size(), 1u);
  get({b, {}, 1});
  EXPECT_EQ(opened, 4);
  cache.forget({b, {}, 2});
  EXPECT_EQ(open, 1);
  cache.forget({b, {}, 1});
  EXPECT_EQ(open, 0);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(StoreReaderCache, SaysThatAFileIsNotThere) {
  ReaderCache<CountedReader> cache(2);
  const auto reader = cache.get({}, []() -> Result<std::unique_ptr<CountedReader>> {
    return Status(Code::kNoSuchFile, "gone");
  });
  EXPECT_EQ(reader.status().code(), Code::kNotFound);
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace dedup::store
