// What the driver has told of commits (dedup_report): a JSON line for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace dedup::ctl {

// Of what its ranks did, in bytes.
struct OverRanks {
  double total = 0;
  double min = 0;
  double average = 0;
  double max = 0;
};

struct ReportedCommit {
  std::string file;
  std::uint64_t generation = 0;
  std::uint64_t time = 0;  // seconds since 1970; 0: not told, as in older reports
  std::string mode;
  std::uint64_t replication = 0;
  std::uint64_t chunk_size = 0;
  std::uint64_t ranks = 0;
  std::uint64_t nodes = 0;
  OverRanks written;
  OverRanks zero;
  OverRanks unique;  // by each rank alone
  OverRanks stored;
  OverRanks sent;
  double seconds = 0;  // of the rank that took longest, in its calls; 0: not told
  std::uint64_t lowest_copies = 0;
  std::uint64_t losses_survived = 0;
  std::vector<double> loss_odds;  // of one loss more than these, of two, …
};

// One line. kCorrupt if it is not one.
Result<ReportedCommit> parse_commit(const std::string& line);

// All lines of a file, in their order. An error names the line.
Result<std::vector<ReportedCommit>> read_report(const std::string& path);

}  // namespace dedup::ctl
