#include "tools/dedupctl/node_watch.h"

#include <gtest/gtest.h>

namespace dedup::ctl {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

NodeState node(const std::string& name, std::uint64_t stored) {
  NodeState out;
  out.node = name;
  out.files = 1;
  out.stored = stored;
  return out;
}

NodeState missing(const std::string& name) {
  NodeState out = node(name, 0);
  out.is_here = false;
  return out;
}

TEST(NodeWatch, RatesAreOfNodesThatAreThereBothTimes) {
  const Watched before{{node("n0", 10), node("n1", 50), missing("n2"), node("n3", 5)}, 1, 0, 0};
  const Watched now{
      {node("n0", 30), node("n1", 20), node("n2", 9), missing("n3"), node("n4", 1)}, 1, 0, 0};
  const auto changes = rates(before, now, 2);
  ASSERT_EQ(changes.size(), 5u);
  EXPECT_EQ(changes[0], 10);
  EXPECT_EQ(changes[1], -15);
  for (std::size_t i = 2; i < 5; ++i) EXPECT_EQ(changes[i], std::nullopt) << i;
  EXPECT_EQ(rates(before, now, 0)[0], std::nullopt);
}

TEST(NodeWatch, RateText) {
  EXPECT_EQ(rate_text(0), "0 B/s");
  EXPECT_EQ(rate_text(1.5 * kMiB), "1.5 MiB/s");
  EXPECT_EQ(rate_text(-2.0 * kMiB), "-2.0 MiB/s");
}

TEST(NodeWatch, Text) {
  NodeState busy = node("n0", 8 * kMiB);
  busy.open = 1;
  busy.behind = 2;
  busy.uncommitted = kMiB;
  const Watched now{{busy, missing("n1")}, 3, 1, 2};
  EXPECT_EQ(
      text_of(now, {2.0 * kMiB, std::nullopt}, Moved{1, 4.0 * kMiB, 8.0 * kMiB, 0}),
      "NODE  FILES   STORED     CHANGE  DEAD  NOT COMMITTED  FREE\n"
      "n0        1  8.0 MiB  2.0 MiB/s   0 B        1.0 MiB   0 B  1 file written to, 2 files "
      "behind\n"
      "n1        1        -          -     -              -     -  missing, with 1 file\n"
      "\n"
      "3 files, 1 written to, 2 on fewer nodes than wanted, or damaged: dedupctl heal\n"
      "1 commit since the start: 4.0 MiB written, 8.0 MiB stored, 0 B sent\n");
  EXPECT_EQ(text_of({}, {}, std::nullopt),
            "NODE  FILES  STORED  CHANGE  DEAD  NOT COMMITTED  FREE\n\n0 files\n");
}

}  // namespace
}  // namespace dedup::ctl
