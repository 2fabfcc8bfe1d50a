#include "tools/dedupctl/closest.h"

#include <gtest/gtest.h>

#include <vector>

namespace dedup::ctl {
namespace {

const std::vector<std::string> kCommands{"ls",     "df",     "stat", "check", "heal",
                                         "export", "import", "cat",  "rm",    "gc"};

TEST(Closest, OneMistakeOfEachKind) {
  EXPECT_EQ(closest("exprot", kCommands), "export");
  EXPECT_EQ(closest("chek", kCommands), "check");
  EXPECT_EQ(closest("heall", kCommands), "heal");
  EXPECT_EQ(closest("inport", kCommands), "import");
  EXPECT_EQ(closest("sl", kCommands), "ls");
}

TEST(Closest, TheOneWithTheFewestMistakes) {
  EXPECT_EQ(closest("xport", kCommands), "export");
  EXPECT_EQ(closest("stta", kCommands), "stat");
  EXPECT_EQ(closest("ca", kCommands), "cat");
  EXPECT_EQ(closest("rm", kCommands), "rm");
}

TEST(Closest, NoneThatNobodyCouldHaveMeant) {
  EXPECT_EQ(closest("nonsense", kCommands), "");
  EXPECT_EQ(closest("backup", kCommands), "");
  EXPECT_EQ(closest("", kCommands), "");
  EXPECT_EQ(closest("ls", {}), "");
}

}  // namespace
}  // namespace dedup::ctl
