#include "tools/dedupctl/page.h"

#include <gtest/gtest.h>

namespace dedup::ctl {
namespace {

ReportedCommit commit(std::uint64_t generation) {
  ReportedCommit out;
  out.file = "/f";
  out.generation = generation;
  out.time = 1'700'000'000 + generation;
  out.mode = "collective";
  out.replication = 2;
  out.nodes = 4;
  out.written.total = 1000;
  out.zero.total = 200;
  out.stored.total = 400;
  out.seconds = 0.5;
  out.lowest_copies = 2;
  out.losses_survived = 1;
  out.loss_odds = {0.25, 0.5};
  return out;
}

TEST(SavedShare, IsOfWhatCopiesWouldHaveTaken) {
  ReportedCommit one = commit(1);
  EXPECT_DOUBLE_EQ(*saved_share(one), 0.75);
  one.nodes = 1;
  EXPECT_DOUBLE_EQ(*saved_share(one), 0.5);
  one.stored.total = 2000;
  EXPECT_EQ(*saved_share(one), 0);
  one.zero.total = 1000;
  EXPECT_EQ(saved_share(one), std::nullopt);
}

TEST(Page, HasWhatThereIs) {
  const std::string page = page_of({{"/a<b", {commit(1), commit(2)}, {}}});
  EXPECT_NE(page.find("<h2>/a&lt;b</h2>"), std::string::npos);
  EXPECT_NE(page.find("2023-11-14T22:13:21Z"), std::string::npos);
  EXPECT_EQ(page.find("Now in the stores"), std::string::npos);
  const std::string now =
      page_of({{"/f", {}, StoredNow{3, 1, 100, 0, 1, {0.5}, {{"n0", "here", 10, 5}}}}});
  EXPECT_NE(now.find("Now in the stores: generation 3, 100 B"), std::string::npos);
  EXPECT_NE(now.find("No report of its commits"), std::string::npos);
  EXPECT_NE(page_of({}).find("No file."), std::string::npos);
}

TEST(Page, NeedsNothingFromElsewhere) {
  const std::string page = page_of({{"/f", {commit(1)}, {}}});
  for (const char* part : {"http:", "https:", "<script", "<link", "src=", "url(", "@import"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace dedup::ctl
