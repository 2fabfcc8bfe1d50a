#include "tools/dedupctl/name_tree.h"

#include <gtest/gtest.h>

#include <vector>

namespace dedup::ctl {
namespace {

std::vector<std::string> names_in(const NameTree& tree, std::string_view directory) {
  std::vector<std::string> names;
  const NameTree::Entries* const entries = tree.directory(directory);
  if (entries == nullptr) return {"no such directory"};
  for (const auto& [name, kind] : *entries) {
    names.push_back(kind == NameTree::Kind::kFile ? name : name + "/");
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(NameTree, HasEveryDirectoryOnTheWay) {
  NameTree tree;
  EXPECT_EQ(names_in(tree, ""), Names{});
  ASSERT_TRUE(tree.add("/scratch/run/b").is_ok());
  ASSERT_TRUE(tree.add("/scratch/run/a").is_ok());
  ASSERT_TRUE(tree.add("/scratch/other").is_ok());
  EXPECT_EQ(names_in(tree, ""), Names{"scratch/"});
  EXPECT_EQ(names_in(tree, "/scratch"), (Names{"other", "run/"}));
  EXPECT_EQ(names_in(tree, "/scratch/run"), (Names{"a", "b"}));
  EXPECT_EQ(names_in(tree, "/scratch/run/a"), Names{"no such directory"});
  EXPECT_EQ(names_in(tree, "/scratch/"), Names{"no such directory"});
}

TEST(NameTree, ShowsNoNameThatLeadsElsewhere) {
  NameTree tree;
  for (const std::string& path : Names{"", "/", "//", "a", "a/b", "../a", "/..", "/../etc/passwd",
                                       "/a/../../b", "/a/..", "/a/.", "/./a", "/a//b", "/a/",
                                       std::string("/a\0b", 4), "/" + std::string(256, 'x')}) {
    EXPECT_EQ(tree.add(path).code(), Code::kBadFile) << path;
  }
  EXPECT_EQ(names_in(tree, ""), Names{});
  EXPECT_TRUE(tree.add("/..a/...").is_ok());
  EXPECT_TRUE(tree.add("/" + std::string(255, 'x')).is_ok());
}

TEST(NameTree, OnePathHasOneThing) {
  NameTree tree;
  ASSERT_TRUE(tree.add("/a/b").is_ok());
  EXPECT_EQ(tree.add("/a/b").code(), Code::kBadFile);
  EXPECT_EQ(tree.add("/a").code(), Code::kBadFile);
  const Status below = tree.add("/a/b/c/d");
  EXPECT_EQ(below.code(), Code::kBadFile);
  EXPECT_NE(below.message().find("/a/b has its place"), std::string::npos) << below.message();
  EXPECT_EQ(names_in(tree, "/a"), Names{"b"});
  EXPECT_EQ(names_in(tree, "/a/b/c"), Names{"no such directory"});
}

}  // namespace
}  // namespace dedup::ctl
