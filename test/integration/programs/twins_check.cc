// Which hashes come more than once, against counting them all: twins_check. Needs no driver and no
// store. Runs on any number of ranks; ends with a message and a non-zero code at the first
// difference.
#include <mpi.h>

#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "engine/dump/twins.h"

namespace {

using dedup::engine::Twins;

constexpr int kCalls = 200;
constexpr std::size_t kRemembered = 64;

// What a rank puts in, the same whoever computes it.
std::vector<std::uint64_t> hashes_of(int call, int rank) {
  std::mt19937_64 random(static_cast<std::uint64_t>(call * 1000 + rank));
  // None, few of few (all have twins), or many of many (hardly any).
  const std::uint64_t kinds = call % 3 == 0 ? 40 : 1u << 20;
  std::vector<std::uint64_t> hashes(random() % 4 == 0 ? 0 : random() % 300);
  for (std::uint64_t& hash : hashes) hash = random() % kinds * 0x9e3779b97f4a7c15;
  return hashes;
}

int check(int rank, int ranks) {
  Twins twins(MPI_COMM_WORLD, kRemembered);
  std::set<std::uint64_t> earlier;
  for (int call = 0; call < kCalls; ++call) {
    if (call % 20 == 0) {
      twins.clear();
      earlier.clear();
    }
    std::map<std::uint64_t, int> count;
    for (int r = 0; r < ranks; ++r) {
      for (const std::uint64_t hash : hashes_of(call, r)) ++count[hash];
    }
    const std::vector<std::uint64_t> mine = hashes_of(call, rank);
    const std::vector<std::uint8_t> flags = twins.find(mine);
    if (flags.size() != mine.size()) {
      std::fprintf(stderr, "call %d, rank %d: %zu answers\n", call, rank, flags.size());
      return 1;
    }
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const bool twin = count[mine[i]] > 1;
      // An earlier one's may be forgotten, and is not made up.
      const bool right = flags[i] != 0 ? twin || earlier.contains(mine[i]) : !twin;
      if (!right) {
        std::fprintf(stderr, "call %d, rank %d: hash %zu comes %d times, the answer is %d\n", call,
                     rank, i, count[mine[i]], flags[i]);
        return 1;
      }
    }
    for (const auto& [hash, times] : count) {
      if (times > 1) earlier.insert(hash);
    }
  }
  // What was just found is remembered.
  twins.clear();
  const std::vector<std::uint64_t> one{7};
  const bool alone = twins.find(one)[0] == (ranks > 1 ? 1 : 0);
  const auto again = twins.find(rank == 0 ? std::span(one) : std::span<const std::uint64_t>());
  return alone && (rank != 0 || again[0] == (ranks > 1 ? 1 : 0)) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int failed = check(rank, ranks);
  int any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && any == 0) std::printf("twins_check: %d calls on %d ranks: ok\n", kCalls, ranks);
  MPI_Finalize();
  return any;
}
