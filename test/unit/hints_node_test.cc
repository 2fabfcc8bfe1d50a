#include "hints/node.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "hints/hints.h"

namespace dedup::hints {
namespace {

// The nodes of all ranks, with spaces between them.
std::string dealt(std::string_view nodes, int ranks) {
  std::string all;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto name = simulated_node(nodes, rank, ranks);
    if (!name.is_ok()) return name.status().message();
    all += (all.empty() ? "" : " ") + *name;
  }
  return all;
}

TEST(SimulatedNode, RanksAreDealtInBlocks) {
  EXPECT_EQ(dealt("1", 3), "n0 n0 n0");
  EXPECT_EQ(dealt("2", 4), "n0 n0 n1 n1");
  EXPECT_EQ(dealt("6", 12), "n0 n0 n1 n1 n2 n2 n3 n3 n4 n4 n5 n5");
  EXPECT_EQ(dealt("2", 5), "n0 n0 n0 n1 n1");
  EXPECT_EQ(dealt("3", 7), "n0 n0 n0 n1 n1 n2 n2");
  EXPECT_EQ(dealt("4", 5), "n0 n0 n1 n2 n3");
  EXPECT_EQ(dealt("4", 7), "n0 n0 n1 n1 n2 n2 n3");
  EXPECT_EQ(dealt("5", 2), "n0 n1");
  EXPECT_EQ(dealt("003", 3), "n0 n1 n2");
  EXPECT_EQ(dealt("n2,n4,n5", 3), "n2 n4 n5");
  EXPECT_EQ(dealt("n2,n4,n5", 4), "n2 n2 n4 n5");
  EXPECT_EQ(dealt("n2,n4,n5", 2), "n2 n4");
  EXPECT_EQ(dealt("n3", 2), "n3 n3");
  EXPECT_EQ(dealt("7,1", 2), "7 1");
  EXPECT_EQ(dealt("a.b,A-b_c,.x", 3), "a.b A-b_c .x");
  EXPECT_EQ(*simulated_node("9999", 2'000'000'000, 2'000'000'001), "n9998");
}

TEST(SimulatedNode, WhatIsWrongIsSaid) {
  const std::string range = ": from 1 to 9999 nodes";
  EXPECT_EQ(dealt("0", 1), "DEDUP_NODES=0" + range);
  EXPECT_EQ(dealt("00", 1), "DEDUP_NODES=00" + range);
  EXPECT_EQ(dealt("10000", 1), "DEDUP_NODES=10000" + range);
  EXPECT_EQ(dealt("99999999999999999999999", 1), "DEDUP_NODES=99999999999999999999999" + range);
  for (const std::string list : {"a,,b", "a,", ",a", ","}) {
    EXPECT_EQ(dealt(list, 1), "DEDUP_NODES=" + list + ": a name is empty");
  }
  for (const std::string list : {"-3", "-n", "a/b", "a,..", "a,.", "a b", "n\u00e4", "*"}) {
    EXPECT_EQ(dealt(list, 1), "DEDUP_NODES=" + list +
                                  ": names of nodes have letters, digits, '.', '_' and '-' only");
  }
  EXPECT_EQ(dealt("a,b,a", 1), "DEDUP_NODES=a,b,a: a is named twice");
  EXPECT_EQ(dealt("a\n\033[2J", 1).find_first_of("\n\033"), std::string::npos);
  EXPECT_EQ(simulated_node("a,,b", 0, 1).status().code(), Code::kArgument);
}

class Environment {
 public:
  Environment(const char* node, const char* nodes) {
    ::setenv("DEDUP_NODE", node, 1);
    ::setenv("DEDUP_NODES", nodes, 1);
  }
  ~Environment() {
    ::unsetenv("DEDUP_NODE");
    ::unsetenv("DEDUP_NODES");
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
};

TEST(NodeOfRank, NamedThenSimulatedThenTheHosts) {
  std::string host;
  {
    const Environment none("", "");
    host = *node_of_rank(1, 2);
    EXPECT_FALSE(host.empty());
    EXPECT_EQ(node_of_process(), host);
    EXPECT_FALSE(default_store().ends_with("%n"));
  }
  {
    const Environment nodes("", "a,b");
    EXPECT_EQ(*node_of_rank(0, 2), "a");
    EXPECT_EQ(*node_of_rank(1, 2), "b");
    EXPECT_EQ(node_of_process(), host);
    EXPECT_TRUE(default_store().ends_with("-%n"));
    EXPECT_EQ(*simulated_nodes(), (std::vector<std::string>{"a", "b"}));
  }
  {
    const Environment nodes("", "02");
    EXPECT_EQ(*simulated_nodes(), (std::vector<std::string>{"n0", "n1"}));
  }
  {
    const Environment wrong("", "a,,b");
    EXPECT_FALSE(simulated_nodes().is_ok());
    EXPECT_FALSE(node_of_rank(0, 2).is_ok());
  }
  const Environment both("mine", "a,,b");
  EXPECT_EQ(*node_of_rank(0, 2), "mine");
  EXPECT_EQ(node_of_process(), "mine");
}

TEST(NodeTimeout, IsANumberOfSeconds) {
  ::unsetenv("DEDUP_NODE_TIMEOUT");
  EXPECT_EQ(*node_timeout(), kNodeTimeout);
  ::setenv("DEDUP_NODE_TIMEOUT", "5", 1);
  EXPECT_EQ(*node_timeout(), std::chrono::seconds(5));
  for (const char* wrong : {"0", "-1", "5s", "x", "86401", "99999999999999999999"}) {
    ::setenv("DEDUP_NODE_TIMEOUT", wrong, 1);
    EXPECT_EQ(node_timeout().status().code(), Code::kArgument) << wrong;
  }
  ::unsetenv("DEDUP_NODE_TIMEOUT");
}

}  // namespace
}  // namespace dedup::hints
