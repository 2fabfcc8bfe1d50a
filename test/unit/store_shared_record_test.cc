#include "store/shared_record.h"

#include <gtest/gtest.h>

#include "base/fields.h"

namespace dedup::store {
namespace {

CommitRecord record_of(std::uint8_t attempt, std::size_t stores = 100) {
  CommitRecord record;
  record.identity.bytes[0] = 1;
  record.attempt.bytes[0] = attempt;
  record.number = attempt;
  record.stores.resize(stores);
  return record;
}

TEST(SharedRecord, GoesAsItsDigest) {
  const SharedRecord record = record_of(2);
  const Bytes bytes = encoded(record);
  EXPECT_EQ(bytes.size(), 40U);
  auto told = decoded<SharedRecord>(bytes);
  ASSERT_TRUE(told.has_value());
  EXPECT_FALSE(told->is_complete());
  EXPECT_EQ(*told, record);
  KnownRecords known;
  EXPECT_FALSE(known.complete(*told));
  EXPECT_EQ(known.find(record.digest()), nullptr);
  known.add(record);
  ASSERT_TRUE(known.complete(*told));
  EXPECT_EQ(&**told, &*record);
}

TEST(SharedRecord, IsAnotherOneWhereAnythingDiffers) {
  const SharedRecord record = record_of(2);
  EXPECT_EQ(record, SharedRecord(record_of(2)));
  EXPECT_NE(record, SharedRecord(record_of(3)));
  EXPECT_NE(record, SharedRecord(record_of(2, 101)));
  KnownRecords known;
  known.add(record);
  auto other = decoded<SharedRecord>(encoded(SharedRecord(record_of(2, 101))));
  EXPECT_FALSE(known.complete(*other));
}

}  // namespace
}  // namespace dedup::store
