// The reduction alone, one rank a node, when no two ranks have a chunk in common: what it costs for
// nothing (IPDPS 2013, figure 2).
//
//   reduction THRESHOLD CHUNKS COPIES REPEATS
//
// Calls the engine's own reduce(). Prints one line of JSON: the seconds of the slowest rank, each
// time, and of the busiest node the bytes that it sent and received and the sets that it merged.
#include <mpi.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/programs/common.h"
#include "engine/dump/reduction.h"

namespace dedup::bench {
namespace {

std::uint64_t largest(std::uint64_t mine) {
  std::uint64_t most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

plan::FrequentSet unique_set(unsigned rank, std::uint64_t chunks,
                             const plan::ReduceLimits& limits) {
  plan::FrequentSet set;
  set.reserve(chunks, chunks);
  std::uint64_t state = 0x9e3779b97f4a7c15u * (rank + 1);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    Fingerprint fingerprint;
    for (std::size_t at = 0; at < fingerprint.bytes.size(); at += sizeof state) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      std::memcpy(fingerprint.bytes.data() + at, &state, sizeof state);
    }
    set.add(fingerprint, 4096, 1, static_cast<NodeIndex>(rank), false, {});
  }
  set.finish(limits);
  return set;
}

void run(const plan::ReduceLimits& limits, std::uint64_t chunks, int repeats) {
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto topology =
      value_of(engine::Topology::build(MPI_COMM_WORLD, {.nodes = static_cast<NodeIndex>(ranks),
                                                        .node = static_cast<NodeIndex>(rank)}));
  check(topology.comms().take_together());
  plan::ReduceLimits mine_limits = limits;
  mine_limits.nodes = static_cast<NodeIndex>(ranks);
  const auto mine = unique_set(static_cast<unsigned>(rank), chunks, mine_limits);
  std::vector<double> seconds;
  std::uint64_t moved = 0;
  std::uint64_t merged = 0;
  for (int i = 0; i < repeats; ++i) {
    plan::FrequentSet set = mine;
    engine::ReductionCost cost;
    seconds.push_back(slowest([&] {
      const auto result = value_of(engine::reduce(topology, std::move(set), mine_limits, &cost));
      if (!result.elements().empty()) fail("unique chunks were found on two nodes");
    }));
    moved = largest(cost.bytes);
    merged = largest(cost.merges);
  }
  const nlohmann::ordered_json line = {{"nodes", ranks},          {"threshold", limits.threshold},
                                       {"chunks", chunks},        {"replication", limits.copies},
                                       {"seconds", seconds},      {"busiest_bytes", moved},
                                       {"busiest_merges", merged}};
  if (rank == 0) std::printf("%s\n", line.dump().c_str());
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) dedup::bench::fail("usage: reduction THRESHOLD CHUNKS COPIES REPEATS");
  dedup::plan::ReduceLimits limits;
  limits.threshold = static_cast<std::uint32_t>(std::stoul(argv[1]));
  limits.copies = static_cast<std::uint32_t>(std::stoul(argv[3]));
  dedup::bench::run(limits, std::stoull(argv[2]), std::stoi(argv[4]));
  MPI_Finalize();
  return 0;
}
