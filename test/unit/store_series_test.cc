#include "store/series.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using Names = std::vector<std::string>;

TEST(Series, HasNamesThatDifferInDigitsOnly) {
  const Names names{"ckpt_1.h5",   "ckpt_0002.h5", "ckpt_.h5",    "ckpt_3.h5.old", "xckpt_3.h5",
                    "ckpt_3.hdf5", "Ckpt_3.h5",    "ckpt_3_4.h5", "ckpt_10.h5",    "other"};
  EXPECT_EQ(nearest_in_series("ckpt_0003.h5", names, 8),
            (Names{"ckpt_0002.h5", "ckpt_1.h5", "ckpt_10.h5"}));
  EXPECT_EQ(nearest_in_series("other", {"other", "other1", "2other"}, 8), Names());
  EXPECT_EQ(nearest_in_series("5", {"4", "6", "5", "05", "a"}, 8), (Names{"4", "05", "6"}));
}

TEST(Series, GoesBackwardsFirst) {
  Names names;
  for (int i = 0; i < 30; ++i) names.push_back("run7-step" + std::to_string(i));
  names.push_back("run6-step12");
  names.push_back("run8-step12");
  EXPECT_EQ(nearest_in_series("run7-step12", names, 3),
            (Names{"run7-step11", "run7-step10", "run7-step9"}));
  EXPECT_EQ(nearest_in_series("run7-step1", names, 3),
            (Names{"run7-step0", "run6-step12", "run7-step2"}));
  // Longer than any number of the machine.
  const std::string zeros(40, '0');
  EXPECT_EQ(nearest_in_series("a1" + zeros, {"a9" + zeros, "a2", "a09"}, 8),
            (Names{"a09", "a2", "a9" + zeros}));
}

TEST(Series, TakesWhatWasCommittedLast) {
  const test::TempDir dir;
  const auto newest = [&](const std::string& name) {
    const auto found = newest_in_series(dir / name);
    return found.placeholder ? int{found.placeholder->identity.bytes[0]} : 0;
  };
  EXPECT_EQ(newest("ckpt_3"), 0);
  test::put_placeholder(dir / "ckpt_1", 1);
  EXPECT_EQ(newest("ckpt_3"), 1);
  test::put_placeholder(dir / "ckpt_2", 2);
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(dir / "ckpt_2", now + std::chrono::hours(1));
  EXPECT_EQ(newest("ckpt_3"), 2);
  std::filesystem::last_write_time(dir / "ckpt_1", now + std::chrono::hours(2));
  EXPECT_EQ(newest("ckpt_3"), 1);
  // Neither plain files, nor copies, nor itself.
  std::filesystem::copy_file(dir / "ckpt_2", dir / "ckpt_4");
  test::put_file(dir / "ckpt_5", Bytes(10));
  std::filesystem::remove(dir / "ckpt_1");
  EXPECT_EQ(newest("ckpt_5"), 2);
  EXPECT_EQ(newest("ckpt_2"), 0);
  EXPECT_EQ(newest("other"), 0);
  // A plain file may be cached, if it is the newest.
  EXPECT_FALSE(newest_in_series(dir / "ckpt_7").plain) << "the placeholder is";
  std::filesystem::last_write_time(dir / "ckpt_5", now + std::chrono::hours(3));
  test::put_file(dir / "ckpt_6", {});
  std::filesystem::last_write_time(dir / "ckpt_6", now + std::chrono::hours(4));
  ASSERT_TRUE(newest_in_series(dir / "ckpt_7").plain);
  EXPECT_EQ(newest_in_series(dir / "ckpt_7").plain->path, dir / "ckpt_5");
  EXPECT_EQ(newest("ckpt_7"), 2);
  EXPECT_EQ(newest("none/ckpt_3"), 0);
}

}  // namespace
}  // namespace dedup::store
