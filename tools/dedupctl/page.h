// A page about files' history: pictures, and the numbers that they are of. It needs nothing from
// elsewhere, and no scripts; it is readable on light and dark screens, and by who does not see it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/dedupctl/report_lines.h"

namespace dedup::ctl {

// What a node has of a file now.
struct NodePart {
  std::string node;
  std::string state;  // here, behind, missing
  std::uint64_t stored = 0;
  std::uint64_t live = 0;
};

// What the stores say of a file.
struct StoredNow {
  std::uint64_t generation = 0;
  std::uint64_t time = 0;
  std::uint64_t size = 0;
  std::uint64_t lost = 0;  // bytes
  std::uint64_t losses_survived = 0;
  std::vector<double> loss_odds;  // of one loss more than these, of two, …
  std::vector<NodePart> nodes;
};

struct FileHistory {
  std::string path;
  std::vector<ReportedCommit> commits;  // in their order
  std::optional<StoredNow> now;
};

// Of the data that is no zeros, what copies of all of it would have taken and did not; none if
// there is no data.
std::optional<double> saved_share(const ReportedCommit& commit);

std::string page_of(const std::vector<FileHistory>& files);

}  // namespace dedup::ctl
