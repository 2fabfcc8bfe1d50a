// What the last commit did, for MPI_File_get_info (dedup_last_…) and for the report file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/dump/dump.h"
#include "engine/mpi/topology.h"
#include "hints/hints.h"
#include "plan/odds.h"

namespace dedup::engine {

// A figure over the ranks of a handle.
struct OverRanks {
  double mine = 0;
  double total = 0;
  double min = 0;
  double max = 0;
};

struct LastCommit {
  bool any = false;
  std::uint64_t generation = 0;
  std::uint64_t time = 0;           // of the commit, in seconds since 1970
  std::uint64_t lowest_copies = 0;  // of any chunk of the generation; 0 if it has none
  std::uint64_t node_sets = 0;      // distinct placements of its chunks
  std::uint64_t copies_made = 0;    // of chunks of the generation before, which nodes lacked
  std::uint64_t lost_chunks = 0;    // of which no node has a copy
  std::uint64_t unknown_bytes = 0;  // whose recipe is lost
  // Files of the job whose write-back in the background has failed so far, and why; on rank 0.
  std::map<std::string, std::string> not_written_back;
  std::vector<std::pair<std::string, OverRanks>> figures;  // DumpStats' fields by name
  int ranks = 0;

  const OverRanks& figure(std::string_view name) const;  // that there is
  // Over all ranks, of one in bytes.
  std::uint64_t total(std::string_view name) const;
};

// Collective: the figures of all ranks' `stats`. `troubles`: a number of each rank, then their sum.
LastCommit collect_figures(const Topology& topology, const DumpStats& stats, std::size_t& troubles);

// "dedup_last_bytes_stored" (this rank) and "dedup_last_total_bytes_stored" (all), and so on.
std::vector<std::pair<std::string, std::string>> describe(const LastCommit& last);

// Appends one JSON line (README, "Report"). One rank calls it. `odds`: of losing what was
// committed.
Status append_report(const std::string& report_path, const std::string& file, const Id128& identity,
                     const hints::Hints& hints, unsigned nodes, const LastCommit& last,
                     const plan::LossOdds& odds);

}  // namespace dedup::engine
