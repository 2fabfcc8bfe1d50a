#include "tools/dedupctl/report_lines.h"

#include <gtest/gtest.h>

#include <fstream>

#include "test/unit/temp_dir.h"

namespace dedup::ctl {
namespace {

std::string figure(const char* name, int total) {
  const std::string text = std::to_string(total);
  return "\"" + std::string(name) + R"(":{"total":)" + text + R"(,"min":1,"avg":2.5,"max":4},)";
}

std::string line(const std::string& more = "") {
  return R"({"file":"/f","identity":"0","generation":3,"mode":"collective","replication":2,)"
         R"("chunk_size":4096,"ranks":8,"nodes":4,)" +
         figure("bytes_written", 100) + figure("bytes_zero", 10) +
         figure("bytes_unique_local", 50) + figure("bytes_stored", 40) + figure("bytes_sent", 20) +
         more + R"("lowest_copies":2})";
}

TEST(ReportLines, HaveWhatTheDriverTells) {
  const auto commit =
      parse_commit(line(figure("seconds_writing", 9) +
                        R"("time":1700000000,"losses_survived":1,"loss_odds":[0.25,0.5],)"));
  ASSERT_TRUE(commit.is_ok()) << commit.status().message();
  EXPECT_EQ(commit->file, "/f");
  EXPECT_EQ(commit->generation, 3u);
  EXPECT_EQ(commit->time, 1700000000u);
  EXPECT_EQ(commit->written.total, 100);
  EXPECT_EQ(commit->stored.average, 2.5);
  EXPECT_EQ(commit->seconds, 4);
  EXPECT_EQ(commit->losses_survived, 1u);
  EXPECT_EQ(commit->loss_odds, (std::vector<double>{0.25, 0.5}));
}

TEST(ReportLines, OfOlderSoftwareLackSome) {
  const auto commit = parse_commit(line());
  ASSERT_TRUE(commit.is_ok()) << commit.status().message();
  EXPECT_EQ(commit->time, 0u);
  EXPECT_EQ(commit->seconds, 0);
  EXPECT_TRUE(commit->loss_odds.empty());
}

TEST(ReportLines, NothingElseIsOne) {
  for (const std::string& text :
       {std::string("text"), std::string("{}"), std::string("[1]"),
        std::string(R"({"file":"/f","generation":"three"})"), line().substr(1)}) {
    EXPECT_EQ(parse_commit(text).status().code(), Code::kCorrupt) << text;
  }
}

TEST(ReportLines, AnErrorNamesTheLine) {
  const test::TempDir directory;
  const std::string path = directory.path() + "/report";
  std::ofstream(path) << line() << "\n\n" << line() << "\n";
  EXPECT_EQ(read_report(path)->size(), 2u);
  std::ofstream(path, std::ios::app) << "torn\n";
  EXPECT_NE(read_report(path).status().message().find(path + ":4: "), std::string::npos);
  EXPECT_FALSE(read_report(directory.path() + "/none").is_ok());
}

}  // namespace
}  // namespace dedup::ctl
