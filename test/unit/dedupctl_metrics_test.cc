#include "tools/dedupctl/metrics.h"

#include <gtest/gtest.h>

#include <limits>

namespace dedup::ctl {
namespace {

std::string label_of(const std::string& value) {
  const std::string text = gauge("m", "Help.", {{{{"l", value}}, 1}});
  const std::string before = "# HELP m Help.\n# TYPE m gauge\nm{l=\"";
  const std::string behind = "\"} 1\n";
  EXPECT_TRUE(text.starts_with(before) && text.ends_with(behind)) << text;
  return text.substr(before.size(), text.size() - before.size() - behind.size());
}

TEST(Gauge, HelpAndTypeThenItsSamples) {
  EXPECT_EQ(gauge("dedup_x", "What x is.", {{{{"a", "1"}, {"b", "2"}}, 3}, {{}, 4}}),
            "# HELP dedup_x What x is.\n# TYPE dedup_x gauge\n"
            "dedup_x{a=\"1\",b=\"2\"} 3\ndedup_x 4\n");
}

TEST(Gauge, NothingWithoutSamples) {
  EXPECT_EQ(gauge("dedup_x", "What x is.", {}), "");
}

TEST(Gauge, LargeValuesAreWhole) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_TRUE(gauge("x", "X.", {{{}, most}}).ends_with("x 18446744073709551615\n"));
}

TEST(Gauge, LabelsAreEscaped) {
  EXPECT_EQ(label_of("plain/é"), "plain/é");
  EXPECT_EQ(label_of("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
  EXPECT_EQ(label_of("\\n"), "\\\\n");
}

TEST(Gauge, LabelsAreUtf8) {
  EXPECT_EQ(label_of("a\xff"
                     "b"),
            "a\xef\xbf\xbd"
            "b");
}

}  // namespace
}  // namespace dedup::ctl
