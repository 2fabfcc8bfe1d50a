// The rounds of random collective writes against the file image that writing byte by byte gives:
// rounds_check [WRITES]. Needs no driver and no store. Runs on any number of ranks; ends with a
// message and a non-zero code at the first difference.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/codec.h"
#include "engine/dump/rounds.h"
#include "engine/mpi/topology.h"

namespace {

using namespace dedup;

int rank;
int ranks;
int number;  // of the write

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "rounds_check: write %d, rank %d of %d: %s\n", number, rank, ranks,
               what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// One rank's access, the same whoever makes it.
struct Write {
  std::vector<std::int64_t> file_offsets, file_lengths, memory_offsets, memory_lengths;
  std::vector<std::byte> memory;
  plan::Access access;
  bool crowded = false;

  Write(unsigned seed, int writer) {
    std::mt19937 common(seed);
    const auto kind = common() % 5;
    const std::int64_t displacement = common() % 100000;
    const std::int64_t piece = 1 + common() % (common() % 2 == 0 ? 40 : 6000);
    const std::uint64_t most = 1 + common() % (piece < 100 ? 5000 : 60000);
    std::mt19937 own(seed + 7919 * static_cast<unsigned>(writer + 1));
    access.displacement = displacement;
    switch (kind) {
      case 0:  // ranks in turn, piece by piece
        file_offsets = {writer * piece};
        file_lengths = {piece};
        access.filetype.extent = ranks * piece + (common() % 2 == 0 ? 0 : common() % 100);
        access.bytes = common() % 2 == 0 ? most : own() % most;
        break;
      case 1:  // each a part of its own
        file_offsets = {0};
        file_lengths = {piece};
        access.filetype.extent = piece;
        access.displacement += writer * static_cast<std::int64_t>(most);
        access.bytes = own() % 5 == 0 ? 0 : own() % most;
        break;
      case 4:  // all the same places, more than the buffers hold
        crowded = true;
        file_offsets = {0};
        file_lengths = {1};
        access.filetype.extent = 1 + common() % 3;
        access.bytes = 6000;
        break;
      default: {  // anything, overlapping
        std::int64_t at = own() % 2000;
        for (unsigned i = 0, n = 1 + own() % 5; i < n; ++i) {
          file_offsets.push_back(at);
          file_lengths.push_back(1 + own() % piece);
          at += file_lengths.back() + (own() % 2 == 0 ? 0 : own() % 500);
        }
        access.filetype.extent = at + own() % 100;
        access.start = own() % 1000;
        access.bytes = own() % most;
        if (kind == 3) access.displacement += (std::int64_t{1} << 40) * (own() % 3);
      }
    }
    std::int64_t at = 0;
    for (unsigned i = 0, n = 1 + own() % 3; i < n; ++i) {
      memory_offsets.push_back(at);
      memory_lengths.push_back(1 + own() % (own() % 3 == 0 ? 10000 : 50));
      at += memory_lengths.back() + own() % 20;
    }
    access.filetype.offsets = file_offsets;
    access.filetype.lengths = file_lengths;
    access.filetype.size = std::accumulate(file_lengths.begin(), file_lengths.end(), 0L);
    access.memtype = {memory_offsets, memory_lengths, at,
                      std::accumulate(memory_lengths.begin(), memory_lengths.end(), 0L)};
    const auto repetitions = static_cast<std::int64_t>(access.bytes) / access.memtype.size + 1;
    memory.resize(static_cast<std::size_t>(repetitions * at));
    for (auto& b : memory) b = static_cast<std::byte>(own());
    access.memory = memory.data();
  }
};

// All runs of all ranks on rank 0, as file offset, length, bytes.
std::vector<Bytes> gather_runs(const std::vector<engine::DumpRun>& runs) {
  Encoder e;
  for (const engine::DumpRun& run : runs) {
    e.put(run.file_offset);
    e.put_bytes({run.data, run.length});
  }
  const int size = static_cast<int>(e.size());
  std::vector<int> sizes(static_cast<std::size_t>(ranks));
  MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::vector<int> offsets(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), 0);
  Bytes all(rank == 0 ? static_cast<std::size_t>(offsets.back() + sizes.back()) : 0);
  MPI_Gatherv(e.bytes().data(), size, MPI_BYTE, all.data(), sizes.data(), offsets.data(), MPI_BYTE,
              0, MPI_COMM_WORLD);
  std::vector<Bytes> out;
  for (std::size_t r = 0; rank == 0 && r < sizes.size(); ++r) {
    const auto begin = all.begin() + offsets[r];
    out.emplace_back(begin, begin + sizes[r]);
  }
  return out;
}

