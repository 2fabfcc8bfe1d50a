// The reduction alone, or counting, one rank a node, when no two ranks have a chunk in common: what
// it costs for nothing (IPDPS 2013, figure 2).
//
//   reduction exact|tree THRESHOLD CHUNKS COPIES REPEATS
//
// Calls the engine's own reduce() or Counting. Prints one line of JSON: the seconds of the slowest
// rank, each time, and of the busiest node the bytes and messages that it sent and received and the
// sets that it merged.
#include <mpi.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/programs/common.h"
#include "engine/dump/counting.h"
#include "engine/dump/reduction.h"

namespace dedup::bench {
namespace {

std::uint64_t largest(std::uint64_t mine) {
  std::uint64_t most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

// Names that no other rank has.
std::vector<Fingerprint> unique_names(unsigned rank, std::uint64_t chunks) {
  std::vector<Fingerprint> names;
  std::uint64_t state = 0x9e3779b97f4a7c15u * (rank + 1);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    Fingerprint fingerprint;
    for (std::size_t at = 0; at < fingerprint.bytes.size(); at += sizeof state) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      std::memcpy(fingerprint.bytes.data() + at, &state, sizeof state);
    }
    names.push_back(
        keyed_name(std::span<const std::uint8_t, 16>(fingerprint.bytes.data(), 16), state));
  }
  return names;
}

plan::FrequentSet set_of(const std::vector<Fingerprint>& names, NodeIndex node,
                         const plan::ReduceLimits& limits) {
  plan::FrequentSet set;
  set.reserve(names.size(), names.size());
  for (const Fingerprint& name : names) set.add(name, 4096, 1, node, false, {});
  set.finish(limits);
  return set;
}

engine::NodeView view_of(const std::vector<Fingerprint>& names, NodeIndex node) {
  engine::ChunkRecords records;
  for (const Fingerprint& name : names) {
    records.list.push_back({name, 4096, engine::ChunkRecord::kNotHeld});
  }
  engine::NodeView view{node, {std::move(records), {names.size()}}, {}, {}};
  view.known = engine::KnownChunks(view.chunks.size());
  return view;
}

void run(bool exact, const plan::ReduceLimits& limits, std::uint64_t chunks, int repeats) {
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto topology =
      value_of(engine::Topology::build(MPI_COMM_WORLD, {.nodes = static_cast<NodeIndex>(ranks),
                                                        .node = static_cast<NodeIndex>(rank)}));
  check(topology.comms().take_together());
  plan::ReduceLimits mine_limits = limits;
  mine_limits.nodes = static_cast<NodeIndex>(ranks);
  const auto node = static_cast<NodeIndex>(rank);
  const std::vector<Fingerprint> names = unique_names(static_cast<unsigned>(rank), chunks);
  const plan::FrequentSet mine = exact ? plan::FrequentSet() : set_of(names, node, mine_limits);
  const engine::NodeView view = exact ? view_of(names, node) : engine::NodeView();
  engine::Counting counting(topology, limits.threshold);
  std::vector<double> seconds;
  std::uint64_t moved = 0;
  std::uint64_t messages = 0;
  std::uint64_t merged = 0;
  for (int i = 0; i < repeats; ++i) {
    plan::FrequentSet set = mine;
    engine::ReductionCost cost;
    seconds.push_back(slowest([&] {
      const auto result =
          value_of(exact ? counting.count(view, 0, mine_limits.copies, cost)
                         : engine::reduce(topology, std::move(set), mine_limits, &cost));
      if (!result.elements().empty()) fail("unique chunks were found on two nodes");
    }));
    moved = largest(cost.bytes);
    messages = largest(cost.messages);
    merged = largest(cost.merges);
  }
  const nlohmann::ordered_json line = {{"nodes", ranks},
                                       {"threshold", limits.threshold},
                                       {"chunks", chunks},
                                       {"replication", limits.copies},
                                       {"seconds", seconds},
                                       {"busiest_bytes", moved},
                                       {"busiest_messages", messages},
                                       {"busiest_merges", merged}};
  if (rank == 0) std::printf("%s\n", line.dump().c_str());
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::string how = argc > 1 ? argv[1] : "";
  if (argc != 6 || (how != "exact" && how != "tree")) {
    dedup::bench::fail("usage: reduction exact|tree THRESHOLD CHUNKS COPIES REPEATS");
  }
  dedup::plan::ReduceLimits limits;
  limits.threshold = static_cast<std::uint32_t>(std::stoul(argv[2]));
  limits.copies = static_cast<std::uint32_t>(std::stoul(argv[4]));
  dedup::bench::run(how == "exact", limits, std::stoull(argv[3]), std::stoi(argv[5]));
  MPI_Finalize();
  return 0;
}
