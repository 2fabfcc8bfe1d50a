#include "hdf5/config.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace dedup::hdf5 {
namespace {

using Hints = std::vector<std::pair<std::string, std::string>>;

TEST(Hdf5Config, HasHints) {
  const Config config = parse_config(" dedup_store = /local/me/%n;dedup_replication=3; ");
  EXPECT_EQ(config.hints, (Hints{{"dedup_store", "/local/me/%n"}, {"dedup_replication", "3"}}));
  EXPECT_FALSE(config.is_job_of_world);
}

TEST(Hdf5Config, MayBeEmpty) {
  EXPECT_TRUE(parse_config("").hints.empty());
  EXPECT_TRUE(parse_config(" ;; ").hints.empty());
}

TEST(Hdf5Config, OnlyTheFirstEqualsSignSeparates) {
  EXPECT_EQ(parse_config("dedup_store=/a=b").hints, (Hints{{"dedup_store", "/a=b"}}));
}

TEST(Hdf5Config, SaysWhoseJob) {
  const Config config = parse_config("job=world;dedup_replication=2");
  EXPECT_TRUE(config.is_job_of_world);
  EXPECT_EQ(config.hints, (Hints{{"dedup_replication", "2"}}));
  EXPECT_FALSE(parse_config("job=file").is_job_of_world);
}

std::string refusal(std::string_view text) {
  try {
    parse_config(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(Hdf5Config, RefusesWhatItDoesNotUnderstand) {
  EXPECT_NE(refusal("dedup_store").find("\"dedup_store\" has no ="), std::string::npos);
  EXPECT_NE(refusal("job=all").find("job=all: it is world or file"), std::string::npos);
}

}  // namespace
}  // namespace dedup::hdf5