// Returns whether it was two-phase.
bool check(const engine::Topology& topology, unsigned seed) {
  std::mt19937 common(seed);
  const std::uint32_t chunk_sizes[] = {512, 4096, 700, 65536};
  const std::uint32_t chunk_size = chunk_sizes[common() % 4];
  const Write mine(seed, rank);
  const std::uint64_t buffer =
      mine.crowded ? 1 : 100 * chunk_size + common() % (common() % 2 == 0 ? 30000 : 3000000);

  // What may stand where: several values where ranks overlap.
  std::map<std::uint64_t, std::vector<std::byte>> expected;
  for (int r = 0; rank == 0 && r < ranks; ++r) {
    const Write other(seed, r);
    plan::FragmentWalk walk(other.access);
    for (plan::Fragment f = walk.next(); f.length != 0; f = walk.next()) {
      for (std::uint64_t i = 0; i < f.length; ++i) {
        expected[f.file_offset + i].push_back(f.memory[i]);
      }
    }
  }
  auto source = engine::RoundSource::create(topology, mine.access, chunk_size, buffer);
  if (!source.is_ok()) fail(source.status().message());
  engine::RoundSource rounds = std::move(*source);
  std::map<std::uint64_t, std::byte> found;
  std::vector<engine::DumpRun> runs;
  while (true) {
    const auto more = rounds.next(runs);
    if (!more.is_ok()) fail(more.status().message());
    int mine_more = *more ? 1 : 0;
    int all_more = 0;
    MPI_Allreduce(&mine_more, &all_more, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (all_more != mine_more * ranks) fail("ranks differ on whether there is more");
    if (!*more) break;
    for (const Bytes& bytes : gather_runs(runs)) {
      Decoder d(bytes);
      while (d.ok() && !d.at_end()) {
        const auto offset = d.get<std::uint64_t>();
        const auto data = d.get_bytes();
        if (data.empty()) fail("an empty run");
        for (std::size_t i = 0; i < data.size(); ++i) found[offset + i] = data[i];
      }
    }
  }
  if (!runs.empty()) fail("runs after the end");
  if (rank == 0) {
    if (found.size() != expected.size()) {
      fail(std::to_string(found.size()) + " bytes written, not " + std::to_string(expected.size()));
    }
    for (const auto& [offset, value] : found) {
      const auto& values = expected[offset];
      if (std::count(values.begin(), values.end(), value) == 0) {
        fail("a wrong byte at " + std::to_string(offset));
      }
    }
  }
  return rounds.is_two_phase();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int writes = argc > 1 ? std::atoi(argv[1]) : 50;
  int two_phase = 0;
  {
    auto topology = engine::Topology::build(MPI_COMM_WORLD, {.nodes = 1});
    if (!topology.is_ok()) fail(topology.status().message());
    for (number = 0; number < writes; ++number) {
      if (check(*topology, static_cast<unsigned>(number))) ++two_phase;
    }
  }
  if (writes >= 50 && (two_phase == 0 || two_phase == writes)) fail("only one way was tried");
  if (rank == 0) {
    std::printf("rounds_check: %d writes on %d ranks, %d of them two-phase: ok\n", writes, ranks,
                two_phase);
  }
  MPI_Finalize();
  return 0;
}
